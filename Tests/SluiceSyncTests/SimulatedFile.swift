import SluiceCore
import SluiceReplica
import SluiceSync

let itemType = ObjectType(
    name: "Item",
    properties: [
        Property(id: 11, name: "_id", type: .int), Property(id: 12, name: "store", type: .string),
        Property(id: 13, name: "value", type: .string),
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
            Property(id: 3, name: "store", type: .string),
        ]),
    ObjectType(
        name: "Reading", kind: .asymmetric,
        properties: [Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "level", type: .int)]),
])

struct Item: Hashable {
    var store: String
    var value: String
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
    var sets = [set(0, [])]
    var readings: [ObjectChange] = []
    var batches: [IngestBatch] = []
    var ingestNumber: UInt64 = 0
    var staged: [Int64: Item]?
    var removed: Set<Int64> = []
    var kept: Set<Int64> = []
    var held: [UInt8] = []
    /// Compensations that the app was told about, in order.
    var told: [UInt64] = []
    var refusedObjects: Set<Int64> = []

    var latest: StoredSubscriptionSet { sets[sets.count - 1] }

    /// Server state with the pending changes on top.
    func shown(_ key: Int64) -> Item? {
        var item = server[key]
        for change in pending.flatMap(\.changeset.changes) where change.object.key == .int(key) {
            switch change.kind {
            case .delete: item = nil
            case .create, .set: item = Item(store: text(change.values["store"]), value: text(change.values["value"]))
            }
        }
        return item
    }

    var shown: [Int64: Item] {
        var keys = Set(server.keys)
        for change in pending.flatMap(\.changeset.changes) { if case .int(let key) = change.object.key { keys.insert(key) } }
        var all: [Int64: Item] = [:]
        for key in keys { all[key] = shown(key) }
        return all
    }

    private func text(_ value: Value?) -> String { if case .string(let text)? = value { text } else { "" } }

    // MARK: The app

    mutating func write(_ key: Int64, _ item: Item?) {
        changesets += 1
        var change = ObjectChange(object: ObjectKey(type: "Item", key: .int(key)), kind: item == nil ? .delete : .create)
        if let item { change.values = ["store": .string(item.store), "value": .string(item.value)] }
        pending.append(
            Pending(changeset: Changeset(number: changesets, time: .zero, base: applied.lsn, changes: [change]), acknowledged: nil))
    }

    mutating func ingest(_ key: Int64) {
        readings.append(ObjectChange(object: ObjectKey(type: "Reading", key: .int(key)), kind: .create, values: ["level": .int(key)]))
    }

    mutating func subscribe(_ stores: [String]) { sets.append(set(latest.version + 1, stores, before: changesets)) }

    // MARK: The engine

    var local: LocalState {
        LocalState(
            identity: identity, applied: applied, held: held, compensation: compensation,
            firstUnacknowledged: pending.first { $0.acknowledged == nil }?.changeset.number)
    }

    mutating func read(_ query: LocalQuery) -> LocalPending {
        var answer = LocalPending(sets: sets.filter { $0.version >= applied.version })
        if let number = query.changesetsAfter {
            answer.changesets = Array(
                pending.filter { $0.acknowledged == nil && $0.changeset.number > number }.prefix(3).map(\.changeset))
        }
        if let number = query.ingestAfter {
            if batches.last?.number ?? 0 <= number, !readings.isEmpty {
                ingestNumber = max(ingestNumber, number) + 1
                batches.append(IngestBatch(number: ingestNumber, objects: Array(readings.prefix(2))))
                readings.removeFirst(min(2, readings.count))
            }
            answer.ingest = batches.first { $0.number > number }
        }
        return answer
    }

    mutating func acknowledge(_ number: UInt64, _ lsn: LSN) {
        for index in pending.indices where pending[index].changeset.number <= number && pending[index].acknowledged == nil {
            pending[index].acknowledged = lsn
        }
        dropApplied()
    }

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

    mutating func beginBootstrap() {
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
        for case .int(let key) in rows.kept { kept.insert(key) }
        for case .int(let key) in rows.removed {
            staged?[key] = nil
            kept.remove(key)
            removed.insert(key)
        }
    }

    private func item(_ values: [Value?]) -> Item { Item(store: text(values[2]), value: text(values[0])) }

    mutating func endBootstrap(_ version: UInt64, _ lsn: LSN, _ types: [Int], _ held: [UInt8]) {
        self.held = held
        if types.contains(0) { server = server.filter { kept.contains($0.key) } }
        for key in removed { server[key] = nil }
        server.merge(staged ?? [:]) { $1 }
        staged = nil
        applied = AppliedPosition(lsn: max(lsn, applied.lsn), version: version)
        for index in sets.indices where sets[index].version == version { sets[index].state = .complete }
        sets.removeAll { $0.version < version }
        dropApplied()
    }

    mutating func apply(_ batch: ReplicaBatch) {
        for commit in batch.commits where commit.lsn > applied.lsn {
            for change in batch.changes[commit.changes] {
                if let row = change.row {
                    let values = batch.rows.withView(row) { $0.values() }
                    if case .int(let key)? = values[1] { server[key] = item(values) }
                } else if case .int(let key)? = change.key {
                    server[key] = nil
                }
            }
        }
        applied.lsn = max(applied.lsn, batch.lsn)
        dropApplied()
    }

    mutating func refuse(_ version: UInt64, _ error: SluiceError) {
        for index in sets.indices where sets[index].version == version {
            sets[index].state = .error(code: error.code.rawValue, message: error.message)
        }
    }
}
