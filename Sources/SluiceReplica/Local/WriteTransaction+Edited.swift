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
    /// In a synced file this works only if the transaction uploads the whole value, for example of an object that it made. Edits of other
    /// values upload one by one (`set(type:key:property:_:by:)`).
    /// - Returns: nil if it has to be set instead, or there is no such object.
    /// - Throws: `noSubscriptionForWrite`.
    package func editedCollection(type: Int, key: Value, property: Int) throws(SluiceError) -> EditedCollection? {
        if let known = shownCollection(type: type, key: key, property: property) { return known.isSealed ? nil : known }
        let layout = writer.layouts[type]
        let description = layout.type.properties[property]
        guard layout.hasTable, description.collection != .none else { return nil }
        let object = ObjectKey(type: layout.type.name, key: key)
        try prepare(layout, object)
        guard let value = try store.value(type: type, key: key, property: property) else { return nil }
        var change: Int?
        if writer.isSynced {
            guard let index = try uploadedWhole(description.name, of: object, layout) else { return nil }
            change = index
            edited[object] = nil
        }
        if store.edits.isFull {
            try store.settle()
            for collection in store.edits.all { fill(collection) }
            store.edits.removeAll()
        }
        writer.note(type, key)
        let place = EditedCollections.Place(owner: .init(type: type, key: key), property: property)
        return store.edits.insert(place, description.collection, value, change: change)
    }

    /// The index of the change that uploads all of a property's value; nil if none does, or edits inside of values follow in it.
    private func uploadedWhole(_ name: String, of object: ObjectKey, _ layout: TableLayout) throws(SluiceError) -> Int? {
        guard let index = lastChange[object], let last = changes[index], last.kind != .delete, last.edits.isEmpty, last.values[name] != nil
        else { return nil }
        if last.seen[name] == nil, let seen = try seen(name, of: object, layout) { changes[index]?.seen[name] = seen }
        changes[index]?.defaults.remove(name)
        return index
    }

    /// Puts the value of a collection into the change that uploads it.
    func fill(_ collection: EditedCollection) {
        guard collection.isUnfilled, let change = collection.change else { return }
        let name = writer.layouts[collection.type].type.properties[collection.property].name
        changes[change]?.values[name] = collection.normalized
        collection.isUnfilled = false
    }

    /// Completes the previous change of an object, before a change that cannot merge into it.
    func seal(_ object: ObjectKey) {
        guard !store.edits.isEmpty, let type = store.schema.index(of: object.type) else { return }
        for collection in store.edits.of(type, object.key) {
            fill(collection)
            collection.isSealed = true
        }
    }

    /// Writes an object's edited collections to their tables, before a change of another kind.
    func settle(type: Int, key: Value) throws(SluiceError) {
        for collection in store.edits.of(type, key) {
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
