import SluiceCore
import SluicePorts

/// The newest progress record, and the announced end of each partition.
///
/// A progress record names the partitions that grew. Each publisher's first record and every `wholeEvery`-th after it name all partitions
/// that have had records. The newest `reach` records therefore name every partition.
struct LogPromise: Sendable {
    /// The number of progress records from one complete record to the next.
    static let wholeEvery = 128
    /// The number of progress records to read before the end of their partition.
    static let reach: Int64 = 256
    /// The deadline for reading them, in milliseconds.
    static let patience: UInt64 = 10_000

    /// The newest progress record; `nil` if the log has none.
    private(set) var last: ProgressRecord?
    /// The highest announced LSN.
    private(set) var highest: LSN = .zero
    /// The announced end of each partition.
    private(set) var ends: [LogPartition: Int64] = [:]

    /// Adds the next progress record, in log order.
    mutating func add(_ record: ProgressRecord) {
        last = record
        highest = max(highest, record.lsn)
        // The newest record wins even if its end is lower: after a loss, offsets are assigned again.
        ends.merge(record.grown) { _, end in end }
    }

    /// Returns the partitions that are shorter than announced.
    /// - Parameter actual: The actual end of each partition to check.
    func lost(in actual: [LogPartition: Int64]) -> Set<LogPartition> {
        Set(actual.filter { partition, end in end < ends[partition] ?? 0 }.keys)
    }

    /// Returns the offset to read progress records from.
    /// - Parameter range: The offsets of the available records.
    static func start(in range: Range<Int64>) -> Int64 { max(range.lowerBound, range.upperBound - reach) }

    /// Reads the newest progress records.
    /// - Throws: `logUnreachable` if that takes longer than `patience`.
    static func read(
        from log: any MessageLog, progress partition: LogPartition, _ environment: any Environment
    ) async throws -> LogPromise {
        guard let range = try await log.ranges(of: [partition])[partition], !range.isEmpty else { return LogPromise() }
        return try await log.withReader { reader in
            try await reader.assign([partition: start(in: range)])
            let deadline = environment.monotonicNanoseconds() + patience * 1_000_000
            var promise = LogPromise()
            var fetch = LogFetch()
            while environment.monotonicNanoseconds() < deadline {
                fetch = try await reader.next(fetch, milliseconds: 200)
                for entry in fetch.entries {
                    // A malformed record announces nothing; no publisher can have written it.
                    guard let record = try? fetch.arena[entry.value].withUnsafeBytes({ try ProgressCodec.decode($0) }) else { continue }
                    promise.add(record)
                }
                // The end as it was at the start: a busy publisher must not prolong the read.
                if let entry = fetch.entries.last, entry.offset + 1 >= range.upperBound { return promise }
            }
            throw SluiceError(.logUnreachable, "The newest progress records could not be read in \(patience / 1_000) s.")
        }
    }
}
