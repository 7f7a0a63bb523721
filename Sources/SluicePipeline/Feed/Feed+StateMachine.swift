package import SluiceCore

/// A record read from its partition and not yet below the watermark. The bytes are a slice of the fetch that brought them.
package struct PendingRecord: Hashable, Sendable {
    package var position: Position
    package var xid: UInt32
    package var bytes: ArraySlice<UInt8>
}

/// Everything that one step of the watermark released, in commit order.
package struct ReleasedBatch: Hashable, Sendable {
    package var records: [PendingRecord]
    package var watermark: LSN
    /// Partitions that lost records (a gap in the log, or too many waiting): their sessions start again from a bootstrap.
    package var resync: Set<LogPartition>
    /// The last transaction that is known up to the watermark; nil when none is.
    package var witness: Witness?

    package init(records: [PendingRecord], watermark: LSN, resync: Set<LogPartition>, witness: Witness? = nil) {
        self.records = records
        self.watermark = watermark
        self.resync = resync
        self.witness = witness
    }
}

/// The feed's decisions: what is below the watermark, what is a duplicate, what is missing. Pure.
struct FeedState {
    private struct Partition {
        /// Where reading began. The record before tells only what precedes the first.
        var begin: Int64
        /// The offset after the last record seen.
        var consumed: Int64
        var last: Position?
        var waiting = Fifo<PendingRecord>()
        /// Set while records are thrown away because too many wait: the newest position thrown away.
        var discarded: Position?
        var isBroken = false
        /// The watermark when the partition last lacked records: nothing before it may count as known.
        var wholeSince: LSN = .zero

        /// Whether a step of the watermark to `lsn` has anything to do with it.
        func isConcerned(by lsn: LSN) -> Bool {
            if let first = waiting.first, first.position.lsn <= lsn { return true }
            if let discarded, discarded.lsn <= lsn { return true }
            return isBroken
        }
    }

    private var partitions: [LogPartition: Partition] = [:]
    /// Partitions that are going to be read, and whose ends are being asked for.
    private var expected: Set<LogPartition> = []
    private var progress = Fifo<ProgressRecord>()
    /// The ends that progress records promise. A partition that is shorter has lost records.
    private var promised: [LogPartition: Int64] = [:]
    /// Partitions whose offsets were given out again, and where reading them goes on.
    private var rewound: [LogPartition: Int64] = [:]
    private(set) var waitingBytes = 0
    private let bound: Int
    /// Steps of the watermark that wait for their records at most; beyond them the last becomes wider.
    static let mostProgress = 4_096
    /// What was released last.
    private(set) var recent: RecentRecords
    private(set) var watermark: LSN = .zero
    /// Nothing after this is missing in the log; nil when that is not known.
    private(set) var completeSince: LSN?
    /// The last transaction that is known up to the watermark.
    private var witness: Witness?

    init(bound: Int = Limits.feedBytes, recent: Int = Limits.recentBytes) {
        self.bound = bound
        self.recent = RecentRecords(bound: recent)
    }

    var assigned: Dictionary<LogPartition, Int64> { partitions.mapValues(\.consumed) }

    /// From now on the watermark waits for what is promised of the partitions: it may come before it is known where reading begins.
    mutating func expect(_ partitions: [LogPartition]) { expected.formUnion(partitions) }

    /// They are not going to be read after all.
    mutating func unexpect(_ partitions: [LogPartition]) { expected.subtract(partitions) }

    /// - Parameter offset: what is behind it is released; the record before it, if it comes, says what that follows on.
    mutating func assign(_ partition: LogPartition, from offset: Int64) {
        expected.remove(partition)
        guard partitions[partition] == nil else { return }
        partitions[partition] = Partition(begin: offset, consumed: offset)
        recent.begin(partition, at: offset == 0 ? .zero : nil)
    }

    mutating func unassign(_ partition: LogPartition) {
        recent.end(partition)
        rewound[partition] = nil
        guard var state = partitions.removeValue(forKey: partition) else { return }
        throwAway(&state.waiting)
    }

    private mutating func throwAway(_ waiting: inout Fifo<PendingRecord>) {
        while let record = waiting.popFirst() { waitingBytes -= record.bytes.count }
    }

    /// The partition lacks the records at the offset that comes next. Its reader goes on with the oldest record there is.
    mutating func gap(_ partition: LogPartition) {
        cut(partition)
        // Offsets may be given out again: those that were read before say nothing of the records that have them now.
        partitions[partition]?.consumed = 0
    }

    /// The partition lacks records that were promised. Its sessions start again with the next step of the watermark.
    mutating func cut(_ partition: LogPartition) {
        guard partitions[partition] != nil else { return }
        partitions[partition]?.isBroken = true
        recent.begin(partition, at: nil)
    }

    /// The promised ends of partitions, as far as they are known.
    func promised(of wanted: [LogPartition]) -> [LogPartition: Int64] {
        Dictionary(wanted.compactMap { partition in promised[partition].map { (partition, $0) } }, uniquingKeysWith: { max($0, $1) })
    }

    /// The step that the watermark waits to take, with the partitions that it waits for and their promised ends.
    var awaited: (lsn: LSN, ends: [LogPartition: Int64])? {
        guard let next = progress.first else { return nil }
        let ends = next.grown.filter { partition, end in partitions[partition].map { $0.consumed < end && !$0.isBroken } ?? false }
        return ends.isEmpty ? nil : (next.lsn, ends)
    }

