import SluiceCore
import SluiceReplica

/// What tells the accessors of a Realm that the rows they have read may be old.
public final class _RealmClock {
    /// Where rows look: a pointer costs no reference counting. The generation, then the epoch.
    let address: UnsafeMutablePointer<UInt64>

    /// Grows whenever the Realm sees another state of its file, its own writes included; 1 and up.
    package var generation: UInt64 {
        get { address.pointee }
        set { address.pointee = newValue }
    }

    /// Grows when the app invalidates the Realm: what was got from it before is of no use any more.
    var epoch: UInt64 {
        get { address[1] }
        set { address[1] = newValue }
    }

    init() {
        address = .allocate(capacity: 2)
        address.initialize(to: 1)
        (address + 1).initialize(to: 0)
    }

    deinit { address.deallocate() }
}

/// The begin of a row's memory; the values follow, one per slot, in the order of the class's properties.
///
/// Public because inlined accessors name it; apps have no use for it.
@frozen public struct _RowHead {
    /// The state that the values are of; 0 when not all of them are there.
    @usableFromInline var generation: UInt64
    @usableFromInline let clock: UnsafeMutablePointer<UInt64>
    /// Of which state a loop has read a part of the values, 0: of none; and which.
    @usableFromInline var partGeneration: UInt64 = 0
    @usableFromInline var partSlots: UInt64 = 0

    init(_ clock: UnsafeMutablePointer<UInt64>) {
        generation = 0
        self.clock = clock
    }

    /// Whether a loop has read the value of a slot at the Realm's state.
    func hasPart(_ slot: Int) -> Bool { partGeneration == clock.pointee && SlotSet(bits: partSlots).contains(slot) }

    @inlinable static func values(_ head: UnsafeMutablePointer<_RowHead>) -> UnsafeMutablePointer<_StoredValue> {
        UnsafeMutableRawPointer(head + 1).assumingMemoryBound(to: _StoredValue.self)
    }
}

/// The values of a managed object as they were at `generation`; read again when the Realm has moved on.
public final class _RowCache {
    @usableFromInline let head: UnsafeMutablePointer<_RowHead>
    let count: Int
    let core: RealmCore
    let schema: ModelSchema
    /// Index of the class in the Realm's file; -1 for an embedded object.
    let type: Int
    /// The primary key; null for an embedded object.
    private(set) var key: Value
    /// Where an embedded object is kept; nil for an object with a row of its own.
    let place: _Place?
    /// The object is not in the Realm any more.
    private(set) var isInvalidated = false
    /// The Realm's when this was made; another one means that the Realm was invalidated.
    private let epoch: UInt64
    /// For a row of which a loop has read a part: who wants to know what else is used.
    private var profile: LoopProfile?

    /// Makes the row of a loop that of another object; nobody else may have it.
    /// - Returns: where the values belong; nil when it cannot be used again.
    func restart(key: Value, having slots: SlotSet) -> UnsafeMutablePointer<_StoredValue>? {
        guard profile != nil, epoch == head.pointee.clock[1] else { return nil }
        self.key = key
        setPart(slots)
        return values
    }

    var values: UnsafeMutablePointer<_StoredValue> { _RowHead.values(head) }

    var generation: UInt64 {
        get { head.pointee.generation }
        set { head.pointee.generation = newValue }
    }

