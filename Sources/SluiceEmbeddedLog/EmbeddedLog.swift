import DequeModule
package import SluiceCore
package import SluicePorts
import Synchronization

/// The change log of a single gateway without Kafka: a window of the newest records of all topics, in memory.
///
/// All partitions together hold at most `windowBytes` (default 64 MiB); the oldest records are dropped first. A reader that still needs a
/// dropped record receives a gap and resynchronises its sessions. No data is lost: the tables are authoritative, and the slot is
/// confirmed only after an append returns.
package final class EmbeddedLog: MessageLog {
    private struct Record {
        var value: [UInt8]
        var contentType: RecordContent?
    }

    private struct Partition {
        var first: Int64 = 0
        var records = Deque<Record>()
        var end: Int64 { first + Int64(records.count) }

        mutating func dropOldest() -> Int {
            guard let oldest = records.popFirst() else { return 0 }
            first += 1
            return oldest.value.count
        }
    }

    private struct State {
        var topics: [String: Int32] = [:]
        var partitions: [LogPartition: Partition] = [:]
        /// The partition of each record, oldest first.
        var order = Deque<LogPartition>()
        var bytes = 0
    }

    private let state = Mutex(State())
    private let arrived: AsyncEvent
    private let windowBytes: Int

    package init(environment: any Environment, windowBytes: Int = 64 << 20) {
        arrived = AsyncEvent(environment: environment)
        self.windowBytes = windowBytes
    }

    package func prepare(_ topics: [TopicSpec]) async throws -> [Int32] {
        state.withLock { state in
            topics.map { topic in
                if let partitions = state.topics[topic.name] { return partitions }
                state.topics[topic.name] = topic.partitions
                for partition in 0..<topic.partitions { state.partitions[LogPartition(topic.name, partition)] = Partition() }
                return topic.partitions
            }
        }
    }

    package func append(_ batch: LogBatch) async throws -> [LogPartition: Int64] {
        let offsets = try await place(batch)
        let ends = zip(batch.entries, offsets).map { (LogPartition(batch.topics[Int($0.topic)], $0.partition), $1 + 1) }
        return Dictionary(ends, uniquingKeysWith: { max($0, $1) })
    }

    package func place(_ batch: LogBatch) async throws -> [Int64] {
        let offsets = try state.withLock { state in
            let offsets = try batch.entries.map { entry in
                let partition = LogPartition(batch.topics[Int(entry.topic)], entry.partition)
                guard let offset = state.partitions[partition]?.end else {
                    throw SluiceError(.logTopic, "Topic \(partition.topic) has no partition \(partition.partition).")
                }
                state.partitions[partition]?.records.append(
                    Record(value: Array(batch.arena[entry.value]), contentType: batch.contentType))
                state.order.append(partition)
                state.bytes += entry.value.count
                return offset
            }
            trim(&state)
            return offsets
        }
        // After the lock is released, because a woken reader takes it.
        arrived.fire()
        return offsets
    }

    private func trim(_ state: inout State) {
        while state.bytes > windowBytes, let oldest = state.order.popFirst() {
            state.bytes -= state.partitions[oldest]?.dropOldest() ?? 0
        }
    }

    package func ends(of partitions: [LogPartition]) async throws -> [LogPartition: Int64] {
        state.withLock { state in
            Dictionary(partitions.map { ($0, state.partitions[$0]?.end ?? 0) }, uniquingKeysWith: { first, _ in first })
        }
    }

    package func ranges(of partitions: [LogPartition]) async throws -> [LogPartition: Range<Int64>] {
        state.withLock { state in
            Dictionary(
                partitions.map { ($0, state.partitions[$0].map { $0.first..<$0.end } ?? 0..<0) }, uniquingKeysWith: { first, _ in first })
        }
    }

    package func makeReader() async throws -> any LogReader { EmbeddedReader(log: self) }

    fileprivate func read(_ positions: inout [LogPartition: Int64], into fetch: inout LogFetch) {
        state.withLock { state in
            for (partition, offset) in positions {
                guard let source = state.partitions[partition] else { continue }
                // An offset behind the window was dropped; one beyond the end belongs to an earlier log.
                let isThere = (source.first...source.end).contains(offset)
                if !isThere { fetch.gaps.append(partition) }
                var next = isThere ? offset : source.first
                while next < source.end, fetch.arena.count < Limits.captureBatchBytes {
                    let start = fetch.arena.count
                    let record = source.records[Int(next - source.first)]
                    fetch.arena.append(contentsOf: record.value)
                    let end = fetch.arena.count
                    if let content = record.contentType { fetch.arena.append(contentsOf: content.rawValue.utf8) }
                    fetch.entries.append(
                        .init(partition: partition, offset: next, value: start..<end, contentType: end..<fetch.arena.count))
                    next += 1
                }
                positions[partition] = next
            }
        }
    }

    fileprivate var signal: AsyncEvent { arrived }
}

private final class EmbeddedReader: LogReader {
    private let log: EmbeddedLog
    private let positions = Mutex<[LogPartition: Int64]>([:])

    init(log: EmbeddedLog) { self.log = log }

    func assign(_ partitions: [LogPartition: Int64]) async throws {
        positions.withLock { $0.merge(partitions) { _, new in new } }
        log.signal.fire()
    }

    func unassign(_ partitions: [LogPartition]) async throws {
        positions.withLock { positions in
            for partition in partitions { positions[partition] = nil }
        }
    }

    func next(_ fetch: consuming LogFetch, milliseconds: Int) async throws -> LogFetch {
        var fetch = fetch
        fetch.removeAll()
        // Read the count before the records: an append in between then ends the wait at once.
        let seen = log.signal.count
        positions.withLock { log.read(&$0, into: &fetch) }
        guard fetch.entries.isEmpty, fetch.gaps.isEmpty else { return fetch }
        await log.signal.wait(after: seen, milliseconds: milliseconds)
        positions.withLock { log.read(&$0, into: &fetch) }
        return fetch
    }

    func close() async {}
}
