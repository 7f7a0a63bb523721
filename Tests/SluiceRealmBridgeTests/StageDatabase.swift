import SluiceCore
import SluiceEmbeddedLog
import SluiceMerge
import SluicePorts
import SluiceQuery
import SluiceWire
import Testing

@testable import SluicePipeline
@testable import SluiceRealmBridge

/// A database of items in memory. Each transaction is delivered to the sessions as it commits, unless the log is held. A change log keeps
/// the transactions for sessions that resume.
actor StageDatabase: WriteStore, SnapshotStore, ClientRegistry {
    static let item = ObjectType(
        name: "Item",
        properties: [
            Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "title", type: .string, isOptional: true),
            Property(id: 3, name: "size", type: .int), Property(id: 4, name: "tags", type: .string, collection: .list),
        ])
    /// Items with a mixed value.
    static let mixedItem = ObjectType(
        name: "Item",
        properties: [
            Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "title", type: .string, isOptional: true),
            Property(id: 3, name: "size", type: .int), Property(id: 4, name: "any", type: .mixed, isOptional: true),
        ])

    /// A class of items, and asymmetric readings.
    static func schema(_ item: ObjectType) -> Schema {
        Schema([
            item,
            ObjectType(
                name: "Place", kind: .embedded,
                properties: [Property(id: 1, name: "x", type: .int), Property(id: 2, name: "y", type: .int, isOptional: true)]),
            ObjectType(
                name: "Reading", kind: .asymmetric,
                properties: [
                    Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "title", type: .string, isOptional: true),
                    Property(id: 3, name: "value", type: .double),
                    Property(id: 4, name: "place", type: .embedded("Place"), isOptional: true),
                    Property(id: 5, name: "marks", type: .int, collection: .list),
                ]),
        ])
    }

    private struct Stored {
        var row: Row?
        var clocks: ObjectClocks?
        var xid: UInt32
        var time: Int64
    }

    private struct Client {
        var file: ClientFile
        var user: String
        var compensations: [UInt64: [WriteRejection]] = [:]
    }

    private let type: ObjectType
    private var items: [Value: Stored] = [:]
    private var clients: [UInt64: Client] = [:]
    private var lsn: UInt64 = 1_000
    private var xid: UInt32 = 100
    private var writeTime = HybridTime.zero
    private var held: [ReleasedBatch] = []
    private var isHeld = false
    private var lastCompensation: UInt64 = 0
    private var fanout: Fanout?
    /// The change log; nil if sessions resume from the tables alone.
    private var log: EmbeddedLog?
    /// The last record, which the next one of the log names.
    private var lastRecord: Position?
    private var notes: [String] = []
    private var failure: SluiceError?
    private var misses = 0
    private var piece = Int.max
    /// The pieces of the next snapshot after which it waits.
    private var pause: Int?
    private let pauses = AsyncEvent(environment: SystemEnvironment())
    private let resumption = AsyncEvent(environment: SystemEnvironment())
    /// The time of position 0, in milliseconds since 1970.
    private var epoch: Int64 = 0

    init(_ type: ObjectType) { self.type = type }

    /// The changesets that took effect, by number, and the compensations that were acknowledged.
    var journal: [String] { notes }
    var position: UInt64 { lsn }

    func serve(_ fanout: Fanout, _ log: EmbeddedLog? = nil) async {
        (self.fanout, self.log) = (fanout, log)
        await fanout.deliver(ReleasedBatch(records: [], watermark: LSN(rawValue: lsn), resync: []))
    }

    /// Appends a batch to the log, and delivers it. A session that resumes finds a transaction in one of the two.
    private func deliver(_ batch: ReleasedBatch) async {
        if let log {
            var logged = LogBatch(topics: [BridgeStage.topics.changes(of: type.name)])
            for record in batch.records { logged.append(topic: 0, partition: 0, key: [], value: Array(record.bytes)) }
            do { _ = try await log.place(logged) } catch { Issue.record("The log refused records: \(error)") }
        }
        await fanout?.deliver(batch)
    }

    /// The last transaction, for sessions that resume from the log.
    private var witness: HistoryAnchor? {
        log == nil ? nil : HistoryAnchor(transaction: xid, commitTime: milliseconds * 1_000, lsn: LSN(rawValue: lsn))
    }

    /// Holds the log back: transactions commit, and sessions learn of them by `release`.
    func hold() { isHeld = true }

    /// Delivers what is held.
    /// - Parameter count: The number of transactions. The others remain held; nil for all.
    func release(_ count: Int? = nil) async {
        isHeld = count != nil
        let released = held.prefix(count ?? .max)
        held.removeFirst(released.count)
        for batch in released { await deliver(batch) }
    }

    /// Lets the next reads of single rows come between the record of a commit in the log and its visibility.
    func miss(_ reads: Int) { misses = reads }

    /// Lets snapshots have so many rows in one piece.
    func cut(_ rows: Int) { piece = rows }

    /// Lets the next snapshot of several pieces wait behind so many, until its reader is cancelled or `resume` is called.
    func pause(after pieces: Int) { pause = pieces }

    /// Waits until the snapshot waits.
    nonisolated func untilPaused() async { await pauses.wait(after: 0, milliseconds: 60_000) }

    nonisolated func resume() { resumption.fire() }

    /// Lets the next transaction of a client fail.
    func fail(_ error: SluiceError) { failure = error }

    func row(_ key: String) -> Row? { items[.string(key)]?.row }

    /// Returns a row with the position of the log.
    func content(_ key: String) -> (row: Row?, position: UInt64) { (row(key), lsn) }

    // MARK: Time

    /// Makes the times of commits later than 2015, so that they compare with those of clients.
    func setClock(_ milliseconds: Int64 = 1_760_000_000_000) { epoch = milliseconds }

    /// The time of a commit now, in milliseconds since 1970.
    var milliseconds: Int64 { epoch + Int64(lsn) }
    /// The same as a time of Realm's protocol.
    var timestamp: UInt64 { RealmTime.timestamp(milliseconds: milliseconds) }

    // MARK: Transactions

    /// Commits rows as SQL does; nil deletes.
    func commit(_ rows: [String: Row?]) async {
        let writes = rows.sorted { $0.key < $1.key }.map { (key: Value.string($0.key), row: $0.value, clocks: nil as ObjectClocks?) }
        await commit(writes, origin: nil, times: [:])
    }

    private func commit(
        _ writes: [(key: Value, row: Row?, clocks: ObjectClocks?)], origin: Origin?, times: [Value: WriteTimes]
    ) async {
        lsn += 100
        xid += 1
        let time = milliseconds * 1_000
        var records: [PendingRecord] = []
        for (ordinal, write) in writes.enumerated() {
            let before = items[write.key]?.row
            items[write.key] = Stored(row: write.row, clocks: write.clocks ?? items[write.key]?.clocks, xid: xid, time: time)
            guard before != write.row else { continue }
            records.append(record(before, write.row, ordinal, time, origin, times[write.key]))
        }
        writeTime = max(writeTime, origin?.time ?? .zero)
        let batch = ReleasedBatch(records: records, watermark: LSN(rawValue: lsn), resync: [], witness: witness, writeTime: writeTime)
        if isHeld { held.append(batch) } else { await deliver(batch) }
    }

    private func record(
        _ before: Row?, _ after: Row?, _ ordinal: Int, _ time: Int64, _ origin: Origin?, _ times: WriteTimes?
    ) -> PendingRecord {
        var buffer = RowBuffer()
        let (old, new) = (before.map { buffer.append($0) }, after.map { buffer.append($0) })
        let position = Position(lsn: LSN(rawValue: lsn), ordinal: UInt32(ordinal))
        let operation: ChangeOperation = before == nil ? .insert : after == nil ? .delete : .update
        let change = CapturedChange(position: position, type: 0, operation: operation, before: old, after: new)
        let transaction = CapturedTransaction(xid: xid, lsn: position.lsn, commitTime: time, origin: origin, changes: 0..<1, end: nil)
        var writer = ByteWriter(capacity: 256)
        ChangeRecordCodec(Self.schema(type))
            .encode(change, of: transaction, rows: buffer, previous: lastRecord, passage: .stay, into: &writer)
        lastRecord = position
        return PendingRecord(position: position, xid: xid, bytes: Array(writer.bytes)[...])
    }

    // MARK: WriteStore

    func transaction(_ request: WriteRequest, _ decide: WriteDecider) async throws -> WriteOutcome {
        if let error = failure.take() { throw error }
        let id = request.origin.client.rawValue
        var basis = WriteBasis(changeset: clients[id]?.file.changeset ?? 0, now: LSN(rawValue: lsn), horizon: .zero)
        let undone = clients[id]?.compensations.filter { $0.key > request.acknowledged } ?? [:]
        basis.rejected = Set(undone.values.joined().map(\.object))
        for key in request.objects.flatMap(\.keys) {
            guard let stored = items[key], stored.row != nil || stored.clocks != nil else { continue }
            basis.stored[ObjectKey(type: "Item", key: key)] = StoredObject(
                row: stored.row, clocks: stored.clocks, rowTime: stored.time / 1_000, writer: stored.row == nil ? nil : stored.xid)
        }
        let decision: WriteDecision
        switch decide {
        case .atOnce(let decide): decision = try decide(basis)
        case .waiting(let decide): decision = try await decide(basis)
        }
        notes.append("changeset \(request.origin.changeset)")
        clients[id]?.file.changeset = request.origin.changeset
        clients[id]?.file.time = request.time
        var number: UInt64?
        if !decision.rejected.isEmpty {
            lastCompensation += 1
            number = lastCompensation
            clients[id]?.compensations[lastCompensation] = decision.rejected
        }
        let writes = decision.writes.map { write in (key: write.key, row: row(after: write), clocks: write.clocks as ObjectClocks?) }
        await commit(writes, origin: request.origin, times: [:])
        return WriteOutcome(lsn: LSN(rawValue: lsn), rejected: decision.rejected, compensation: number, futile: decision.futile)
    }

    private func row(after write: WriteDecision.Write) -> Row? {
        switch write.change {
        case .insert(let row): return row
        case .delete: return nil
        case .nothing: return items[write.key]?.row
        case .update(let values):
            var row = items[write.key]?.row
            for (index, value) in values { row?[index] = value }
            return row
        }
    }

    func durable() async throws {}

    // MARK: SnapshotStore

    func read(_ queries: [SnapshotQuery], into sink: some SnapshotSink) async throws -> SnapshotStart? {
        let start = snapshot
        let content = items
        guard try await sink.begin(start) else { return nil }
        if sink.needsEstimate { try await sink.expect(0) }
        for (index, query) in queries.enumerated() {
            var (buffer, rows, kept) = (RowBuffer(), [RowRef](), [Value]())
            for (key, stored) in content.sorted(by: { "\($0.key)" < "\($1.key)" }) {
                guard let row = stored.row else { continue }
                let place = buffer.append(row)
                guard buffer.withView(place, { query.predicate.matches($0) }) else { continue }
                let isKnown = query.known.map { known in
                    UInt64(stored.xid) < known.point.transaction && buffer.withView(place) { known.predicate.matches($0) }
                }
                let isStaged = query.staged.map { staged in
                    UInt64(stored.xid) < staged.point.transaction && staged.through.map { "\(key)" <= "\($0)" } ?? true
                }
                if isKnown ?? false || isStaged ?? false { kept.append(key) } else { rows.append(place) }
            }
            if !kept.isEmpty { try await sink.take(kept: kept, query: index) }
            for start in stride(from: 0, to: max(rows.count, 1), by: piece) {
                if start > 0, start / piece == pause {
                    pause = nil
                    pauses.fire()
                    await resumption.wait(after: resumption.count, milliseconds: 60_000)
                    try Task.checkCancellation()
                }
                let end = min(rows.count, start + min(piece, rows.count))
                try await sink.take(Array(rows[start..<end]), of: buffer, query: index, isInOrder: true)
            }
        }
        return start
    }

    private var snapshot: SnapshotStart {
        let snapshot = TransactionSnapshot(xmin: UInt64(xid) + 1, xmax: UInt64(xid) + 1, running: [])
        return SnapshotStart(snapshot: snapshot, lsn: LSN(rawValue: lsn), cluster: "c", witness: witness, begun: milliseconds * 1_000)
    }

    func stored(_ type: ObjectType, keys: [Value]) async throws -> (objects: [Value: StoredObject], start: SnapshotStart) {
        var start = snapshot
        if misses > 0 {
            misses -= 1
            start.missed = start.begun
            return ([:], start)
        }
        var found: [Value: StoredObject] = [:]
        for key in keys {
            guard let stored = items[key], stored.row != nil else { continue }
            found[key] = StoredObject(row: stored.row, clocks: stored.clocks, rowTime: stored.time / 1_000, writer: stored.xid)
        }
        return (found, start)
    }

    nonisolated func source(of type: ObjectType) throws -> String { "items" }
    func hasSeen(_ witness: HistoryAnchor) async throws -> Bool { true }
    func currentLSN() async throws -> LSN { LSN(rawValue: lsn) }
    func place() async throws -> (lsn: LSN, point: SnapshotPoint) {
        (LSN(rawValue: lsn), SnapshotPoint(cluster: "c", transaction: UInt64(xid) + 1, witness: witness))
    }

    // MARK: ClientRegistry

    func allot(user: String) async throws -> ClientFile {
        let id = UInt64(clients.count) + 1
        let file = ClientFile(id: ClientID(rawValue: id), secret: [1, 2], changeset: 0, ingest: 0, session: 0)
        clients[id] = Client(file: file, user: user)
        return file
    }

    func open(id: ClientID, secret: [UInt8], user: String, oldestBase: LSN, seen: SeenHistory) async throws -> ClientFile {
        guard clients[id.rawValue]?.user == user, clients[id.rawValue]?.file.secret == secret else {
            throw SluiceError(.badClientFile, "No client \(id).")
        }
        clients[id.rawValue]?.file.session += 1
        clients[id.rawValue]?.file.proven = ProvenHistory(position: true, point: true)
        guard let file = clients[id.rawValue]?.file else { throw SluiceError(.badClientFile, "No client \(id).") }
        return file
    }

    func recordIngest(id: ClientID, number: UInt64, answer: [UInt8]?) async throws {}
    func recordIngest(
        id: ClientID, number: UInt64, rejected: [WriteRejection]
    ) async throws -> [(id: UInt64, writes: [WriteRejection])] {
        guard number > clients[id.rawValue]?.file.ingest ?? .max else { return [] }
        clients[id.rawValue]?.file.ingest = number
        notes.append("ingest \(number)")
        return Dictionary(grouping: rejected, by: \.changeset).sorted { $0.key < $1.key }.map { _, writes in
            lastCompensation += 1
            clients[id.rawValue]?.compensations[lastCompensation] = writes
            return (id: lastCompensation, writes: writes)
        }
    }
    func ingestAnswer(id: ClientID, number: UInt64) async throws -> [UInt8]? { nil }

    func openCompensations(id: ClientID, after last: UInt64) async throws -> [(id: UInt64, writes: [WriteRejection])] {
        let open = clients[id.rawValue]?.compensations.filter { $0.key > last } ?? [:]
        return open.sorted { $0.key < $1.key }.map { (id: $0.key, writes: $0.value) }
    }

    func acknowledgeCompensations(id: ClientID, upTo: UInt64) async throws {
        notes.append("compensation \(upTo)")
        let open = clients[id.rawValue]?.compensations.filter { $0.key > upTo } ?? [:]
        clients[id.rawValue]?.compensations = open
    }

    func keepReported(id: ClientID, _ writes: [WriteRejection]) async throws {}
}
