import SluiceCore
import SluiceReplica

/// The conversion of unmanaged objects to managed ones.
extension RealmCore {
    /// The policy for objects that are added together with the one that links to them.
    struct Adding {
        var update: Realm.UpdatePolicy
        /// `true` if properties that were not given keep their values.
        var isPartial: Bool
    }

    /// Turns an unmanaged object into one of this Realm, in place.
    /// - Parameter isPartial: `true` if an existing object keeps the properties that the app did not give.
    func add(_ object: ObjectBase, update: Realm.UpdatePolicy, isPartial: Bool = false) {
        if object.managingCore === self, object.isGone {
            throwRealmException("Adding a deleted or invalidated object to a Realm is not permitted")
        }
        let outer = adding
        if update != .error, object._row == nil, object.model.hasHiddenKey {
            throwRealmException("'\(object.model.name)' does not have a primary key and can not be updated")
        }
        adding = Adding(update: update, isPartial: isPartial)
        defer { adding = outer }
        adopt(object)
    }

    /// Adds a linked object under the policy of the object that links to it. Traps if another Realm manages it.
    func adopt(_ object: ObjectBase) {
        if let row = object._row {
            if row.core === self { return }
            throwRealmException("Object is already managed by another Realm. Use create instead to copy it into this Realm.")
        }
        if object.isConsumed { throwRealmException("Adding a deleted or invalidated object to a Realm is not permitted") }
        requireTransaction()
        let (schema, type) = model(of: Swift.type(of: object))
        if schema.hasHiddenKey { return insert(object, schema, type, newKey(type)) }
        let key = schema.primaryKey(of: object)
        if case .null = key { throwRealmException("Invalid null value for the primary key of '\(schema.name)'.") }
        guard schema.objectClass is Object.Type else { return send(object, schema, type, key) }
        if adding.update != .error, let existing = reading.row(type, key) { return merge(object, schema, type, key, into: existing) }
        insert(object, schema, type, key)
    }

    private func newKey(_ type: Int) -> Value {
        var key = Value.null
        change { transaction throws(SluiceError) in key = try transaction.newKey(type: type) }
        return key
    }

    /// Buffers for the values of one object. Taking them leaves empty ones for an object that is added recursively.
    private func takeAddingSpace() -> (values: [Value], given: [Bool]) {
        defer { addingSpace = ([], []) }
        addingSpace.values.removeAll(keepingCapacity: true)
        addingSpace.given.removeAll(keepingCapacity: true)
        return addingSpace
    }

    private func insert(_ object: ObjectBase, _ schema: ModelSchema, _ type: Int, _ key: Value) {
        let row = _RowCache(core: self, schema: schema, type: type, key: key)
        // Bind before reading the properties: a linked object that links back then finds this one as managed.
        object._row = row
        var (values, given) = takeAddingSpace()
        for slot in 0..<schema.storedCount {
            let (value, isGiven) = schema.take(object, slot: slot, owner: object)
            row.values[slot] = value
            values.append(value.value)
            given.append(isGiven)
        }
        // The hidden key follows the stored properties.
        if schema.hasHiddenKey {
            values.append(key)
            given.append(true)
        }
        var isNew = true
        change { transaction throws(SluiceError) in
            isNew = try transaction.insert(type: type, key: key, values: values, given: given)
        }
        addingSpace = (values, given)
        if !isNew {
            throwRealmException(
                "Attempting to create an object of type '\(schema.name)' with an existing primary key value '\(RQLText.literal(key))'.")
        }
        schema.bind(object, to: row, attaching: true)
        row.generation = clock.generation
    }

    /// Sets an object's properties on an existing one.
    private func merge(_ object: ObjectBase, _ schema: ModelSchema, _ type: Int, _ key: Value, into existing: Row) {
        object._row = _RowCache(core: self, schema: schema, type: type, key: key, row: existing)
        var changes: [(slot: Int, value: Value)] = []
        for slot in 0..<schema.storedCount where slot != schema.primaryKeySlot {
            if adding.isPartial, let assigned = object.assigned, !assigned.contains(slot) { continue }
            let value = schema.take(object, slot: slot, owner: object).value.value
            if adding.update == .modified, existing[slot] ?? .null == value { continue }
            changes.append((slot, value))
        }
        change { transaction throws(SluiceError) in
            for (slot, value) in changes { try transaction.set(type: type, key: key, property: slot, value) }
        }
        for change in changes { observations.wrote(type, key, change.slot) }
        let shown = reading.row(type, key) ?? existing
        schema.bind(object, to: _RowCache(core: self, schema: schema, type: type, key: key, row: shown), attaching: true)
    }

    /// Queues an asymmetric object for upload. The object cannot be used afterwards.
    private func send(_ object: ObjectBase, _ schema: ModelSchema, _ type: Int, _ key: Value) {
        object._row = _RowCache(core: self, schema: schema, type: type, key: key)
        var (values, defaults): ([String: Value], Set<String>) = ([:], [])
        for slot in 0..<schema.storedCount where slot != schema.primaryKeySlot {
            let (value, isGiven) = schema.take(object, slot: slot, owner: object)
            values[schema.properties[slot].column] = value.value
            if !isGiven { defaults.insert(schema.properties[slot].column) }
        }
        change { transaction throws(SluiceError) in
            try transaction.create(type: type, key: key, values: values, defaults: defaults)
        }
        object._row = nil
        object.isConsumed = true
    }
}
