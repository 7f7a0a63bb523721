package import SluiceCore

/// A property's value in the row cache of an object.
///
/// Public because inlined accessors name it; apps have no use for it.
@frozen public enum _StoredValue {
    case null
    case bool(Bool)
    case int(Int64)
    case float(Float)
    case double(Double)
    case string(String)
    /// Everything else.
    case boxed(_BoxedValue)
}

/// A value that has no case of its own in `_StoredValue`.
public final class _BoxedValue: Sendable {
    package let value: Value
    package init(_ value: Value) { self.value = value }
}

extension _StoredValue {
    package init(_ value: Value) {
        switch value {
        case .null: self = .null
        case .bool(let v): self = .bool(v)
        case .int(let v): self = .int(v)
        case .float(let v): self = .float(v)
        case .double(let v): self = .double(v)
        case .string(let v): self = .string(v)
        default: self = .boxed(_BoxedValue(value))
        }
    }

    package var value: Value {
        switch self {
        case .null: .null
        case .bool(let v): .bool(v)
        case .int(let v): .int(v)
        case .float(let v): .float(v)
        case .double(let v): .double(v)
        case .string(let v): .string(v)
        case .boxed(let box): box.value
        }
    }
}

/// What tells the accessors of a Realm that the rows they have read may be old.
public final class _RealmClock {
    /// Grows whenever the Realm sees another state of its file, its own writes included.
    // Unchecked because: it is confined like its Realm, and every access of a property reads it.
    @exclusivity(unchecked) @usableFromInline package final var generation: UInt64 = 1
}

/// The values of a managed object as they were at `generation`; read again when the Realm has moved on.
public final class _RowCache {
    /// One per slot, in the order of the class's properties.
    @usableFromInline let values: UnsafeMutablePointer<_StoredValue>
    // Unchecked because: as in `_RealmClock`.
    @exclusivity(unchecked) @usableFromInline final var generation: UInt64
    @usableFromInline let clock: _RealmClock
    let count: Int
    let core: RealmCore
    let schema: ModelSchema
    /// Index of the class in the Realm's file; -1 for an embedded object.
    let type: Int
    /// The primary key; null for an embedded object.
    let key: Value
    /// Where an embedded object is kept; nil for an object with a row of its own.
    let place: _Place?
    /// The object is not in the Realm any more.
    private(set) var isInvalidated = false
    /// The core's when this was made; another one means that the Realm was invalidated.
    private let epoch: UInt64

    init(core: RealmCore, schema: ModelSchema, type: Int, key: Value, row: Row) {
        self.core = core
        epoch = core.epoch
        self.schema = schema
        self.type = type
        self.key = key
        place = nil
        count = schema.properties.count
        values = .allocate(capacity: count)
        for slot in 0..<count { (values + slot).initialize(to: _StoredValue(row[slot] ?? .null)) }
        clock = core.clock
        generation = core.clock.generation
    }

    deinit {
        values.deinitialize(count: count)
        values.deallocate()
    }

    /// The values of an embedded object, read on first use; of a frozen one at once, since any thread may be the first.
    init(core: RealmCore, schema: ModelSchema, place: _Place) {
        self.core = core
        epoch = core.epoch
        self.schema = schema
        self.place = place
        type = -1
        key = .null
        count = schema.properties.count
        values = .allocate(capacity: count)
        for slot in 0..<count { (values + slot).initialize(to: _StoredValue(schema.properties[slot].absent)) }
        clock = core.clock
        generation = core.clock.generation &- 1
        if core.isFrozen { reload() }
    }

    /// Reads the row again. A row that is gone keeps its last values and is invalidated.
    @usableFromInline func reload() {
        generation = clock.generation
        if epoch != core.epoch {
            isInvalidated = true
            return
        }
        if let place {
            guard case .dictionary(let fields)? = place.value else {
                isInvalidated = true
                return
            }
            isInvalidated = false
            for (slot, property) in schema.properties.enumerated() {
                values[slot] = _StoredValue(fields[property.column] ?? property.absent)
            }
            return
        }
        guard let row = core.row(type, key) else {
            isInvalidated = true
            return
        }
        isInvalidated = false
        for slot in 0..<count { values[slot] = _StoredValue(row[slot] ?? .null) }
    }

    /// The value of a property now; nil when the object is gone.
    func current(_ slot: Int) -> Value? {
        if generation != clock.generation { reload() }
        return isInvalidated ? nil : values[slot].value
    }

    /// Writes a property; only inside a write transaction.
    @usableFromInline func write(_ slot: Int, _ value: _StoredValue) {
        if schema.primaryKeySlot == slot {
            if value.value == key { return }
            throwRealmException("Primary key can't be changed after an object is inserted.")
        }
        core.requireTransaction()
        let isFresh = generation == clock.generation
        if isInvalidated || place?.isGone == true { throwRealmException(RealmMisuse.invalidated) }
        if let place {
            guard case .dictionary(var fields)? = place.value else { throwRealmException(RealmMisuse.invalidated) }
            fields[schema.properties[slot].column] = value.value
            place.write(.dictionary(fields))
        } else {
            core.set(type, key, slot, value.value)
        }
        // What was old before stays so: the other properties are read again on their next use.
        if isFresh {
            values[slot] = value
            generation = clock.generation
        }
    }
}
