package import Logging
package import SluiceCore
package import SluicePorts
import Synchronization

/// Moves the objects of one ingest topic into their table, each exactly once.
///
/// One transaction writes rows and offsets and checks the offset that was read. Neither a crash nor a second sink can therefore write an
/// object twice or omit one. The gateways share a topic's partitions and rebalance within two seconds. One batch is written while the
/// next is read and decided. Memory is bounded by these two (`Limits.ingestBatchObjects`, `ingestBatchBytes`) and the log reader's
/// buffer.
package final class IngestSink: Sendable {
    /// The interval between claims of partitions, in nanoseconds.
    private static let shareInterval: UInt64 = 1_000_000_000
    /// The interval between measurements of the lag, in nanoseconds.
    private static let lagInterval: UInt64 = 5_000_000_000
    /// The duration of undisturbed work that resets the back-off, in nanoseconds.
    private static let calm: UInt64 = 10_000_000_000

    private let type: String
    private let topic: String
    private let partitions: Int32
    private let log: any MessageLog
    private let store: any IngestStore
    private let decider: IngestDecider
    private let environment: any Environment
    private let logger: Logger
    private let observer: any IngestObserver
    /// The claimed partitions, each with the offset after its stored records.
    private let places = Mutex<[LogPartition: Int64]>([:])

    /// The topic of an asymmetric class.
    package struct Topic: Sendable {
        package var type: String
        package var name: String
        package var partitions: Int32

        package init(of type: String, name: String, partitions: Int32) {
            self.type = type
            self.name = name
            self.partitions = partitions
        }
    }

    package init(
        topic: Topic, log: any MessageLog, store: any IngestStore, rules: any Rules, authority: any SchemaAuthority,
        environment: any Environment, logger: Logger, observer: any IngestObserver
    ) {
        type = topic.type
        self.topic = topic.name
        partitions = topic.partitions
        self.log = log
        self.store = store
        decider = IngestDecider(rules: rules, authority: authority)
        self.environment = environment
        self.logger = logger
        self.observer = observer
    }

    /// Runs until the task is cancelled. Retries failures with a back-off of at most 5 s.
    package func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.watchLag() }
            await work()
            group.cancelAll()
        }
    }

    private func work() async {
        var pause: UInt64 = 100
        while !Task.isCancelled {
            let start = environment.monotonicNanoseconds()
            do {
                try await log.withReader { try await drain($0) }
            } catch is CancellationError {
                break
            } catch {
                logger.warning("An ingest sink stopped and is restarted.", metadata: ["topic": "\(topic)", "error": "\(error)"])
                pause = environment.monotonicNanoseconds() - start > Self.calm ? 100 : min(pause * 2, 5_000)
            }
            // Forget the places before the release: another gateway may advance the stored offsets.
            places.withLock { $0 = [:] }
            await store.release(topic: topic)
            try? await environment.sleep(nanoseconds: pause * 1_000_000)
        }
        places.withLock { $0 = [:] }
        await store.release(topic: topic)
    }

    private func drain(_ reader: any LogReader) async throws {
        try await withThrowingTaskGroup(of: Void.self) { writes in
            var fetch = LogFetch()
            var shared: UInt64?
            // The offset after the records read so far, by partition.
            var next: [LogPartition: Int64] = [:]
            while !Task.isCancelled {
                let now = environment.monotonicNanoseconds()
                if now - (shared ?? 0) >= Self.shareInterval || shared == nil {
                    // No write may be in flight while partitions change: its offsets would be another gateway's.
                    try await writes.waitForAll()
                    try await share(reader)
                    next = places.withLock(\.self)
                    shared = now
                }
                guard !next.isEmpty else {
                    try await environment.sleep(nanoseconds: Self.shareInterval)
                    continue
                }
                fetch = try await reader.next(fetch, milliseconds: 1_000)
                if !fetch.gaps.isEmpty {
                    try await writes.waitForAll()
                    for gap in fetch.gaps { try await pass(gap) }
                    next = places.withLock(\.self)
                }
                for run in runs(of: fetch, from: &next) {
                    let outcome = try await decide(run)
                    // One write at a time, in order: each transaction checks the offset left by the previous one.
                    try await writes.waitForAll()
                    writes.addTask { try await self.write(outcome) }
                }
            }
        }
    }

    /// Unassigns partitions claimed by other gateways and assigns newly claimed ones from their stored offsets.
    private func share(_ reader: any LogReader) async throws {
        let mine = Set(try await store.claim(topic: topic, partitions: partitions).map { LogPartition(topic, $0) })
        let had = Set(places.withLock { $0.keys })
        let lost = had.subtracting(mine)
        if !lost.isEmpty {
            places.withLock { places in for partition in lost { places[partition] = nil } }
            try await reader.unassign(Array(lost))
        }
        let new = mine.subtracting(had)
        guard !new.isEmpty else { return }
        let offsets = try await store.offsets(of: Array(new))
        try await reader.assign(offsets)
        places.withLock { $0.merge(offsets) { $1 } }
    }

    private func watchLag() async {
        while !Task.isCancelled {
            let places = self.places.withLock(\.self)
            if let ends = try? await log.ends(of: Array(places.keys)) {
                observer.lags(type, records: ends.reduce(0) { $0 + max($1.value - (places[$1.key] ?? 0), 0) })
            }
            do { try await environment.sleep(nanoseconds: Self.lagInterval) } catch { return }
        }
    }

    /// Handles a gap. Records that expired before they were read are lost.
    /// A recreated topic loses nothing: its offsets restart at 0, and objects already in the table are skipped by their keys.
    private func pass(_ gap: LogPartition) async throws {
        guard let stored = places.withLock({ $0[gap] }) else { return }
        let end = try await log.ends(of: [gap])[gap] ?? 0
        logger.error(
            end < stored
                ? "An ingest topic was created again. It is read from its beginning."
                : "Ingest records were lost: the log no longer has them.",
            metadata: ["topic": "\(gap.topic)", "partition": "\(gap.partition)", "offset": "\(stored)", "end": "\(end)", "code": "702"])
        // An end below the stored offset is only possible in a recreated topic.
        guard end < stored else { return }
        try await store.rewind(gap, from: stored)
        places.withLock { $0[gap] = 0 }
    }

    /// The records of one transaction.
    private struct Run {
        var records: [IngestRecord] = []
        var offsets: [Int32: Range<Int64>] = [:]
        var bytes = 0
    }

    /// Returns the new records of a fetch, in runs bounded by count and bytes.
    private func runs(of fetch: LogFetch, from next: inout [LogPartition: Int64]) -> [Run] {
        var runs: [Run] = []
        var run = Run()
        // Records arrive in stretches of one partition.
        var current: (partition: LogPartition, from: Int64, to: Int64)?
        func note() {
            guard let current else { return }
            next[current.partition] = current.to
            let number = current.partition.partition
            run.offsets[number] = (run.offsets[number]?.lowerBound ?? current.from)..<current.to
        }
        for entry in fetch.entries {
            // A run holds at least one record, so a record over the byte bound still makes progress.
            let isFull = run.records.count >= Limits.ingestBatchObjects || run.bytes + entry.value.count > Limits.ingestBatchBytes
            if isFull, !run.records.isEmpty {
                note()
                runs.append(run)
                run = Run()
                current = nil
            }
            if current?.partition != entry.partition {
                note()
                current = next[entry.partition].map { (entry.partition, $0, $0) }
            }
            guard let to = current?.to, entry.offset >= to else { continue }
            run.records.append(IngestRecord(type: type, entry, of: fetch))
            run.bytes += entry.value.count
            current?.to = entry.offset + 1
        }
        note()
        if !run.records.isEmpty { runs.append(run) }
        return runs
    }

    private func decide(_ run: Run) async throws -> (outcome: IngestOutcome, dropped: [String: Int]) {
        let decision = try await decider.decide(run.records, of: type)
        let outcome = IngestOutcome(topic: topic, offsets: run.offsets, accepted: decision.accepted, refused: decision.refused)
        return (outcome, decision.dropped)
    }

    private func write(_ decided: (outcome: IngestOutcome, dropped: [String: Int])) async throws {
        // Advance only after the commit: after a failure, reading restarts at the stored offset.
        var tally = try await store.commit(decided.outcome)
        places.withLock { places in
            for (partition, offsets) in decided.outcome.offsets { places[LogPartition(topic, partition)] = offsets.upperBound }
        }
        tally.dropped = decided.dropped
        observer.took(type, tally)
    }
}
