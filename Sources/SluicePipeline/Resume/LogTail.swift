import SluiceCore
import SluiceQuery
import SluiceWire

/// What the log says of a view since a position: the last word on each object.
package struct LogTail: Sendable {
    struct Object: Hashable, Sendable {
        var type: Int
        var key: Value
    }

    /// Each with its position: a row that moved lies in two partitions, which are read in no particular order.
    private(set) var words: [Object: StagedChanges.Change] = [:]
    /// All of the view's changes up to here are in, perhaps others after it.
    private(set) var reached: LSN = .zero
    /// The newest of the client's own changesets among them; 0: none.
    private(set) var changeset: UInt64 = 0
    private(set) var byteCount = 0

    mutating func add(_ change: StagedChanges.Change) {
        let object = Object(type: change.type, key: change.key)
        let before = words[object]
        var word = change
        if let before { word = before.position >= change.position ? before.following(change) : change.following(before) }
        words[object] = word
        byteCount += word.byteCount - (before?.byteCount ?? -128)
    }

    mutating func note(_ position: Position, ownChangeset number: UInt64) {
        reached = max(reached, position.lsn)
        changeset = max(changeset, number)
    }
}

/// Reads of the records of a view's partitions those after a position.
struct LogTailReader {
    let view: View
    let schema: Schema
    let client: ClientID
    /// Everything up to here is known.
    let after: LSN
    /// The ends that progress records promise of the view's partitions.
    let promised: [LogPartition: Int64]
    /// What decides, by type.
    private let programs: [Int: Program]

    init(view: View, schema: Schema, client: ClientID, after: LSN, promised: [LogPartition: Int64] = [:]) {
        self.view = view
        self.schema = schema
        self.client = client
        self.after = after
        self.promised = promised
        programs = Dictionary(view.types.map { ($0.type, $0.predicate.compile()) }, uniquingKeysWith: { first, _ in first })
    }

    /// How far before the end of a partition the search begins, and by how much it grows. What is read too much costs little.
    static let firstReach: Int64 = 64
    static let growth: Int64 = 8
    /// Bytes that are read for one client. Beyond, a bootstrap from the tables is no worse.
    static let mostBytes = 128 << 20
    /// Milliseconds for all of it.
    static let patience: UInt64 = 10_000

    private struct Partition {
        let start: Int64
        let end: Int64
        var from: Int64
        var last: Position?

        /// Begins anew, farther from the end.
        mutating func reachFarther() {
            from = max(start, end - (end - from) * LogTailReader.growth)
            last = nil
        }
    }

    /// - Returns: nil when the log does not say: what was known is no more in it, or it is too much.
    func read(_ log: any MessageLog, _ reader: any LogReader, _ environment: any Environment) async throws -> LogTail? {
        guard var open = try await partitions(log) else { return nil }
        try await reader.assign(open.mapValues(\.from))
        let deadline = environment.monotonicNanoseconds() + Self.patience * 1_000_000
        var tail = LogTail()
        var decoder = ChangeDecoder(schema: schema)
        var fetch = LogFetch()
        var bytes = 0
        while !open.isEmpty {
            fetch = try await reader.next(fetch, milliseconds: 1_000)
            bytes += fetch.arena.count
            guard fetch.gaps.isEmpty, bytes <= Self.mostBytes, tail.byteCount <= Limits.stagedBytes,
                environment.monotonicNanoseconds() < deadline
            else { return nil }
            decoder.removeAll()
            guard let moved = take(fetch, &open, &tail, &decoder) else { return nil }
            if !moved.isEmpty { try await reader.assign(moved) }
        }
        return tail
    }

