import DequeModule
package import SluiceCore
package import SluicePorts

/// A record read from its partition and not yet below the watermark. The bytes are a slice of their fetch.
package struct PendingRecord: Hashable, Sendable {
    package var position: Position
    package var xid: UInt32
    package var bytes: ArraySlice<UInt8>
}

/// The records released by one step of the watermark, in commit order.
package struct ReleasedBatch: Hashable, Sendable {
    package var records: [PendingRecord]
    package var watermark: LSN
    /// Partitions that lost records, by a gap in the log or by too many waiting. Their sessions restart with a bootstrap.
    package var resync: Set<LogPartition>
    /// The last transaction known up to the watermark; nil if none is.
    package var witness: HistoryAnchor?
    /// The latest time of a client's write up to the watermark; zero if there is none.
    package var writeTime: HybridTime

    package init(
        records: [PendingRecord], watermark: LSN, resync: Set<LogPartition>, witness: HistoryAnchor? = nil, writeTime: HybridTime = .zero
    ) {
        self.records = records
        self.watermark = watermark
        self.resync = resync
        self.witness = witness
        self.writeTime = writeTime
    }
}

/// The decisions of the feed: releases, duplicates and losses. Pure.
struct FeedState {
    private struct Partition {
        /// The offset at which reading began. An earlier record only identifies the predecessor of the first one.
        var begin: Int64
        /// The offset after the last record seen.
        var consumed: Int64
        var last: Position?
        var waiting = Deque<PendingRecord>()
        /// The newest discarded position, set while the bound makes the partition discard records.
        var discarded: Position?
        /// `true` from a detected loss until the watermark has reported it.
        var isBroken = false
        /// The watermark when the partition last lacked records. Nothing before it counts as known.
        var wholeSince: LSN = .zero

        /// Returns `true` if a step of the watermark to `lsn` affects the partition.
        func isConcerned(by lsn: LSN) -> Bool {
            if let first = waiting.first, first.position.lsn <= lsn { return true }
            if let discarded, discarded.lsn <= lsn { return true }
            return isBroken
        }
    }

    private var partitions: [LogPartition: Partition] = [:]
    /// Partitions about to be read, while their ends are requested.
    private var expected: Set<LogPartition> = []
    private var progress = Deque<ProgressRecord>()
    /// The ends announced by progress records. A shorter partition has lost records.
    private var promised: [LogPartition: Int64] = [:]
    /// Partitions with reassigned offsets, and the offset from which to read each again.
    private var rewound: [LogPartition: Int64] = [:]
    /// The size of the records that wait for the watermark, in bytes.
    private(set) var waitingBytes = 0
    private let bound: Int
    /// The maximum number of pending watermark steps. Beyond it, the last step absorbs the next.
    static let mostProgress = 4_096
    /// The records released last.
    private(set) var recent: RecentRecords
    private(set) var watermark: LSN = .zero
    /// The LSN after which no change is missing in the log; nil if unknown.
    private(set) var completeSince: LSN?
    /// The last transaction known up to the watermark.
    private var witness: HistoryAnchor?
    /// The latest time of a client's write up to the watermark.
    private var writeTime = HybridTime.zero

    init(bound: Int = Limits.feedBytes, recent: Int = Limits.recentBytes) {
        self.bound = bound
        self.recent = RecentRecords(bound: recent)
    }

    /// The partitions that are read, with the offset after the last record seen.
    var assigned: Dictionary<LogPartition, Int64> { partitions.mapValues(\.consumed) }

    /// Makes the watermark wait for the announced ends of the partitions, before it is known where reading begins.
    mutating func expect(_ partitions: [LogPartition]) { expected.formUnion(partitions) }

    /// Reverses `expect` for partitions that are not read after all.
    mutating func unexpect(_ partitions: [LogPartition]) { expected.subtract(partitions) }

    /// Starts a partition.
    /// - Parameter offset: The offset from which records are released. The record before it, if it arrives, identifies the predecessor.
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

