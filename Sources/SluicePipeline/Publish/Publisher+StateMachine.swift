import SluiceCore
import SluicePorts

/// The publisher's state of the change log: the end of each partition and the announced progress. Pure.
struct PublisherState {
    /// The position of the last record of each partition, by slot: the chain that makes a loss visible.
    /// Slots avoid a lookup by topic name for each record, which would cost more than the rest of its bookkeeping.
    private var last: [Position?] = []
    private var slots: [LogPartition: Int] = [:]
    /// The last stored record of each partition when publishing began, by slot, with the end offset. Nil once publishing has passed it.
    private var stored: [(position: Position, partition: LogPartition, end: Int64)?] = []
    /// The partitions that grew since the last progress record, with their ends.
    private var grown: [LogPartition: Int64] = [:]
    /// The end of each partition that has had records.
    private var ends: [LogPartition: Int64]
    /// The number of progress records until the next one that names every partition.
    private var untilWhole = 0
    /// The highest LSN that an earlier publisher announced.
    private let promised: LSN
    /// `true` if partitions lost records since the last progress record.
    private var isCut = false
    /// The LSN of the last progress record.
    private(set) var announced: LSN = .zero
    /// The LSN that the next progress record continues from.
    private var since: LSN
    /// The LSN after which no change is missing in the log.
    private var completeSince: LSN
    /// The LSN up to which the log has everything.
    private(set) var reached: LSN = .zero
    /// The time of the last committed transaction, in microseconds since 1970.
    private(set) var commitTime: Int64 = 0
    /// The last transaction known before `reached`.
    private var witness: HistoryAnchor?
    /// The latest time of a client's write before `reached`.
    private var writeTime: HybridTime

    /// - Parameters:
    ///   - start: The LSN from which the source delivers every change.
    ///   - promise: The progress records of earlier publishers.
    ///   - ends: The offset after the last record of each partition.
    ///   - writeTime: The latest time of a client's write before `start`.
    init(
        last: [LogPartition: Position], start: LSN, after promise: LogPromise = LogPromise(), ends: [LogPartition: Int64] = [:],
        writeTime: HybridTime = .zero
    ) {
        let before = promise.last
        since = start
        promised = promise.highest
        self.ends = ends.filter { $0.value > 0 }
        // The log is continuous only if this source starts no later than the earlier publisher's last announcement.
        let isJoined = before.map { $0.completeSince > .zero && start <= $0.lsn } ?? false
        completeSince = isJoined ? before?.completeSince ?? start : start
        witness = before?.witness
        self.writeTime = max(before?.writeTime ?? .zero, writeTime)
        for (partition, position) in last {
            let slot = slot(of: partition)
            self.last[slot] = position
            if let end = ends[partition] { stored[slot] = (position, partition, end) }
        }
        for partition in promise.lost(in: ends) {
            isCut = true
            // Announce the lower end, so that readers notice it and read again from there.
            self.ends[partition] = ends[partition] ?? 0
            // No record has this position, so a reader of the next record detects that one is missing.
            self.last[slot(of: partition)] = Position(lsn: promised, ordinal: .max)
        }
    }

    /// Returns the chain's slot of a partition, constant for the life of this state.
    mutating func slot(of partition: LogPartition) -> Int {
        if let slot = slots[partition] { return slot }
        slots[partition] = last.count
        last.append(nil)
        stored.append(nil)
        return last.count - 1
    }

    /// Returns the position of the previous record and makes `position` the last.
    mutating func link(_ slot: Int, _ position: Position) -> Position? {
        let previous = last[slot]
        last[slot] = position
        return previous
    }

    /// Records the ends of partitions after a batch. An end at or below the previous one means lost records.
    /// - Returns: the partitions that lost records.
    @discardableResult
    mutating func appended(_ new: [LogPartition: Int64]) -> [LogPartition] {
        // The log assigned an offset twice, so it has lost records that it had acknowledged.
        let lost = new.filter { partition, end in end > 0 && end <= ends[partition] ?? 0 }.map(\.key)
        if !lost.isEmpty { isCut = true }
        grown.merge(new) { max($0, $1) }
        ends.merge(new) { _, end in end }
        return lost
    }

    /// Returns `true` if an earlier publisher has appended the record. The next progress record announces it then.
    ///
    /// Records of a partition are in position order. If one is missing before the last, the chain shows that to readers, which would skip
    /// a later copy.
    mutating func isStored(_ slot: Int, _ position: Position) -> Bool {
        // The common case: no record of an earlier publisher is ahead.
        guard let known = stored[slot] else { return false }
        guard position <= known.position else {
            // Publishing has passed the stored records of this partition.
            stored[slot] = nil
            return false
        }
        grown[known.partition] = max(grown[known.partition] ?? 0, known.end)
        return true
    }

    /// Records that changes before `lsn` are missing.
    mutating func lost(before lsn: LSN) {
        since = max(since, lsn)
        completeSince = max(completeSince, lsn)
    }

    /// Records that the log has everything up to `lsn`.
    /// - Parameter transaction: The transaction that ended there, if any.
    mutating func passed(_ lsn: LSN, _ transaction: HistoryAnchor? = nil) {
        reached = max(reached, lsn)
        // A position between transactions keeps the last transaction as the witness.
        guard let transaction else { return }
        commitTime = transaction.commitTime
        witness = transaction
    }

    /// Records the time of a client's write.
    mutating func wrote(at time: HybridTime) { writeTime = max(writeTime, time) }

    /// Returns the progress record to write now; nil without progress.
    mutating func takeProgress() -> ProgressRecord? {
        guard reached > announced else { return nil }
        announced = reached
        // Readers skip LSNs announced before, so the cut must be beyond every earlier announcement.
        if isCut { lost(before: max(reached, LSN(rawValue: promised.rawValue + 1))) }
        isCut = false
        // Regular complete records bound the distance that a new reader must read back.
        if untilWhole == 0 { grown.merge(ends) { end, _ in end } }
        untilWhole = (untilWhole == 0 ? LogPromise.wholeEvery : untilWhole) - 1
        defer {
            grown.removeAll(keepingCapacity: true)
            since = max(since, reached)
        }
        return ProgressRecord(
            lsn: reached, commitTime: commitTime, grown: grown, since: since, completeSince: completeSince, witness: witness,
            writeTime: writeTime)
    }
}
