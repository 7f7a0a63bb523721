package import SluiceCore
import SluiceMerge

/// Collections edited in place: 10,000 appended elements cost one write of the list.
extension WriteTransaction {
    /// The collection of an object that the app sees, with its edits; nil if none was edited in place.
    package func shownCollection(type: Int, key: Value, property: Int) -> EditedCollection? {
        store.edits.isEmpty ? nil : store.edits.find(type, key, property)
    }

    /// A collection of an object, to be edited in place. The first call reads it, O(its elements).
    ///
    /// In a synced file the gateway merges its edits one by one, unless the transaction uploads the whole value, for example of an object
    /// that it made.
    /// - Returns: nil if it has to be set instead, or there is no such object.
    /// - Throws: `noSubscriptionForWrite`.
    package func editedCollection(type: Int, key: Value, property: Int) throws(SluiceError) -> EditedCollection? {
        if let known = shownCollection(type: type, key: key, property: property) { return known.isSealed ? nil : known }
        let layout = database.layouts[type]
        let description = layout.type.properties[property]
        guard layout.hasTable, description.collection != .none else { return nil }
        let object = ObjectKey(type: layout.type.name, key: key)
        try prepare(layout, object)
        guard let value = try store.value(type: type, key: key, property: property) else { return nil }
        var (change, recorder): (Int?, CollectionRecorder?) = (nil, nil)
        if local.isSynced {
            if let index = lastChange[object], changes[index]?.values[description.name] != nil {
                // Edits inside of values follow in the change: a new one will have the value.
                guard changes[index]?.edits.isEmpty == true else { return nil }
                try uploadWhole(description.name, of: object, layout, index)
                change = index
                edited[object] = nil
            } else {
                recorder = CollectionRecorder(self, try editedObject(layout, object), description)
            }
        }
        if store.edits.isFull {
            try store.settle()
            for collection in store.edits.all { fill(collection) }
            store.edits.removeAll()
        }
        database.note(type, key)
        let place = EditedCollections.Place(owner: .init(type: type, key: key), property: property)
        return store.edits.insert(place, description.collection, value, change: change, recorder: recorder)
    }

    /// An object with the names of the places in its values. O(its size and its pending edits), unless it is known.
    func editedObject(_ layout: TableLayout, _ object: ObjectKey) throws(SluiceError) -> EditedObject {
        if let known = edited[object] { return known }
        for collection in store.edits.of(layout.index, object.key) { fill(collection) }
        let new = try EditedObject(layout, object, own: ownChanges(of: object), local)
        edited[object] = new
        return new
    }

    /// Lets a change upload all of a property's value.
    private func uploadWhole(_ name: String, of object: ObjectKey, _ layout: TableLayout, _ index: Int) throws(SluiceError) {
        if changes[index]?.seen[name] == nil, let seen = try seen(name, of: object, layout) { changes[index]?.seen[name] = seen }
        changes[index]?.defaults.remove(name)
    }

    /// Puts the value of a collection into the change that uploads it. Names that were made before are not of this value.
    func fill(_ collection: EditedCollection) {
        guard collection.isUnfilled, let change = collection.change else { return }
        let type = database.layouts[collection.type].type
        let name = type.properties[collection.property].name
        // Its references are of an earlier value.
        edited[ObjectKey(type: type.name, key: collection.key)] = nil
        changes[change]?.values[name] = collection.normalized
        collection.isUnfilled = false
    }

    /// Completes the previous change of an object, before a change that cannot merge into it.
    func seal(_ object: ObjectKey) {
        guard !store.edits.isEmpty, let type = store.schema.index(of: object.type) else { return }
        for collection in store.edits.of(type, object.key) where collection.change != nil {
            fill(collection)
            collection.isSealed = true
        }
    }

    /// Writes an object's edited collections to their tables, before a change of another kind.
    /// - Parameter property: The only property to write. `nil` for all.
    func settle(type: Int, key: Value, property: Int? = nil) throws(SluiceError) {
        for collection in store.edits.of(type, key) where property == nil || collection.property == property {
            fill(collection)
            try store.write(collection)
            store.edits.remove(collection)
        }
    }

    /// Forgets the edits of a property that is about to be set, or of all of an object that is about to be deleted.
    func forgetEdits(type: Int, key: Value, property: Int? = nil) {
        for collection in store.edits.of(type, key) where property == nil || collection.property == property {
            store.edits.remove(collection)
        }
    }
}
