import DequeModule
import SluiceCore
import SluicePorts

/// The records delivered last, for clients that reconnect soon and then need neither Kafka nor the tables.
///
/// Each partition has a floor behind which no record is missing. Memory is bounded: the oldest records of any partition are evicted
/// first. Pure.
struct RecentRecords {
    private struct Partition {
        /// The LSN after which no record is missing here; nil if unknown.
        var floor: LSN?
        var records = Deque<PendingRecord>()

        mutating func add(_ more: ArraySlice<PendingRecord>) { for record in more { records.append(record) } }

        /// Evicts records up to a position and raises the floor.
        /// - Returns: their size, in bytes.
        mutating func drop(through last: Position) -> Int {
            var bytes = 0
            while let oldest = records.first, oldest.position <= last {
                _ = records.popFirst()
                // What is evicted is missing from here on.
                floor = oldest.position.lsn
                bytes += oldest.bytes.count
            }
            return bytes
        }
    }

    /// The records of one partition in one step of the watermark.
    private struct Step {
        var partition: LogPartition
        var last: Position
    }

    private var partitions: [LogPartition: Partition] = [:]
    /// The steps, oldest first.
    private var remembered = Deque<Step>()
    private var bytes = 0
    private let bound: Int

    init(bound: Int) { self.bound = bound }

    /// The number of remembered steps of the watermark.
    var steps: Int { remembered.count }

    /// Starts a partition.
    /// - Parameter floor: The LSN of the record before the first one read; nil if unknown.
    mutating func begin(_ partition: LogPartition, at floor: LSN?) {
        end(partition)
        partitions[partition] = Partition(floor: floor)
    }

    /// Drops a partition that is no longer read.
    mutating func end(_ partition: LogPartition) {
        guard var old = partitions.removeValue(forKey: partition) else { return }
        while let record = old.records.popFirst() { bytes -= record.bytes.count }
        // Its steps as well: if the partition begins again, they would evict its new records.
        remembered.removeAll { $0.partition == partition }
    }

    /// Adds released records and evicts the oldest beyond the bound.
    /// - Parameter records: The records of one step of the watermark, after all added before.
    mutating func add(_ partition: LogPartition, _ records: ArraySlice<PendingRecord>) {
        guard let last = records.last, partitions[partition] != nil else { return }
        // Append in place: a second reference would copy the whole partition on the eviction below.
        partitions[partition]?.add(records)
        for record in records { bytes += record.bytes.count }
        remembered.append(Step(partition: partition, last: last.position))
        // By steps, so that the order of eviction needs one entry for many records.
        while bytes > bound, let step = remembered.popFirst() { bytes -= partitions[step.partition]?.drop(through: step.last) ?? 0 }
    }

    /// Returns the records of the partitions after a position, each partition in order; nil if one may lack records.
    /// Finds the start by binary search.
    func records(of wanted: [LogPartition], after lsn: LSN) -> [[PendingRecord]]? {
        var found: [[PendingRecord]] = []
        for partition in wanted {
            // Below the floor records may be missing. The caller reads the log then.
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
