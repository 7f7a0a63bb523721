import DequeModule
import SluiceCore

/// The versions of a file's stream with their positions in the log, and the latest time of a write or commit up to each.
///
/// A version is the position of its commit, or a few bytes more if the commit needed several entries.
struct BridgeSteps: Hashable {
    struct Step: Hashable {
        var version: UInt64
        var lsn: LSN
        /// The latest write time up to the version.
        var time: HybridTime
    }

    /// The number of steps that are kept. Bases that are older count as if they had seen the oldest step.
    static let most = 4_096

    private(set) var steps: Deque<Step> = []
    /// The latest time of a write or commit in the stream.
    private(set) var newest: HybridTime
    /// The last version.
    var end: UInt64 { steps.last?.version ?? 0 }

    /// - Parameter newest: A bound on the write times of the stream so far.
    init(newest: HybridTime = .zero) { self.newest = newest }

    /// Adds a version behind all others.
    mutating func add(_ version: UInt64, _ lsn: LSN, time: HybridTime) {
        newest = max(newest, time)
        steps.append(Step(version: version, lsn: lsn, time: newest))
        if steps.count > Self.most { steps.removeFirst() }
    }

    /// Adds the steps of an earlier session, in their order.
    mutating func restore(_ stored: [Step]) { steps += stored.suffix(Self.most) }

    /// Drops the steps that no base needs: later bases are at the version or above.
    mutating func confirm(_ version: UInt64) {
        while steps.count > 1, steps[1].version <= version { steps.removeFirst() }
    }

    /// Returns the position that a client at a version has applied.
    func base(of version: UInt64) -> LSN {
        guard let first = steps.first else { return LSN(rawValue: version) }
        return step(at: version)?.lsn ?? min(LSN(rawValue: version), first.lsn)
    }

    /// Returns a time that no write up to a version exceeds.
    func time(at version: UInt64) -> HybridTime { (step(at: version) ?? steps.first)?.time ?? newest }

    /// Binary search: O(log steps).
    private func step(at version: UInt64) -> Step? {
        var (low, high) = (0, steps.count)
        while low < high {
            let middle = (low + high) / 2
            if steps[middle].version <= version { low = middle + 1 } else { high = middle }
        }
        return low > 0 ? steps[low - 1] : nil
    }
}

/// The times of Realm's changesets: milliseconds since 2015-01-01.
enum RealmTime {
    private static let epoch: Int64 = 1_420_070_400_000

    /// Returns the hybrid time of a changeset's timestamp.
    static func hybrid(_ timestamp: UInt64) -> HybridTime {
        // Cut to the range of hybrid times, so that the sum fits.
        HybridTime(milliseconds: min(Int64(clamping: timestamp), HybridTime.lastMillisecond) + epoch)
    }

    /// Returns a time that the commit of a transaction does not exceed, nor a row's time after the rounding to milliseconds.
    /// - Parameter microseconds: The commit time since 1970.
    static func bound(commit microseconds: Int64) -> HybridTime { HybridTime(milliseconds: microseconds / 1_000 + 1) }

    /// Returns the timestamp of a time in milliseconds since 1970.
    static func timestamp(milliseconds: Int64) -> UInt64 { UInt64(max(milliseconds, epoch) - epoch) }
}
