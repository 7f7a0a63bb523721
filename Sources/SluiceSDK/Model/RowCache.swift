import SluiceCore
import SluiceReplica

/// The clock of a Realm. A row whose generation differs from the clock's must be read again.
public final class _RealmClock {
    /// The memory that rows compare with, the generation and then the epoch. A pointer costs no reference counting.
    let address: UnsafeMutablePointer<UInt64>

    /// A number from 1 that grows whenever the Realm sees another state of its file, including its own writes.
    package var generation: UInt64 {
        get { address.pointee }
        set { address.pointee = newValue }
    }

    /// A number that grows when the app invalidates the Realm. It invalidates all earlier objects.
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

/// The header of a row's memory. The values follow, one per slot, in the order of the class's properties.
///
/// Public because inlined accessors refer to it; not for apps.
@frozen public struct _RowHead {
    /// The generation of the values; 0 while not all of them are loaded.
    @usableFromInline var generation: UInt64
    @usableFromInline let clock: UnsafeMutablePointer<UInt64>
    /// The generation at which a loop loaded some of the values, 0 for none, followed by the set of their slots.
    @usableFromInline var partGeneration: UInt64 = 0
    @usableFromInline var partSlots: UInt64 = 0

    init(_ clock: UnsafeMutablePointer<UInt64>) {
        generation = 0
        self.clock = clock
    }

    /// `true` if a loop has loaded the value of a slot at the Realm's generation.
    func hasPart(_ slot: Int) -> Bool { partGeneration == clock.pointee && SlotSet(bits: partSlots).contains(slot) }

    @inlinable static func values(_ head: UnsafeMutablePointer<_RowHead>) -> UnsafeMutablePointer<_StoredValue> {
        UnsafeMutableRawPointer(head + 1).assumingMemoryBound(to: _StoredValue.self)
    }
}

/// The values of a managed object at `generation`. They are read again after the Realm has advanced.
public final class _RowCache {
    @usableFromInline let head: UnsafeMutablePointer<_RowHead>
    let count: Int
    let core: RealmCore
    let schema: ModelSchema
    /// The index of the class in the Realm's file; -1 for an embedded object.
    let type: Int
    /// The primary key; null for an embedded object.
    private(set) var key: Value
    /// The place of an embedded object; nil for an object with a row of its own.
    let place: _Place?
    /// `true` if the object was not in the Realm any more when it was last read.
    private(set) var isInvalidated = false
    /// The Realm's epoch when the row was created. A later epoch means that the app has invalidated the Realm.
    private let epoch: UInt64
    /// The usage profile of the loop that loaded some of the values; nil otherwise.
    private var profile: LoopProfile?

    /// Reuses the row of a loop for another object. The caller must hold the only reference.
    /// - Returns: the memory for the values; nil if the row cannot be reused.
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
        epoch = core.clock.epoch
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

    /// Creates a row whose values follow later or are read on first use.
    convenience init(core: RealmCore, schema: ModelSchema, type: Int, key: Value) {
        self.init(core: core, schema: schema, type: type, key: key, place: nil)
    }

    /// Creates a row of a loop with the values of some slots.
    convenience init(core: RealmCore, schema: ModelSchema, type: Int, key: Value, having slots: SlotSet, for profile: LoopProfile) {
        self.init(core: core, schema: schema, type: type, key: key, place: nil)
        self.profile = profile
        setPart(slots)
    }

    private func setPart(_ slots: SlotSet) {
        head.pointee.partGeneration = head.pointee.clock.pointee
        head.pointee.partSlots = slots.bits
    }

    /// Creates the row of an embedded object, read on first use. A frozen one is read at once, because any thread may use it first.
    convenience init(core: RealmCore, schema: ModelSchema, place: _Place) {
        self.init(core: core, schema: schema, type: -1, key: .null, place: place)
        for slot in 0..<count { values[slot] = _StoredValue(schema.properties[slot].absent) }
        if core.isFrozen { reload() }
    }

