package import SluiceCore
import SluiceWire

/// What the publisher knows of the log: where each partition stands and what has been promised. Pure.
struct PublisherState {
    /// The position of the last record of each partition: the chain that makes a loss visible (DESIGN section 3). By slot,
    /// since finding a partition by its topic's name costs more than the rest of a record's bookkeeping.
    private var last: [Position?] = []
    private var slots: [LogPartition: Int] = [:]
    /// What the log had when publishing began, by slot: records up to this position, below this offset. Nil once publishing has passed it.
    private var stored: [(position: Position, partition: LogPartition, end: Int64)?] = []
    /// Partitions that grew since the last progress record, with their ends.
    private var grown: [LogPartition: Int64] = [:]
    /// The end of each partition that has had records.
    private var ends: [LogPartition: Int64]
    /// Progress records until the next one that names every partition.
    private var untilWhole = 0
    /// The highest LSN that an earlier publisher promised.
    private let promised: LSN
    /// `true` if partitions lost records since the last progress record.
    private var isCut = false
    /// The LSN of the last progress record.
    private(set) var announced: LSN = .zero
    /// What the next progress record follows on.
    private var since: LSN
    /// Nothing after this is missing in the log.
    private var completeSince: LSN
    /// Everything before this is in Kafka.
    private(set) var reached: LSN = .zero
    private(set) var commitTime: Int64 = 0
    /// The last transaction that is known before that.
    private var witness: Witness?

    /// - Parameters:
    ///   - start: from where on the source gives everything.
    ///   - promise: the progress records of the publishers before.
    ///   - ends: the offset after the last record of each partition.
    init(
        last: [LogPartition: Position], start: LSN, after promise: LogPromise = LogPromise(), ends: [LogPartition: Int64] = [:]
    ) {
        let before = promise.last
        since = start
        promised = promise.highest
        self.ends = ends.filter { $0.value > 0 }
        let isJoined = before.map { $0.completeSince > .zero && start <= $0.lsn } ?? false
        completeSince = isJoined ? before?.completeSince ?? start : start
        witness = before?.witness
        for (partition, position) in last {
            let slot = slot(of: partition)
            self.last[slot] = position
            if let end = ends[partition] { stored[slot] = (position, partition, end) }
        }
        for partition in promise.lost(in: ends) {
            isCut = true
            self.ends[partition] = ends[partition] ?? 0
            // No record has this position, so that a reader of what comes next misses the one before.
            self.last[slot(of: partition)] = Position(lsn: promised, ordinal: .max)
        }
    }

    /// Where the partition's chain is kept; the same as long as this state lives.
    mutating func slot(of partition: LogPartition) -> Int {
        if let slot = slots[partition] { return slot }
        slots[partition] = last.count
        last.append(nil)
        stored.append(nil)
        return last.count - 1
    }

    /// The position of the record before this one, which becomes the last.
    mutating func link(_ slot: Int, _ position: Position) -> Position? {
        let previous = last[slot]
        last[slot] = position
        return previous
    }

    /// Takes the ends of partitions after a batch. Records were lost if an end is not behind the one before.
    /// - Returns: the partitions that lost records.
    @discardableResult
    mutating func appended(_ new: [LogPartition: Int64]) -> [LogPartition] {
        let lost = new.filter { partition, end in end > 0 && end <= ends[partition] ?? 0 }.map(\.key)
        if !lost.isEmpty { isCut = true }
        grown.merge(new) { max($0, $1) }
        ends.merge(new) { _, end in end }
        return lost
    }

    /// Returns `true` if a publisher before this one has appended the record, which is promised with the next progress then.
    ///
    /// A partition has its records in the order of their positions. If one is missing before the last, the chain tells readers so, and they
    /// would take no later copy of it.
    mutating func isStored(_ slot: Int, _ position: Position) -> Bool {
        guard let known = stored[slot] else { return false }
        guard position <= known.position else {
            stored[slot] = nil
            return false
        }
        grown[known.partition] = max(grown[known.partition] ?? 0, known.end)
        return true
    }

    /// Changes from before this are missing, wherever the log was.
    mutating func lost(before lsn: LSN) {
        since = max(since, lsn)
        completeSince = max(completeSince, lsn)
    }

    /// - Parameter transaction: the one that ended there, if any did.
    mutating func passed(_ lsn: LSN, _ transaction: Witness? = nil) {
        reached = max(reached, lsn)
        guard let transaction else { return }
        commitTime = transaction.commitTime
        witness = transaction
    }

    /// The progress to write now, if there is any.
    mutating func takeProgress() -> ProgressRecord? {
        guard reached > announced else { return nil }
        announced = reached
        // Readers pass over what was promised before: what follows on it has to lie behind.
        if isCut { lost(before: max(reached, LSN(rawValue: promised.rawValue + 1))) }
        isCut = false
        if untilWhole == 0 { grown.merge(ends) { end, _ in end } }
        untilWhole = (untilWhole == 0 ? LogPromise.wholeEvery : untilWhole) - 1
        defer {
            grown.removeAll(keepingCapacity: true)
            since = max(since, reached)
        }
        return ProgressRecord(
            lsn: reached, commitTime: commitTime, grown: grown, since: since, completeSince: completeSince, witness: witness)
    }
}

/// *Up to this LSN everything is in Kafka, below these offsets.*
package struct ProgressRecord: Sendable {
    package var lsn: LSN
    package var commitTime: Int64
    package var grown: [LogPartition: Int64]
    /// From here on nothing is missing; zero when that is not said.
    package var since: LSN
    /// Nothing that was committed between this and `lsn` is missing; zero when that is not said.
    package var completeSince: LSN
    /// The last transaction that is known up to `lsn`.
    package var witness: Witness?

    package init(
        lsn: LSN, commitTime: Int64, grown: [LogPartition: Int64], since: LSN, completeSince: LSN = .zero, witness: Witness? = nil
    ) {
        self.lsn = lsn
        self.commitTime = commitTime
        self.grown = grown
        self.since = since
        self.completeSince = completeSince
        self.witness = witness
    }
}
