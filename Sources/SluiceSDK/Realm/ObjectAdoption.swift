import SluiceCore
import SluiceReplica

/// The conversion of unmanaged objects to managed ones, in place. Confined to the Realm's scheduler.
final class ObjectAdoption {
    /// The policy for objects that are added together with the one that links to them.
    private struct Policy {
        var update: Realm.UpdatePolicy
        /// `true` if properties that were not given keep their values.
        var isPartial: Bool
    }

    /// The values of one object by slot, and `true` for each value that the app gave.
    private typealias Buffers = (values: [Value], given: [Bool])

    private var policy = Policy(update: .error, isPartial: false)
    private var buffers: Buffers = ([], [])
    /// The class of the last object. Objects that are added one after another usually have one class.
    private var lastClass: (objectClass: ObjectIdentifier, schema: ModelSchema, type: Int)?

    /// Turns an unmanaged object into one of this Realm, in place.
    /// - Parameter isPartial: `true` if an existing object keeps the properties that the app did not give.
    func add(_ object: ObjectBase, update: Realm.UpdatePolicy, isPartial: Bool, to core: RealmCore) {
        if object.managingCore === core, object.isGone {
            throwRealmException("Adding a deleted or invalidated object to a Realm is not permitted")
        }
        let outer = policy
        if update != .error, object._row == nil, object.model.hasHiddenKey {
            throwRealmException("'\(object.model.name)' does not have a primary key and can not be updated")
        }
        policy = Policy(update: update, isPartial: isPartial)
        defer { policy = outer }
        adopt(object, in: core)
    }

    /// Adds a linked object under the policy of the object that links to it. Traps if another Realm manages it.
    func adopt(_ object: ObjectBase, in core: RealmCore) {
        if let row = object._row {
            if row.core === core { return }
            throwRealmException("Object is already managed by another Realm. Use create instead to copy it into this Realm.")
        }
        if object.isConsumed { throwRealmException("Adding a deleted or invalidated object to a Realm is not permitted") }
        core.transactions.requireTransaction()
        let (schema, type) = model(of: type(of: object), in: core)
        if schema.hasHiddenKey { return insert(object, schema, type, newKey(type, in: core), in: core) }
        let key = schema.primaryKey(of: object)
        if case .null = key { throwRealmException("Invalid null value for the primary key of '\(schema.name)'.") }
        guard schema.objectClass is Object.Type else { return send(object, schema, type, key, in: core) }
        if policy.update != .error, let existing = core.reading.row(type, key) {
            return merge(object, schema, type, key, into: existing, in: core)
        }
        insert(object, schema, type, key, in: core)
    }

    /// The schema of a class and its index in the file. Traps if the Realm does not have the class.
    private func model(of objectClass: ObjectBase.Type, in core: RealmCore) -> (schema: ModelSchema, type: Int) {
        if let last = lastClass, last.objectClass == ObjectIdentifier(objectClass) { return (last.schema, last.type) }
        let type = core.classes.type(of: objectClass)
        let schema = core.classes.schema(type)
        lastClass = (ObjectIdentifier(objectClass), schema, type)
        return (schema, type)
    }

    private func newKey(_ type: Int, in core: RealmCore) -> Value {
        var key = Value.null
        core.transactions.change { transaction throws(SluiceError) in key = try transaction.newKey(type: type) }
        return key
    }

    /// Buffers for the values of one object. Taking them leaves empty ones for an object that is added recursively.
    private func takeBuffers() -> Buffers {
        defer { buffers = ([], []) }
        buffers.values.removeAll(keepingCapacity: true)
        buffers.given.removeAll(keepingCapacity: true)
        return buffers
    }

    private func insert(_ object: ObjectBase, _ schema: ModelSchema, _ type: Int, _ key: Value, in core: RealmCore) {
        let row = _RowCache(core: core, schema: schema, type: type, key: key)
        // Bind before reading the properties: a linked object that links back then finds this one as managed.
        object._row = row
        var (values, given) = takeBuffers()
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
        core.transactions.change { transaction throws(SluiceError) in
            isNew = try transaction.insert(type: type, key: key, values: values, given: given)
        }
        buffers = (values, given)
        if !isNew {
            throwRealmException(
                "Attempting to create an object of type '\(schema.name)' with an existing primary key value '\(RQLText.literal(key))'.")
        }
        schema.bind(object, to: row, attaching: true)
        row.generation = core.clock.generation
    }

    /// Sets an object's properties on an existing one.
    private func merge(
        _ object: ObjectBase, _ schema: ModelSchema, _ type: Int, _ key: Value, into existing: Row, in core: RealmCore
    ) {
        object._row = _RowCache(core: core, schema: schema, type: type, key: key, row: existing)
        var changes: [(slot: Int, value: Value)] = []
        for slot in 0..<schema.storedCount where slot != schema.primaryKeySlot {
            if policy.isPartial, let assigned = object.assigned, !assigned.contains(slot) { continue }
            let value = schema.take(object, slot: slot, owner: object).value.value
            if policy.update == .modified, existing[slot] ?? .null == value { continue }
            changes.append((slot, value))
        }
        core.transactions.change { transaction throws(SluiceError) in
            for (slot, value) in changes { try transaction.set(type: type, key: key, property: slot, value) }
        }
        for change in changes { core.observations.wrote(type, key, change.slot) }
        let shown = core.reading.row(type, key) ?? existing
        schema.bind(object, to: _RowCache(core: core, schema: schema, type: type, key: key, row: shown), attaching: true)
    }

    /// Queues an asymmetric object for upload. The object cannot be used afterwards.
    private func send(_ object: ObjectBase, _ schema: ModelSchema, _ type: Int, _ key: Value, in core: RealmCore) {
        object._row = _RowCache(core: core, schema: schema, type: type, key: key)
        var (values, defaults): ([String: Value], Set<String>) = ([:], [])
        for slot in 0..<schema.storedCount where slot != schema.primaryKeySlot {
            let (value, isGiven) = schema.take(object, slot: slot, owner: object)
            values[schema.properties[slot].column] = value.value
            if !isGiven { defaults.insert(schema.properties[slot].column) }
        }
        core.transactions.change { transaction throws(SluiceError) in
            try transaction.create(type: type, key: key, values: values, defaults: defaults)
        }
        object._row = nil
        object.isConsumed = true
    }
}
