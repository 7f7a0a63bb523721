import SluiceCore

/// What the feed handed on last, for clients that come back soon: they need neither Kafka nor the tables then.
///
/// Of each partition it knows a position behind which it lacks nothing. Memory is bounded: beyond it the oldest records go, whatever
/// their partition. Pure.
struct RecentRecords {
    private struct Partition {
        /// Nothing behind this is missing here; nil when that is not known.
        var floor: LSN?
        var records = Fifo<PendingRecord>()

        mutating func add(_ more: ArraySlice<PendingRecord>) { for record in more { records.append(record) } }

        /// - Returns: bytes of what is gone.
        mutating func drop(through last: Position) -> Int {
            var bytes = 0
            while let oldest = records.first, oldest.position <= last {
                _ = records.popFirst()
                floor = oldest.position.lsn
                bytes += oldest.bytes.count
            }
            return bytes
        }
    }

    /// What one step of the watermark brought of a partition.
    private struct Step {
        var partition: LogPartition
        var last: Position
    }

    private var partitions: [LogPartition: Partition] = [:]
    /// Oldest first.
    private var remembered = Fifo<Step>()
    private var bytes = 0
    private let bound: Int

    init(bound: Int) { self.bound = bound }

    /// Steps of the watermark that it knows of.
    var steps: Int { remembered.count }

    /// A partition is read from now on.
    /// - Parameter floor: of the record before the first one that is read; nil when that is not known.
    mutating func begin(_ partition: LogPartition, at floor: LSN?) {
        end(partition)
        partitions[partition] = Partition(floor: floor)
    }

    /// A partition is not read any more.
    mutating func end(_ partition: LogPartition) {
        guard var old = partitions.removeValue(forKey: partition) else { return }
        while let record = old.records.popFirst() { bytes -= record.bytes.count }
        remembered.removeAll { $0.partition == partition }
    }

    /// - Parameter records: of one step of the watermark, behind all that were added before.
    mutating func add(_ partition: LogPartition, _ records: ArraySlice<PendingRecord>) {
        guard let last = records.last, partitions[partition] != nil else { return }
        // In place: whoever held the partition here would have all of it copied when some of it is dropped below.
        partitions[partition]?.add(records)
        for record in records { bytes += record.bytes.count }
        remembered.append(Step(partition: partition, last: last.position))
        while bytes > bound, let step = remembered.popFirst() { bytes -= partitions[step.partition]?.drop(through: step.last) ?? 0 }
    }

    /// The records of the partitions behind a position, in their order; nil when one of them may lack some.
    func records(of wanted: [LogPartition], after lsn: LSN) -> [[PendingRecord]]? {
        var found: [[PendingRecord]] = []
        for partition in wanted {
            guard let known = partitions[partition], let floor = known.floor, floor <= lsn else { return nil }
            var (low, high) = (0, known.records.count)
            while low < high {
                let middle = (low + high) / 2
                if known.records[middle].position.lsn <= lsn { low = middle + 1 } else { high = middle }
            }
            found.append((low..<known.records.count).map { known.records[$0] })
        }
        return found
    }
}