    /// Loads the value of a slot of a stale row at the Realm's current state.
    @usableFromInline func load(_ slot: Int) {
        if head.pointee.hasPart(slot) { return }
        // The loop reads this slot ahead for its next rows.
        profile?.used.insert(slot)
        reload()
    }

    /// Reads the row again. A row that is gone keeps its last values and becomes invalidated.
    func reload() {
        // The whole row is read now: the loop's part no longer counts.
        profile = nil
        head.pointee.partGeneration = 0
        generation = core.clock.generation
        if epoch != core.clock.epoch {
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
        guard let row = core.reading.accessorRow(type, key) else {
            isInvalidated = true
            return
        }
        // A deleted object exists again after a rollback.
        isInvalidated = false
        for slot in 0..<count { values[slot] = _StoredValue(row[slot] ?? .null) }
    }

    /// `true` if all values are of the Realm's current state.
    var isFresh: Bool { head.pointee.generation == head.pointee.clock.pointee }

    /// `true` if the object does not exist at the Realm's current state.
    var isGone: Bool {
        // The rows of a loop exist at the state at which they were read.
        if head.pointee.partGeneration == head.pointee.clock.pointee { return false }
        if !isFresh { reload() }
        return isInvalidated
    }

    /// Marks a fresh row as current after an edit in place of the collection in a slot.
    /// The collection is dropped from the row: a second reference would make the next edit copy it.
    func keepFresh(but slot: Int) {
        values[slot] = .null
        generation = core.clock.generation
    }

    /// Returns the current value of a property; nil if the object is gone.
    func current(_ slot: Int) -> Value? {
        // An embedded object has no row: its values are those of its place.
        let transaction = place == nil ? core.reading.transaction : nil
        // The row reads a collection that is edited in place as null; the transaction has its value.
        if let edited = transaction?.shownCollection(type: type, key: key, property: slot) { return edited.value }
        if !isFresh { load(slot) }
        // A collection is not kept here while it is edited in place (`keepFresh`). Now the table has it again.
        if transaction != nil, case .null = values[slot].value, schema.properties[slot].kind.collection != .none { reload() }
        return isInvalidated ? nil : values[slot].value
    }

    /// Writes a property, in a write transaction only.
    @usableFromInline func write(_ slot: Int, _ value: _StoredValue) { write(slot, value, by: nil) }

    /// Writes a property.
    /// - Parameter edit: the changed part of the value; nil: all of it.
    func write(_ slot: Int, _ value: _StoredValue, by edit: ShownEdit?) {
        if schema.primaryKeySlot == slot {
            if value.value == key { return }
            throwRealmException("Primary key can't be changed after an object is inserted.")
        }
        core.transactions.requireTransaction()
        // Before the write, which advances the clock.
        let wasFresh = isFresh
        if isInvalidated || place?.isGone == true { throwRealmException(RealmMisuse.invalidated) }
        if case .null = value, schema.isRequired(slot) { schema.refuseNull(slot) }
        if let place {
            place.write(value.value, toField: schema.properties[slot].column, by: edit)
        } else {
            core.transactions.set(type, key, slot, value.value, by: edit)
        }
        // A stale row stays stale: the other properties are read again on their next use.
        if wasFresh {
            values[slot] = value
            generation = core.clock.generation
        }
    }
}

/// A set of slots below 64. Higher slots are never members.
struct SlotSet {
    static let capacity = 64
    private(set) var bits: UInt64

    init(bits: UInt64 = 0) { self.bits = bits }

    func contains(_ slot: Int) -> Bool { slot < SlotSet.capacity && bits & (1 << UInt64(slot)) != 0 }
    mutating func insert(_ slot: Int) { if slot < SlotSet.capacity { bits |= 1 << UInt64(slot) } }
    var slots: [Int] { (0..<SlotSet.capacity).filter(contains) }
}

/// The properties that the body of a loop has read; the loop reads them ahead for its next rows.
final class LoopProfile {
    var used = SlotSet()
}
