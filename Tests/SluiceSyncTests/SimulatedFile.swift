import SluiceCore
import SluiceMerge
import SluiceReplica
import SluiceSync

let itemType = ObjectType(
    name: "Item",
    properties: [
        Property(id: 11, name: "_id", type: .int), Property(id: 12, name: "store", type: .string),
        Property(id: 13, name: "value", type: .string), Property(id: 14, name: "count", type: .int),
        Property(id: 15, name: "tags", type: .string, collection: .list),
    ])
let readingType = ObjectType(
    name: "Reading", kind: .asymmetric,
    properties: [Property(id: 21, name: "_id", type: .int), Property(id: 22, name: "level", type: .int)])

/// The gateway's schema; the client's has other numbers and another order.
let serverTypes = Schema([readingType, itemType])
let clientTypes = Schema([
    ObjectType(
        name: "Item",
        properties: [
            Property(id: 1, name: "value", type: .string), Property(id: 2, name: "_id", type: .int),
            Property(id: 3, name: "store", type: .string), Property(id: 4, name: "count", type: .int),
            Property(id: 5, name: "tags", type: .string, collection: .list),
        ]),
    ObjectType(
        name: "Reading", kind: .asymmetric,
        properties: [Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "level", type: .int)]),
])

struct Item: Hashable {
    var store: String
    var value: String
    var count: Int64 = 0
    var tags: [String] = []

    init(store: String, value: String) {
        self.store = store
        self.value = value
    }

    /// By property name, as merging has it.
    init(_ values: [String: Value]) {
        func text(_ value: Value?) -> String { if case .string(let text)? = value { text } else { "" } }
        self.init(store: text(values["store"]), value: text(values["value"]))
        if case .int(let count)? = values["count"] { self.count = count }
        if case .list(let tags)? = values["tags"] { self.tags = tags.map { text($0) } }
    }

    var values: [String: Value] {
        ["store": .string(store), "value": .string(value), "count": .int(count), "tags": .list(tags.map { .string($0) })]
    }

    func row(_ key: Int64, _ type: ObjectType) -> Row {
        Row(type.properties.map { $0.name == "_id" ? .int(key) : values[$0.name] })
    }
}

/// A subscription set of stores; `bad` is refused by the gateway.
func set(_ version: UInt64, _ stores: [String], state: SubscriptionState = .pending, before: UInt64 = 0) -> StoredSubscriptionSet {
    StoredSubscriptionSet(
        version: version, state: version == 0 ? .complete : state,
        subscriptions: stores.enumerated().map { index, store in
            StoredSubscription(
                id: UInt64(index), name: nil, type: "Item", query: store, created: Timestamp(seconds: 0), updated: Timestamp(seconds: 0))
        },
        changesetsBefore: before)
}

/// The replica as the specification has it, in a few lines: the slow, obvious version that the machine is run against.
struct SimulatedFile {
    struct Pending {
        var changeset: Changeset
        var acknowledged: LSN?
    }

    var identity: ReplicaIdentity?
    var applied = AppliedPosition(lsn: .zero, version: 0)
    var compensation: UInt64 = 0
    var server: [Int64: Item] = [:]
    var pending: [Pending] = []
    var changesets: UInt64 = 0
    /// The last changeset that the server's rows have.
    var taken: UInt64 = 0
    var clock = HybridClock()
    var tag: UInt64 = 0
    var sets = [set(0, [])]
    var readings: [ObjectChange] = []
    var batches: [IngestBatch] = []
    var ingestNumber: UInt64 = 0
    var staged: [Int64: Item]?
    /// What was staged before a bootstrap went on, and what that is in the gateway's words.
    var aside: [Int64: Item] = [:]
    var checkpoint: [UInt8] = []
    var removed: Set<Int64> = []
    var kept: Set<Int64> = []
    var held: [UInt8] = []
    /// Compensations that the app was told about, in order.
    var told: [UInt64] = []
    /// It has forgotten what it was told: what the gateway does not know of comes again.
    var isRestored = false
    var refusedObjects: Set<Int64> = []
    /// What is wrong with it on purpose, and what it has not shown yet because of that.
    var defect: SimulatedDefect?
    private var torn: [(key: Int64, item: Item?)] = []

    var latest: StoredSubscriptionSet { sets[sets.count - 1] }

    private static let itemType = clientTypes.types[0]

    /// Server state with the pending changes on top.
    func shown(_ key: Int64) -> Item? { state(key)?.values.map { Item($0) } }

    /// The same with the names of the places in it; nil when something cannot be merged, which is never.
    func state(_ key: Int64) -> ObjectState? {
        let changes = pending.flatMap(\.changeset.changes).filter { $0.object.key == .int(key) }
        return try? Overlay.state(server: server[key]?.values, pending: changes, type: Self.itemType)
    }

    var shown: [Int64: Item] {
        var keys = Set(server.keys)
        for change in pending.flatMap(\.changeset.changes) { if case .int(let key) = change.object.key { keys.insert(key) } }
        var all: [Int64: Item] = [:]
        for key in keys { all[key] = shown(key) }
        return all
    }

    // MARK: The app

