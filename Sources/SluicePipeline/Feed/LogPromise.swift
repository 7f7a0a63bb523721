import SluiceCore
import SluiceWire

/// The newest progress record, and the end of each partition that it and those before it promise.
///
/// A progress record names the partitions that grew. Each publisher's first one, and every `wholeEvery`-th after it, names all
/// partitions that have had records. So the newest `reach` records name every partition.
struct LogPromise: Sendable {
    /// Progress records from one that names all partitions to the next.
    static let wholeEvery = 128
    /// Progress records to read before the end of their partition.
    static let reach: Int64 = 256
    /// Milliseconds that reading them may take.
    static let patience: UInt64 = 10_000

    /// The newest progress record; `nil` if the log has none.
    private(set) var last: LogProgress?
    /// The highest LSN that was promised.
    private(set) var highest: LSN = .zero
    private(set) var ends: [LogPartition: Int64] = [:]

    /// Takes the progress record after those that were taken.
    mutating func add(_ record: LogProgress) {
        last = record
        highest = max(highest, record.lsn)
        for grown in record.grown { ends[LogPartition(grown.topic, grown.partition)] = grown.end }
    }

    /// Returns the partitions that are shorter than promised.
    /// - Parameter actual: the end of each partition to look at.
    func lost(in actual: [LogPartition: Int64]) -> Set<LogPartition> {
        Set(actual.filter { partition, end in end < ends[partition] ?? 0 }.keys)
    }

    /// Returns the offset to read progress records from.
    /// - Parameter range: the offsets of those that are there.
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
                    // A malformed one promises nothing; the publisher before cannot have written it.
                    guard let record = try? fetch.arena[entry.value].withUnsafeBytes({ try ProgressCodec.decode($0) }) else { continue }
                    promise.add(record)
                }
                if let entry = fetch.entries.last, entry.offset + 1 >= range.upperBound { return promise }
            }
            throw SluiceError(.logUnreachable, "The newest progress records could not be read in \(patience / 1_000) s.")
        }
    }
}