    /// Takes the partitions that have to be read from another offset, since theirs were given out again.
    mutating func takeRewound() -> [LogPartition: Int64] {
        defer { rewound.removeAll() }
        return rewound
    }

    /// Takes a record. Positions that were seen are dropped (a publisher that took over repeats itself); a record whose
    /// predecessor was not seen breaks the partition.
    mutating func record(
        _ partition: LogPartition, offset: Int64, position: Position, previous: Position?, xid: UInt32,
        bytes: ArraySlice<UInt8>
    ) {
        guard var state = partitions.removeValue(forKey: partition) else { return }
        defer { partitions[partition] = state }
        state.consumed = max(state.consumed, offset + 1)
        if let last = state.last {
            guard position > last else { return }
            if previous != last { state.isBroken = true }
        } else if offset == 0, state.begin == 0, previous != nil {
            // The partition was empty, and its first record follows on another.
            state.isBroken = true
        }
        let isFirst = state.last == nil
        state.last = position
        if isFirst, offset < state.begin {
            if !state.isBroken { recent.begin(partition, at: max(position.lsn, state.wholeSince)) }
            return
        }
        if isFirst, state.begin > 0, !state.isBroken {
            recent.begin(partition, at: previous.map { max($0.lsn, state.wholeSince) })
        }
        if waitingBytes + bytes.count > bound || state.discarded != nil {
            throwAway(&state.waiting)
            state.discarded = position
            return
        }
        waitingBytes += bytes.count
        state.waiting.append(PendingRecord(position: position, xid: xid, bytes: bytes))
    }

    /// Takes a progress record. One that does not follow on what is known tells that the replication slot was made anew, or a table
    /// published again, and that what was committed meanwhile is in no partition: all are broken.
    /// - Returns: whether it does.
    @discardableResult
    mutating func progress(_ record: ProgressRecord) -> Bool {
        let known = progress.last?.lsn ?? watermark
        guard record.lsn > known else {
            // A publisher that took over and found a loss, while it says again what was promised before.
            if let since = completeSince, record.completeSince > since {
                completeSince = record.completeSince
                promise(record.grown)
            }
            return true
        }
        promise(record.grown)
        if progress.count >= Self.mostProgress, let last = progress.last {
            var wider = record
            wider.grown.merge(last.grown) { max($0, $1) }
            wider.witness = record.witness ?? last.witness
            progress.replaceLast(with: wider)
        } else {
            progress.append(record)
        }
        completeSince = record.completeSince > .zero ? record.completeSince : nil
        guard known > .zero, record.since > known else { return true }
        for partition in partitions.keys { partitions[partition]?.isBroken = true }
        return false
    }

    /// Notes promised ends. An end that goes back tells that records were lost and others have their offsets now.
    private mutating func promise(_ ends: [LogPartition: Int64]) {
        for (partition, end) in ends {
            let before = promised.updateValue(end, forKey: partition) ?? 0
            guard end < before, partitions[partition] != nil else { continue }
            cut(partition)
            partitions[partition]?.begin = end
            partitions[partition]?.consumed = end
            partitions[partition]?.last = nil
            rewound[partition] = max(end - 1, 0)
        }
    }

    /// The next step of the watermark, when everything that it promises has been read.
    mutating func release() -> ReleasedBatch? {
        var reached: LSN?
        while let next = progress.first, isRead(next) {
            reached = next.lsn
            witness = next.witness ?? witness
            _ = progress.popFirst()
        }
        guard let reached else { return nil }
        watermark = reached
        return take(upTo: reached)
    }

    private func isRead(_ record: ProgressRecord) -> Bool {
        record.grown.allSatisfy { partition, end in
            guard let state = partitions[partition] else { return !expected.contains(partition) }
            return state.consumed >= end || state.isBroken
        }
    }

    private mutating func take(upTo lsn: LSN) -> ReleasedBatch {
        var batch = ReleasedBatch(records: [], watermark: lsn, resync: [], witness: witness)
        // By an array, and each taken out: what something else holds would be copied, with all that waits in it.
        for partition in Array(partitions.keys) where partitions[partition]?.isConcerned(by: lsn) == true {
            guard var state = partitions.removeValue(forKey: partition) else { continue }
            defer { partitions[partition] = state }
            let start = batch.records.count
            while let first = state.waiting.first, first.position.lsn <= lsn {
                batch.records.append(first)
                waitingBytes -= first.bytes.count
                _ = state.waiting.popFirst()
            }
            if !state.isBroken, state.discarded == nil { recent.add(partition, batch.records[start...]) }
            if let discarded = state.discarded, discarded.lsn <= lsn {
                state.discarded = nil
                state.isBroken = true
            }
            if state.isBroken {
                state.isBroken = false
                state.wholeSince = lsn
                batch.resync.insert(partition)
                recent.begin(partition, at: lsn)
            }
        }
        batch.records.sort { $0.position < $1.position }
        dropTwins(&batch.records)
        return batch
    }

    /// A row that moved between partitions is in both with one position and both images: one of them is enough.
    private func dropTwins(_ records: inout [PendingRecord]) {
        guard records.count > 1 else { return }
        var kept = 1
        for index in 1..<records.count where records[index].position != records[kept - 1].position {
            records[kept] = records[index]
            kept += 1
        }
        records.removeSubrange(kept...)
    }
}
