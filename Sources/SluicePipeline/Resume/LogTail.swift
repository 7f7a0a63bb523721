import SluiceCore
import SluicePorts
import SluiceQuery
import SluiceWire

/// The log's changes to a view since a position: the last change of each object.
package struct LogTail: Sendable {
    struct Object: Hashable, Sendable {
        var type: Int
        var key: Value
    }

    /// The last change of each object, with its position. A moved row is in two partitions, which are read in no defined order.
    private(set) var words: [Object: StagedChanges.Change] = [:]
    /// The LSN up to which all of the view's changes are included; later ones may be too.
    private(set) var reached: LSN = .zero
    /// The newest of the client's own changesets among them; 0 for none.
    private(set) var changeset: UInt64 = 0
    /// The approximate size of the changes, in bytes.
    private(set) var byteCount = 0

    mutating func add(_ change: StagedChanges.Change) {
        let object = Object(type: change.type, key: change.key)
        let before = words[object]
        var word = change
        if let before { word = before.position >= change.position ? before.following(change) : change.following(before) }
        words[object] = word
        // 128 bytes approximate the overhead of a new object.
        byteCount += word.byteCount - (before?.byteCount ?? -128)
    }

    mutating func note(_ position: Position, ownChangeset number: UInt64) {
        reached = max(reached, position.lsn)
        changeset = max(changeset, number)
    }
}

/// Reads the records of a view's partitions after a position.
struct LogTailReader {
    let view: View
    let schema: Schema
    let client: ClientID
    /// The position up to which the client has everything.
    let after: LSN
    /// The announced ends of the view's partitions.
    let promised: [LogPartition: Int64]
    /// The compiled predicates, by class index.
    private let programs: [Int: Program]

    init(view: View, schema: Schema, client: ClientID, after: LSN, promised: [LogPartition: Int64] = [:]) {
        self.view = view
        self.schema = schema
        self.client = client
        self.after = after
        self.promised = promised
        programs = Dictionary(view.types.map { ($0.type, $0.predicate.compile()) }, uniquingKeysWith: { first, _ in first })
    }

    /// The distance before the end at which the search begins, in records, and its growth factor. Reading too much costs little.
    static let firstReach: Int64 = 64
    static let growth: Int64 = 8
    /// The maximum number of bytes read for one client. Beyond it, a bootstrap from the tables is no worse.
    static let mostBytes = 128 << 20
    /// The deadline for the whole read, in milliseconds.
    static let patience: UInt64 = 10_000

    private struct Partition {
        let start: Int64
        let end: Int64
        var from: Int64
        var last: Position?

        /// Restarts farther from the end.
        mutating func reachFarther() {
            from = max(start, end - (end - from) * LogTailReader.growth)
            last = nil
        }
    }