    /// What there is to read; nil when a partition has had records and has none any more, or has lost the last ones.
    private func partitions(_ log: any MessageLog) async throws -> [LogPartition: Partition]? {
        let ranges = try await log.ranges(of: view.partitions)
        var open: [LogPartition: Partition] = [:]
        for partition in view.partitions {
            if ranges[partition]?.upperBound ?? 0 < promised[partition] ?? 0 { return nil }
            guard let range = ranges[partition], range.upperBound > 0 else { continue }
            if range.isEmpty { return nil }
            open[partition] = Partition(
                start: range.lowerBound, end: range.upperBound, from: max(range.lowerBound, range.upperBound - Self.firstReach))
        }
        return open
    }

    /// The same from memory.
    /// - Parameter recent: of each partition all records after the position, in order.
    /// - Returns: nil when nobody can say what one of them does to the view, or it is too much.
    func read(_ recent: [[PendingRecord]]) -> LogTail? {
        var tail = LogTail()
        var decoder = ChangeDecoder(schema: schema)
        for record in recent.joined() {
            decoder.removeAll()
            guard take(record, &tail, &decoder), tail.byteCount <= Limits.stagedBytes else { return nil }
        }
        return tail
    }

    /// - Returns: the partitions that have to be read from farther back; nil when the log does not say.
    private func take(
        _ fetch: LogFetch, _ open: inout [LogPartition: Partition], _ tail: inout LogTail, _ decoder: inout ChangeDecoder
    ) -> [LogPartition: Int64]? {
        let headers = ChangeHeaderReader()
        var moved: [LogPartition: Int64] = [:]
        for entry in fetch.entries where moved[entry.partition] == nil {
            guard var partition = open[entry.partition] else { continue }
            let record = fetch.arena[entry.value]
            guard let header = headers.read(record) else { return nil }
            if partition.last == nil, header.position.lsn > after {
                // The first record there is may be the first one after what is known; any other is not seen to be.
                guard entry.offset <= partition.start else {
                    partition.reachFarther()
                    moved[entry.partition] = partition.from
                    open[entry.partition] = partition
                    continue
                }
                guard header.previous?.lsn ?? .zero <= after else { return nil }
            }
            // A publisher that took over may have repeated itself.
            if partition.last.map({ header.position > $0 }) ?? true {
                if let last = partition.last, header.previous != last { return nil }
                partition.last = header.position
                let pending = PendingRecord(position: header.position, xid: header.xid, bytes: record)
                if header.position.lsn > after, !take(pending, &tail, &decoder) { return nil }
            }
            open[entry.partition] = entry.offset + 1 < partition.end ? partition : nil
        }
        return moved
    }

    /// - Returns: false when nobody can say what the record does to the view.
    private func take(_ record: PendingRecord, _ tail: inout LogTail, _ decoder: inout ChangeDecoder) -> Bool {
        tail.note(record.position, ownChangeset: 0)
        var isNeeded = false
        let decoded = decoder.decode(record.bytes) { type in
            isNeeded = view.type(type) != nil
            return isNeeded
        }
        guard let change = decoded, let type = view.type(change.type) else { return !isNeeded }
        guard change.operation != .truncate else { return false }
        let own = change.origin.flatMap { $0.client == client ? $0.changeset : nil } ?? 0
        tail.note(record.position, ownChangeset: own)
        guard let event = event(of: change, type, decoder) else { return true }
        tail.add(
            StagedChanges.Change(
                xid: record.xid, type: change.type, key: decoder.key(of: change),
                row: event.hasRow ? decoder.row(of: change, mask: type.mask) : nil, changeset: own, position: record.position,
                leaving: event.hasRow ? nil : event, times: event.hasRow ? decoder.times(of: change, in: record.bytes, type) : [],
                commitTime: change.commitMilliseconds))
        return true
    }

    /// Nil when it does not concern the view.
    private func event(of change: DecodedChange, _ type: TypeView, _ decoder: ChangeDecoder) -> ViewEvent? {
        guard let program = programs[change.type] else { return nil }
        return decoder.withRows(change) { before, after in
            if let after, program.matches(after) { return .updated }
            guard let before, program.matches(before) else { return nil }
            guard let after else { return .deleted }
            return type.reason(after: after)
        }
    }
}
