import SluiceCore
import SluicePorts
import Synchronization

@testable import SluicePipeline

/// A log that a test takes the last records of, as a power failure or an unclean election does.
final class CutLog: MessageLog {
    private struct State {
        var partitions: [LogPartition: [[UInt8]]] = [:]
        var counts: [String: Int32] = [:]
    }

    private let state = Mutex(State())

    /// Removes the last records of a partition. Their offsets are given out again.
    func cut(_ partition: LogPartition, by count: Int) {
        state.withLock { $0.partitions[partition, default: []].removeLast(count) }
    }

    func count(of partition: LogPartition) -> Int { state.withLock { $0.partitions[partition]?.count ?? 0 } }

    func prepare(_ topics: [TopicSpec]) async throws -> [Int32] {
        state.withLock { state in
            topics.map { topic in
                if let count = state.counts[topic.name] { return count }
                state.counts[topic.name] = topic.partitions
                for partition in 0..<topic.partitions { state.partitions[LogPartition(topic.name, partition)] = [] }
                return topic.partitions
            }
        }
    }

    func append(_ batch: LogBatch) async throws -> [LogPartition: Int64] {
        let offsets = try await place(batch)
        let ends = zip(batch.entries, offsets).map { (LogPartition(batch.topics[Int($0.topic)], $0.partition), $1 + 1) }
        return Dictionary(ends, uniquingKeysWith: { max($0, $1) })
    }

    func place(_ batch: LogBatch) async throws -> [Int64] {
        state.withLock { state in
            batch.entries.map { entry in
                let partition = LogPartition(batch.topics[Int(entry.topic)], entry.partition)
                state.partitions[partition, default: []].append(Array(batch.arena[entry.value]))
                return Int64((state.partitions[partition]?.count ?? 0) - 1)
            }
        }
    }

    func ends(of partitions: [LogPartition]) async throws -> [LogPartition: Int64] {
        try await ranges(of: partitions).mapValues(\.upperBound)
    }

    func ranges(of partitions: [LogPartition]) async throws -> [LogPartition: Range<Int64>] {
        Dictionary(partitions.map { ($0, 0..<Int64(count(of: $0))) }, uniquingKeysWith: { first, _ in first })
    }

    func makeReader() async throws -> any LogReader { Reader(log: self) }

    private final class Reader: LogReader {
        private let log: CutLog
        private let positions = Mutex<[LogPartition: Int64]>([:])

        init(log: CutLog) { self.log = log }

        func assign(_ partitions: [LogPartition: Int64]) async throws { positions.withLock { $0.merge(partitions) { _, new in new } } }

        func unassign(_ partitions: [LogPartition]) async throws {
            positions.withLock { positions in for partition in partitions { positions[partition] = nil } }
        }

        func next(_ fetch: consuming LogFetch, milliseconds: Int) async throws -> LogFetch {
            var fetch = fetch
            fetch.removeAll()
            for _ in 0..<max(milliseconds, 1) {
                read(into: &fetch)
                if !fetch.entries.isEmpty || !fetch.gaps.isEmpty { break }
                // A reader waits for records for at most this time.
                try await Task.sleep(for: .milliseconds(1))
            }
            return fetch
        }

        private func read(into fetch: inout LogFetch) {
            positions.withLock { positions in
                for (partition, offset) in positions {
                    let records = log.state.withLock { $0.partitions[partition] ?? [] }
                    if offset > records.count { fetch.gaps.append(partition) }
                    let start = offset > records.count ? 0 : Int(offset)
                    for (index, record) in records[start...].enumerated() {
                        let begin = fetch.arena.count
                        fetch.arena += record
                        fetch.entries.append(
                            .init(partition: partition, offset: Int64(start + index), value: begin..<fetch.arena.count))
                    }
                    positions[partition] = Int64(records.count)
                }
            }
        }

        func close() async {}
    }
}
