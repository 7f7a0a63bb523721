import SluiceCore
import SluiceMerge
import SluiceReplica
import SluiceSync
import SluiceValues

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
    /// The server's side of what is pending, with clocks.
    var objects: [Int64: ServerObject] = [:]
    /// Of which of these the server's value came without its time.
    var untimed: Set<Int64> = []
    /// Write times of a bootstrap, and when the rows were committed.
    var stagedTimes: [Int64: (times: WriteTimes, commitTime: Int64)] = [:]
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
    private var torn: [NewRow] = []

    var latest: StoredSubscriptionSet { sets[sets.count - 1] }

    private static let itemType = clientTypes.types[0]

    /// Server state with the pending changes on top.
    func shown(_ key: Int64) -> Item? { state(key)?.values.map { Item($0) } }

    /// The same with the names of the places in it; nil when something cannot be merged, which is never.
    func state(_ key: Int64) -> ObjectState? {
        let changes = pending.flatMap(\.changeset.pending).filter { $0.change.object.key == .int(key) }
        let server = objects[key] ?? ServerObject(row: server[key]?.values)
        return try? Overlay.state(server: server, pending: changes, client: client, type: Self.itemType)
    }

    /// The number that decides between equal times.
    var client: ClientID { identity?.client ?? Overlay.unnumbered }

    /// A newer row of the server's; the times of its value by the file's numbers.
    private struct NewRow {
        var key: Int64
        var item: Item?
        var times: WriteTimes?
        var time: Int64?
    }

    private mutating func take(_ new: NewRow) {
        server[new.key] = new.item
        guard var object = objects[new.key] else { return }
        let (value, before) = (new.times?.properties[Self.itemType.properties[0].id], object.row)
        if value != nil || new.item == nil { untimed.remove(new.key) }
        if value == nil, before == nil || new.time == nil { untimed.insert(new.key) }
        if defect == .deaf {
            object = ServerObject(row: new.item?.values)
        } else {
            object.replace(with: new.item?.values, times: new.times, rowTime: new.time, type: Self.itemType)
        }
        objects[new.key] = object
    }

    /// Keeps nothing of what is not pending any more.
    private mutating func forget() {
        let keys = Set(pending.flatMap(\.changeset.changes).map(\.object.key))
        objects = objects.filter { keys.contains(.int($0.key)) }
        untimed.formIntersection(objects.keys)
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
        for case .int(let key) in changes.map(\.object.key) where objects[key] == nil {
            objects[key] = ServerObject(row: server[key]?.values)
        }
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
            identity: identity, applied: applied, records: ServerRecords(held: held, checkpoint: checkpoint), compensation: compensation,
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

    private mutating func dropApplied() {
        pending.removeAll { $0.acknowledged.map { $0 <= applied.lsn } ?? false }
        forget()
    }

    mutating func compensate(_ id: UInt64, _ writes: [CompensatingWrite]) {
        guard id > compensation else { return }
        compensation = id
        told.append(id)
        for write in writes {
            guard case .int(let key) = write.object.key else { continue }
            refusedObjects.insert(key)
            for index in pending.indices { pending[index].changeset.changes.removeAll { $0.object == write.object } }
        }
        forget()
    }

    mutating func beginBootstrap(_ going: ServerMessage.Checkpoint?) {
        aside = going?.types.contains(0) == true ? aside.merging(staged ?? [:]) { $1 } : [:]
        checkpoint = going?.content ?? []
        staged = [:]
        stagedTimes = [:]
        removed = []
        kept = []
    }

    mutating func stage(_ rows: StagedRows) {
        for ref in rows.rows {
            let values = rows.buffer.withView(ref) { $0.values() }
            let row = item(values)
            if case .int(let key)? = values[1] { staged?[key] = row }
        }
        for row in rows.times {
            guard case .int(let key) = row.key, let times = try? WriteTimes(encoded: row.times) else { continue }
            stagedTimes[key] = (times.numbered(as: Self.itemType, from: rows.numbers), row.commitTime)
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
        let gone = types.contains(0) ? server.keys.filter { !kept.contains($0) && staged?[$0] == nil } : []
        for key in gone + removed where staged?[key] == nil { take(NewRow(key: key)) }
        for (key, item) in staged ?? [:] {
            take(NewRow(key: key, item: item, times: stagedTimes[key]?.times, time: stagedTimes[key]?.commitTime))
        }
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
        for row in torn { take(row) }
        torn = []
        for commit in batch.commits where commit.lsn > applied.lsn {
            observe(commit.time / 1_000 + 1)
            clock = HybridClock(last: max(clock.last, commit.writeTime))
            taken = max(taken, commit.changeset)
            for (index, change) in batch.changes[commit.changes].enumerated() {
                guard let (key, item) = written(change, batch) else { continue }
                dropTaken(key)
                let row = NewRow(key: key, item: item, times: times(change, batch), time: commit.time / 1_000)
                if defect == .torn, index > 0 { torn.append(row) } else { take(row) }
            }
            if commit.changeset > 0 { dropEmpty() }
        }
        applied.lsn = max(applied.lsn, batch.lsn)
        dropApplied()
    }

    private func times(_ change: ReplicaRowChange, _ batch: ReplicaBatch) -> WriteTimes? {
        guard !change.times.isEmpty else { return nil }
        let bytes = Array(batch.rows.arena[Int(change.times.lowerBound)..<Int(change.times.upperBound)])
        return (try? WriteTimes(encoded: bytes))?.numbered(as: Self.itemType, from: batch.numbers[change.type])
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

extension Changeset {
    /// Its changes as they are merged.
    var pending: [PendingChange] { changes.map { PendingChange($0, time: time, base: base) } }
}