    /// A change with what the server has, as far as the file knows.
    private func withSeen(_ change: ObjectChange) -> ObjectChange {
        guard change.kind != .delete, case .int(let key) = change.object.key, let row = server[key]?.values else { return change }
        var change = change
        for name in Array(change.values.keys) + Array(change.counters.keys) + change.edits.map(\.property) {
            change.seen[name] = ValueHash(row[name] ?? .null)
        }
        return change
    }

    mutating func write(_ key: Int64, _ item: Item?, at wall: Int64) {
        var change = ObjectChange(object: ObjectKey(type: "Item", key: .int(key)), kind: item == nil ? .delete : .create)
        if let item { change.values = ["store": .string(item.store), "value": .string(item.value)] }
        write([change], at: wall)
    }

    /// - Parameter wall: what the device's clock says.
    mutating func write(_ changes: [ObjectChange], at wall: Int64) {
        changesets += 1
        let changes = changes.map(withSeen)
        let changeset = Changeset(number: changesets, time: clock.tick(now: wall), base: applied.lsn, changes: changes)
        pending.append(Pending(changeset: changeset, acknowledged: nil))
    }

    mutating func add(_ amount: Int64, to key: Int64, at wall: Int64) {
        write([ObjectChange(object: ObjectKey(type: "Item", key: .int(key)), kind: .set, counters: ["count": amount])], at: wall)
    }

    /// Does something to the tags of an item that is shown. - Returns: the tag that was removed, if one was.
    mutating func editTags(_ key: Int64, insert text: String?, pick: Int, at wall: Int64) -> String? {
        guard let state = state(key), let place = ShownPlace(state, Self.itemType.properties[4], []),
            case .list(let tags) = place.value
        else { return nil }
        tag += 1
        var edit = Edit("tags", .insert(.string(text ?? ""), after: place.element(pick % (tags.count + 1) - 1), tag: tag))
        var removed: String?
        if text == nil {
            guard let element = place.element(pick % max(tags.count, 1)) else { return nil }
            if pick % 3 == 0 {
                edit = Edit("tags", [.element(element)], .move(after: nil, tag: tag))
            } else {
                edit = Edit("tags", [.element(element)], .remove)
                if case .string(let text) = tags[pick % tags.count] { removed = text }
            }
        }
        write([ObjectChange(object: ObjectKey(type: "Item", key: .int(key)), kind: .set, edits: [edit])], at: wall)
        return removed
    }

    mutating func ingest(_ key: Int64) {
        readings.append(ObjectChange(object: ObjectKey(type: "Reading", key: .int(key)), kind: .create, values: ["level": .int(key)]))
    }

    mutating func subscribe(_ stores: [String]) { sets.append(set(latest.version + 1, stores, before: changesets)) }

    // MARK: The engine

    var local: LocalState {
        let waiting = pending.first { $0.acknowledged == nil }?.changeset
        return LocalState(
            identity: identity, applied: applied, held: held, checkpoint: checkpoint, compensation: compensation,
            firstUnacknowledged: waiting?.number, oldestBase: min(waiting?.base ?? applied.lsn, applied.lsn))
    }

    mutating func read(_ query: LocalQuery) -> LocalPending {
        var answer = LocalPending(sets: sets.filter { $0.version >= applied.version })
        if let number = query.changesetsAfter {
            answer.changesets = Array(
                pending.filter { $0.acknowledged == nil && $0.changeset.number > number }.prefix(3).map(\.changeset))
        }
        if let number = query.ingestAfter {
            if batches.last?.number ?? 0 <= number, !readings.isEmpty {
                ingestNumber = max(ingestNumber, number, query.ingestTaken) + 1
                batches.append(IngestBatch(number: ingestNumber, objects: Array(readings.prefix(2))))
                readings.removeFirst(min(2, readings.count))
            }
            answer.ingest = batches.first { $0.number > number }
        }
        return answer
    }

    /// What waits to be uploaded is numbered anew behind a changeset that the gateway has and this file did not make.
    mutating func renumber(after last: UInt64, time: HybridTime) {
        if defect == .restored { return }
        let waiting = pending.indices.filter { pending[$0].acknowledged == nil }
        let isAnother = waiting.contains { pending[$0].changeset.number == last && pending[$0].changeset.time != time }
        guard last > changesets || isAnother else { return }
        clock = HybridClock(last: max(clock.last, time))
        var renaming = TagRenaming(era: last)
        tag = renaming.renamed(tag)
        for edit in waiting.flatMap({ pending[$0].changeset.changes }).flatMap(\.edits) { renaming.add(edit) }
        for index in waiting {
            for change in pending[index].changeset.changes.indices {
                for edit in pending[index].changeset.changes[change].edits.indices {
                    renaming.apply(to: &pending[index].changeset.changes[change].edits[edit])
                }
            }
        }
        changesets = last
        var numbers: [UInt64: UInt64] = [:]
        for index in waiting {
            changesets += 1
            numbers[pending[index].changeset.number] = changesets
            pending[index].changeset.number = changesets
        }
        for index in sets.indices { sets[index].changesetsBefore = numbers[sets[index].changesetsBefore] ?? sets[index].changesetsBefore }
    }