    private mutating func throwAway(_ waiting: inout Deque<PendingRecord>) {
        while let record = waiting.popFirst() { waitingBytes -= record.bytes.count }
    }

    /// Records that the partition lacks the record at the next offset. Its reader continues with the oldest available record.
    mutating func gap(_ partition: LogPartition) {
        cut(partition)
        // Offsets may be reassigned, so those read before do not describe the records that have them now.
        partitions[partition]?.consumed = 0
    }

    /// Records that the partition lacks announced records. Its sessions restart with the next step of the watermark.
    mutating func cut(_ partition: LogPartition) {
        guard partitions[partition] != nil else { return }
        partitions[partition]?.isBroken = true
        recent.begin(partition, at: nil)
    }

    /// Returns the announced ends of partitions, as far as they are known.
    func promised(of wanted: [LogPartition]) -> [LogPartition: Int64] {
        Dictionary(wanted.compactMap { partition in promised[partition].map { (partition, $0) } }, uniquingKeysWith: { max($0, $1) })
    }

    /// The next step of the watermark, with the partitions that delay it and their announced ends.
    var awaited: (lsn: LSN, ends: [LogPartition: Int64])? {
        guard let next = progress.first else { return nil }
        let ends = next.grown.filter { partition, end in partitions[partition].map { $0.consumed < end && !$0.isBroken } ?? false }
        return ends.isEmpty ? nil : (next.lsn, ends)
    }

    /// Removes and returns the partitions to read from another offset, because their offsets were reassigned.
    mutating func takeRewound() -> [LogPartition: Int64] {
        defer { rewound.removeAll() }
        return rewound
    }

    /// Adds a record. Drops positions seen before, which a publisher repeats after a takeover. A record with an unseen predecessor breaks
    /// the partition.
    mutating func record(
        _ partition: LogPartition, offset: Int64, position: Position, previous: Position?, xid: UInt32,
        bytes: ArraySlice<UInt8>
    ) {
        // Taken out of the dictionary: with a second reference, each append would copy the waiting records.
        guard var state = partitions.removeValue(forKey: partition) else { return }
        defer { partitions[partition] = state }
        // Also for duplicates and discarded records: the watermark waits for what is read, not for what is kept.
        state.consumed = max(state.consumed, offset + 1)
        if let last = state.last {
            // A repeated position, appended before and after a takeover.
            guard position > last else { return }
            // A gap in the chain: the record between the two is missing.
            if previous != last { state.isBroken = true }
        } else if offset == 0, state.begin == 0, previous != nil {
            // The partition was empty, yet its first record has a predecessor.
            state.isBroken = true
        }
        let isFirst = state.last == nil
        state.last = position
        // The record before `begin` is not released: it only anchors the chain.
        if isFirst, offset < state.begin {
            if !state.isBroken { recent.begin(partition, at: max(position.lsn, state.wholeSince)) }
            return
        }
        if isFirst, state.begin > 0, !state.isBroken {
            recent.begin(partition, at: previous.map { max($0.lsn, state.wholeSince) })
        }
        // Once a record is discarded, all later ones must be too, or a hole would be released as complete.
        if waitingBytes + bytes.count > bound || state.discarded != nil {
            throwAway(&state.waiting)
            state.discarded = position
            return
        }
        waitingBytes += bytes.count
        state.waiting.append(PendingRecord(position: position, xid: xid, bytes: bytes))
    }