    private init(core: RealmCore, schema: ModelSchema, type: Int, key: Value, place: _Place?) {
        self.core = core
        epoch = core.epoch
        self.schema = schema
        self.type = type
        self.key = key
        self.place = place
        count = schema.properties.count
        let size = MemoryLayout<_RowHead>.size + count * MemoryLayout<_StoredValue>.stride
        head = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: MemoryLayout<_StoredValue>.alignment)
            .bindMemory(to: _RowHead.self, capacity: 1)
        head.initialize(to: _RowHead(core.clock.address))
        UnsafeMutableRawPointer(head + 1).initializeMemory(as: _StoredValue.self, repeating: .null, count: count)
    }

    deinit {
        values.deinitialize(count: count)
        head.deallocate()
    }

    convenience init(core: RealmCore, schema: ModelSchema, type: Int, key: Value, row: Row) {
        self.init(core: core, schema: schema, type: type, key: key, place: nil)
        for slot in 0..<count { values[slot] = _StoredValue(row[slot] ?? .null) }
        generation = core.clock.generation
    }

    /// A row whose values come later, or are read on first use.
    convenience init(core: RealmCore, schema: ModelSchema, type: Int, key: Value) {
        self.init(core: core, schema: schema, type: type, key: key, place: nil)
    }

    /// A row of a loop that has the values of some slots.
    convenience init(core: RealmCore, schema: ModelSchema, type: Int, key: Value, having slots: SlotSet, for profile: LoopProfile) {
        self.init(core: core, schema: schema, type: type, key: key, place: nil)
        self.profile = profile
        setPart(slots)
    }

    private func setPart(_ slots: SlotSet) {
        head.pointee.partGeneration = head.pointee.clock.pointee
        head.pointee.partSlots = slots.bits
    }

    /// The values of an embedded object, read on first use; of a frozen one at once, since any thread may be the first.
    convenience init(core: RealmCore, schema: ModelSchema, place: _Place) {
        self.init(core: core, schema: schema, type: -1, key: .null, place: place)
        for slot in 0..<count { values[slot] = _StoredValue(schema.properties[slot].absent) }
        if core.isFrozen { reload() }
    }

    /// Makes the value of a slot one of the Realm's current state; for rows that are not `generation`'s.
    @usableFromInline func load(_ slot: Int) {
        if head.pointee.hasPart(slot) { return }
        profile?.used.insert(slot)
        reload()
    }

    /// Reads the row again. A row that is gone keeps its last values and is invalidated.
    func reload() {
        profile = nil
        head.pointee.partGeneration = 0
        generation = core.clock.generation
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
        guard let row = core.accessorRow(type, key) else {
            isInvalidated = true
            return
        }
        isInvalidated = false
        for slot in 0..<count { values[slot] = _StoredValue(row[slot] ?? .null) }
    }

    /// Whether all values are of the Realm's current state.
    var isFresh: Bool { head.pointee.generation == head.pointee.clock.pointee }

    /// Whether the object is gone now.
    var isGone: Bool {
        // The rows of a loop were there at the state that they are of.
        if head.pointee.partGeneration == head.pointee.clock.pointee { return false }
        if !isFresh { reload() }
        return isInvalidated
    }

    /// Makes the values those of the Realm's current state, after an edit in place of the collection in a slot. That one is not kept here:
    /// it would be copied by the next edit.
    func keepFresh(but slot: Int) {
        values[slot] = .null
        generation = core.clock.generation
    }

    /// The value of a property now; nil when the object is gone.
    func current(_ slot: Int) -> Value? {
        if place == nil, let edited = core.transaction?.shownCollection(type: type, key: key, property: slot) { return edited.value }
        if !isFresh { load(slot) }
        // A collection is not kept here while it is edited in place (`keepFresh`). Now the table has it again.
        if case .null = values[slot].value, place == nil, core.transaction != nil, schema.properties[slot].kind.collection != .none {
            reload()
        }
        return isInvalidated ? nil : values[slot].value
    }

    /// Writes a property; only inside a write transaction.
    @usableFromInline func write(_ slot: Int, _ value: _StoredValue) { write(slot, value, by: nil) }

    /// - Parameter edit: what of the value is new; nil: all.
    func write(_ slot: Int, _ value: _StoredValue, by edit: ShownEdit?) {
        if schema.primaryKeySlot == slot {
            if value.value == key { return }
            throwRealmException("Primary key can't be changed after an object is inserted.")
        }
        core.requireTransaction()
        let wasFresh = isFresh
        if isInvalidated || place?.isGone == true { throwRealmException(RealmMisuse.invalidated) }
        if case .null = value, schema.isRequired(slot) { schema.refuseNull(slot) }
        if let place {
            place.write(value.value, toField: schema.properties[slot].column, by: edit)
        } else {
            core.set(type, key, slot, value.value, by: edit)
        }
        // What was old before stays so: the other properties are read again on their next use.
        if wasFresh {
            values[slot] = value
            generation = core.clock.generation
        }
    }
}

/// A set of slots below 64.
struct SlotSet {
    static let capacity = 64
    private(set) var bits: UInt64

    init(bits: UInt64 = 0) { self.bits = bits }

    func contains(_ slot: Int) -> Bool { slot < SlotSet.capacity && bits & (1 << UInt64(slot)) != 0 }
    mutating func insert(_ slot: Int) { if slot < SlotSet.capacity { bits |= 1 << UInt64(slot) } }
    var slots: [Int] { (0..<SlotSet.capacity).filter(contains) }
}

/// Which properties the body of a loop has used, so that the next rows are read with them.
final class LoopProfile {
    var used = SlotSet()
}