    mutating func acknowledge(_ number: UInt64, _ lsn: LSN, _ futile: [FutileWrite]) {
        for write in futile {
            let deletion = ObjectChange(object: write.object, kind: .delete)
            for index in pending.indices where pending[index].changeset.number <= write.changeset {
                let changes = pending[index].changeset.changes
                pending[index].changeset.changes = changes.map { $0.object == write.object ? deletion : $0 }
            }
        }
        for index in pending.indices where pending[index].changeset.number <= number && pending[index].acknowledged == nil {
            pending[index].acknowledged = lsn
        }
        if defect == .reread { pending.removeAll { $0.acknowledged != nil } }
        dropApplied()
    }

    /// What changesets that the server's rows have did to an object goes with its next row.
    private mutating func dropTaken(_ key: Int64) {
        for index in pending.indices where pending[index].changeset.number <= taken {
            pending[index].changeset.changes.removeAll { $0.object.key == .int(key) }
        }
    }

    private mutating func dropEmpty() { pending.removeAll { $0.changeset.number <= taken && $0.changeset.changes.isEmpty } }

    private mutating func dropApplied() { pending.removeAll { $0.acknowledged.map { $0 <= applied.lsn } ?? false } }

    mutating func compensate(_ id: UInt64, _ writes: [RefusedWrite]) {
        guard id > compensation else { return }
        compensation = id
        told.append(id)
        for write in writes {
            guard case .int(let key) = write.object.key else { continue }
            refusedObjects.insert(key)
            for index in pending.indices { pending[index].changeset.changes.removeAll { $0.object == write.object } }
        }
    }

    mutating func beginBootstrap(_ going: ServerMessage.Checkpoint?) {
        aside = going?.types.contains(0) == true ? aside.merging(staged ?? [:]) { $1 } : [:]
        checkpoint = going?.content ?? []
        staged = [:]
        removed = []
        kept = []
    }

    mutating func stage(_ rows: StagedRows) {
        for ref in rows.rows {
            let values = rows.buffer.withView(ref) { $0.values() }
            let row = item(values)
            if case .int(let key)? = values[1] { staged?[key] = row }
        }
        for case .int(let key) in rows.kept { if let item = aside[key] { staged?[key] = item } else { kept.insert(key) } }
        for case .int(let key) in rows.removed {
            staged?[key] = nil
            kept.remove(key)
            removed.insert(key)
        }
        if !rows.checkpoint.isEmpty { checkpoint = rows.checkpoint }
    }

    private func item(_ values: [Value?]) -> Item {
        let named = zip(Self.itemType.properties, values).compactMap { property, value in value.map { (property.name, $0) } }
        return Item(Dictionary(uniqueKeysWithValues: named))
    }

    mutating func endBootstrap(_ version: UInt64, _ lsn: LSN, _ types: [Int], _ held: [UInt8], _ taken: UInt64) {
        self.held = held
        if types.contains(0) { server = server.filter { kept.contains($0.key) } }
        for key in removed { server[key] = nil }
        server.merge(staged ?? [:]) { $1 }
        self.taken = max(self.taken, taken)
        for key in removed { dropTaken(key) }
        for key in staged?.keys.sorted() ?? [] { dropTaken(key) }
        staged = nil
        aside = [:]
        checkpoint = []
        applied = AppliedPosition(lsn: max(lsn, applied.lsn), version: version)
        for index in sets.indices where sets[index].version == version { sets[index].state = .complete }
        sets.removeAll { $0.version < version }
        pending.removeAll { $0.acknowledged != nil && $0.changeset.number <= taken }
        dropApplied()
        dropEmpty()
    }

    mutating func observe(_ milliseconds: Int64) { clock = HybridClock(last: max(clock.last, HybridTime(milliseconds: milliseconds))) }

    mutating func apply(_ batch: ReplicaBatch) {
        for (key, item) in torn { server[key] = item }
        torn = []
        for commit in batch.commits where commit.lsn > applied.lsn {
            observe(commit.time / 1_000 + 1)
            taken = max(taken, commit.changeset)
            for (index, change) in batch.changes[commit.changes].enumerated() {
                guard let (key, item) = written(change, batch) else { continue }
                dropTaken(key)
                if defect == .torn, index > 0 { torn.append((key, item)) } else { server[key] = item }
            }
            if commit.changeset > 0 { dropEmpty() }
        }
        applied.lsn = max(applied.lsn, batch.lsn)
        dropApplied()
    }

    private func written(_ change: ReplicaRowChange, _ batch: ReplicaBatch) -> (key: Int64, item: Item?)? {
        guard let row = change.row else {
            if case .int(let key)? = change.key { return (key, nil) }
            return nil
        }
        let values = batch.rows.withView(row) { $0.values() }
        if case .int(let key)? = values[1] { return (key, item(values)) }
        return nil
    }

    mutating func refuse(_ version: UInt64, _ error: SluiceError) {
        for index in sets.indices where sets[index].version == version {
            sets[index].state = .error(code: error.code.rawValue, message: error.message)
        }
    }
}