    /// Adds a progress record.
    /// If it does not continue the known ones, the slot was recreated or a table was published again. Commits in between are in no
    /// partition, so all partitions are broken then.
    /// - Returns: `false` if the record does not continue the known ones.
    @discardableResult
    mutating func progress(_ record: ProgressRecord) -> Bool {
        let known = progress.last?.lsn ?? watermark
        guard record.lsn > known else {
            // After a takeover the publisher repeats announcements; this one has found a loss.
            if let since = completeSince, record.completeSince > since {
                completeSince = record.completeSince
                promise(record.grown)
            }
            return true
        }
        promise(record.grown)
        // Merging two steps loses no guarantee: the wider step waits for the ends of both.
        if progress.count >= Self.mostProgress, let last = progress.last {
            var wider = record
            wider.grown.merge(last.grown) { max($0, $1) }
            wider.witness = record.witness ?? last.witness
            wider.writeTime = max(record.writeTime, last.writeTime)
            progress[progress.count - 1] = wider
        } else {
            progress.append(record)
        }
        completeSince = record.completeSince > .zero ? record.completeSince : nil
        // The first record after the start has no predecessor to continue from.
        guard known > .zero, record.since > known else { return true }
        for partition in partitions.keys { partitions[partition]?.isBroken = true }
        return false
    }

    /// Records announced ends. If an end decreases, records were lost and others have their offsets now.
    private mutating func promise(_ ends: [LogPartition: Int64]) {
        for (partition, end) in ends {
            let before = promised.updateValue(end, forKey: partition) ?? 0
            guard end < before, partitions[partition] != nil else { continue }
            cut(partition)
            partitions[partition]?.begin = end
            partitions[partition]?.consumed = end
            // The records at these offsets are others now, so the chain starts anew.
            partitions[partition]?.last = nil
            // One record earlier, which anchors the chain.
            rewound[partition] = max(end - 1, 0)
        }
    }

    /// Takes the next step of the watermark; nil while an announced record is unread.
    mutating func release() -> ReleasedBatch? {
        var reached: LSN?
        // Several steps become one batch.
        while let next = progress.first, isRead(next) {
            reached = next.lsn
            // A step without transactions keeps the witness of the step before.
            witness = next.witness ?? witness
            writeTime = max(writeTime, next.writeTime)
            _ = progress.popFirst()
        }
        guard let reached else { return nil }
        watermark = reached
        return take(upTo: reached)
    }

    private func isRead(_ record: ProgressRecord) -> Bool {
        record.grown.allSatisfy { partition, end in
            // The watermark ignores partitions that are not read, but waits for those that are about to be.
            guard let state = partitions[partition] else { return !expected.contains(partition) }
            // A broken partition delays nothing: lost records never arrive, and its sessions start again.
            return state.consumed >= end || state.isBroken
        }
    }

    private mutating func take(upTo lsn: LSN) -> ReleasedBatch {
        var batch = ReleasedBatch(records: [], watermark: lsn, resync: [], witness: witness, writeTime: writeTime)
        // Iterate over an array and remove each partition: a second reference would copy it with all its waiting records.
        for partition in Array(partitions.keys) where partitions[partition]?.isConcerned(by: lsn) == true {
            guard var state = partitions.removeValue(forKey: partition) else { continue }
            defer { partitions[partition] = state }
            let start = batch.records.count
            while let first = state.waiting.first, first.position.lsn <= lsn {
                batch.records.append(first)
                waitingBytes -= first.bytes.count
                _ = state.waiting.popFirst()
            }
            // Only complete runs may be kept: `recent` guarantees that nothing is missing behind its floor.
            if !state.isBroken, state.discarded == nil { recent.add(partition, batch.records[start...]) }
            // The partition recovers once the watermark has passed everything discarded.
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
        // Partitions are read independently; the position restores the commit order.
        batch.records.sort { $0.position < $1.position }
        dropTwins(&batch.records)
        return batch
    }

    /// Drops duplicates: a row that moved between partitions has one record in each, with equal positions and images.
    private func dropTwins(_ records: inout [PendingRecord]) {
        guard records.count > 1 else { return }
        var kept = 1
        // The records are sorted, so twins are adjacent.
        for index in 1..<records.count where records[index].position != records[kept - 1].position {
            records[kept] = records[index]
            kept += 1
        }
        records.removeSubrange(kept...)
    }
}