    /// Reads the tail from the log.
    /// - Returns: nil if the log no longer reaches back to the position, or if a limit is exceeded.
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
            // Give up if records expired during the read or a limit is exceeded.
            guard fetch.gaps.isEmpty, bytes <= Self.mostBytes, tail.byteCount <= Limits.stagedBytes,
                environment.monotonicNanoseconds() < deadline
            else { return nil }
            decoder.removeAll()
            guard let moved = take(fetch, &open, &tail, &decoder) else { return nil }
            if !moved.isEmpty { try await reader.assign(moved) }
        }
        return tail
    }

    /// Returns the ranges to read; nil if a partition has expired all of its records or lost the last ones.
    private func partitions(_ log: any MessageLog) async throws -> [LogPartition: Partition]? {
        let ranges = try await log.ranges(of: view.partitions)
        var open: [LogPartition: Partition] = [:]
        for partition in view.partitions {
            // Announced records are lost.
            if ranges[partition]?.upperBound ?? 0 < promised[partition] ?? 0 { return nil }
            // The partition never had a record.
            guard let range = ranges[partition], range.upperBound > 0 else { continue }
            // All of its records have expired.
            if range.isEmpty { return nil }
            open[partition] = Partition(
                start: range.lowerBound, end: range.upperBound, from: max(range.lowerBound, range.upperBound - Self.firstReach))
        }
        return open
    }

    /// Reads the tail from memory.
    /// - Parameter recent: All records after the position, by partition, in order.
    /// - Returns: nil if the effect of a record on the view is unknown, or if a limit is exceeded.
    func read(_ recent: [[PendingRecord]]) -> LogTail? {
        var tail = LogTail()
        var decoder = ChangeDecoder(schema: schema)
        for record in recent.joined() {
            decoder.removeAll()
            guard take(record, &tail, &decoder), tail.byteCount <= Limits.stagedBytes else { return nil }
        }
        return tail
    }

    /// Adds fetched records.
    /// - Returns: the partitions to read from farther back; nil if the log does not reach back to the position.
    private func take(
        _ fetch: LogFetch, _ open: inout [LogPartition: Partition], _ tail: inout LogTail, _ decoder: inout ChangeDecoder
    ) -> [LogPartition: Int64]? {
        let headers = ChangeHeaderReader()
        var moved: [LogPartition: Int64] = [:]
        // After a move, the rest of this fetch belongs to the abandoned range.
        for entry in fetch.entries where moved[entry.partition] == nil {
            guard var partition = open[entry.partition] else { continue }
            let record = fetch.arena[entry.value]
            guard let header = headers.read(record) else { return nil }
            if partition.last == nil, header.position.lsn > after {
                // Only the oldest available record may be the first one after the position. Any other may have predecessors that were not
                // read.
                guard entry.offset <= partition.start else {
                    partition.reachFarther()
                    moved[entry.partition] = partition.from
                    open[entry.partition] = partition
                    continue
                }
                // The predecessor is gone from the log and is newer than the position: changes are missing.
                guard header.previous?.lsn ?? .zero <= after else { return nil }
            }
            // After a takeover, a publisher may have repeated records.
            if partition.last.map({ header.position > $0 }) ?? true {
                // A broken chain means lost records.
                if let last = partition.last, header.previous != last { return nil }
                partition.last = header.position
                let pending = PendingRecord(position: header.position, xid: header.xid, bytes: record)
                if header.position.lsn > after, !take(pending, &tail, &decoder) { return nil }
            }
            open[entry.partition] = entry.offset + 1 < partition.end ? partition : nil
        }
        return moved
    }

    /// Adds one record.
    /// - Returns: `false` if the effect of the record on the view is unknown.
    private func take(_ record: PendingRecord, _ tail: inout LogTail, _ decoder: inout ChangeDecoder) -> Bool {
        // Also for records of other classes, which advance the position.
        tail.note(record.position, ownChangeset: 0)
        var isNeeded = false
        let decoded = decoder.decode(record.bytes) { type in
            isNeeded = view.type(type) != nil
            return isNeeded
        }
        // An unreadable record of a class of the view has an unknown effect.
        guard let change = decoded, let type = view.type(change.type) else { return !isNeeded }
        // A truncation names no objects, so only the tables show the rest.
        guard change.operation != .truncate else { return false }
        let own = change.origin.flatMap { $0.client == client ? $0.changeset : nil } ?? 0
        tail.note(record.position, ownChangeset: own)
        guard let event = event(of: change, type, decoder) else { return true }
        tail.add(
            StagedChanges.Change(
                transaction: .init(xid: record.xid, changeset: own, commitTime: change.commitMilliseconds), type: change.type,
                key: decoder.key(of: change), row: event.hasRow ? decoder.row(of: change, mask: type.mask) : nil,
                position: record.position, leaving: event.hasRow ? nil : event,
                times: event.hasRow ? decoder.times(of: change, in: record.bytes, type) : []))
        return true
    }

    /// Returns the event for the view; nil if the change does not concern it.
    private func event(of change: DecodedChange, _ type: TypeView, _ decoder: ChangeDecoder) -> ViewEvent? {
        guard let program = programs[change.type] else { return nil }
        // An entry and an update are sent alike, as a row that replaces.
        return decoder.withRows(change) { before, after in
            if let after, program.matches(after) { return .updated }
            guard let before, program.matches(before) else { return nil }
            guard let after else { return .deleted }
            return type.reason(after: after)
        }
    }
}
