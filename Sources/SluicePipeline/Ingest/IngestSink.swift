package import Logging
package import SluiceCore
import Synchronization

/// Moves the objects of one ingest topic into their table, each exactly once.
///
/// Rows and offsets are written in one transaction, and the offset that was read is checked in it, so that neither a crash
/// nor a second sink can write an object twice or leave one out. The gateways share a topic's partitions, and share them anew
/// within two seconds when one comes or goes. While one batch is written the next is read and decided on; memory is those two
/// (`Limits.ingestBatchObjects`, `ingestBatchBytes`) and what the log's reader holds.
package final class IngestSink: Sendable {
    /// Nanoseconds between looks at which partitions are this gateway's.
    private static let shareInterval: UInt64 = 1_000_000_000
    /// Nanoseconds between looks at how much there is still to read.
    private static let lagInterval: UInt64 = 5_000_000_000
    /// Nanoseconds of work after which a trouble counts as the first one.
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
    /// The partitions that this gateway has, each with the offset behind what is in the table.
    private let places = Mutex<[LogPartition: Int64]>([:])

    package init(
        type: String, topic: String, partitions: Int32, log: any MessageLog, store: any IngestStore, rules: any Rules,
        authority: any SchemaAuthority, environment: any Environment, logger: Logger, observer: any IngestObserver
    ) {
        self.type = type
        self.topic = topic
        self.partitions = partitions
        self.log = log
        self.store = store
        decider = IngestDecider(rules: rules, authority: authority)
        self.environment = environment
        self.logger = logger
        self.observer = observer
    }

    /// Works until the task is cancelled; troubles are waited out with a growing pause (0.1 to 5 s).
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
                logger.warning("An ingest sink stopped; it starts again.", metadata: ["topic": "\(topic)", "error": "\(error)"])
                pause = environment.monotonicNanoseconds() - start > Self.calm ? 100 : min(pause * 2, 5_000)
            }
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
            // The offset behind what has been read, of each partition.
            var next: [LogPartition: Int64] = [:]
            while !Task.isCancelled {
                let now = environment.monotonicNanoseconds()
                if now - (shared ?? 0) >= Self.shareInterval || shared == nil {
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
                    try await writes.waitForAll()
                    writes.addTask { try await self.write(outcome) }
                }
            }
        }
    }

    /// Leaves the partitions that are another gateway's now, and goes on where others have stopped.
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

    /// What retention took before anybody read it is lost. Of a topic that was made anew nothing is: its records count from 0
    /// again, and objects that are in their table already are passed over by their keys.
    private func pass(_ gap: LogPartition) async throws {
        guard let stored = places.withLock({ $0[gap] }) else { return }
        let end = try await log.ends(of: [gap])[gap] ?? 0
        logger.error(
            end < stored
                ? "An ingest topic was made anew; it is read from its beginning." : "Ingest records were lost: the log no longer has them.",
            metadata: ["topic": "\(gap.topic)", "partition": "\(gap.partition)", "offset": "\(stored)", "end": "\(end)", "code": "702"])
        guard end < stored else { return }
        try await store.rewind(gap, from: stored)
        places.withLock { $0[gap] = 0 }
    }

    /// What becomes of one transaction.
    private struct Run {
        var records: [IngestRecord] = []
        var offsets: [Int32: Range<Int64>] = [:]
        var bytes = 0
    }

    /// The records of a fetch that are new, bounded in count and bytes.
    private func runs(of fetch: LogFetch, from next: inout [LogPartition: Int64]) -> [Run] {
        var runs: [Run] = []
        var run = Run()
        // Records come in stretches of one partition.
        var current: (partition: LogPartition, from: Int64, to: Int64)?
        func note() {
            guard let current else { return }
            next[current.partition] = current.to
            let number = current.partition.partition
            run.offsets[number] = (run.offsets[number]?.lowerBound ?? current.from)..<current.to
        }
        for entry in fetch.entries {
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
        var tally = try await store.commit(decided.outcome)
        places.withLock { places in
            for (partition, offsets) in decided.outcome.offsets { places[LogPartition(topic, partition)] = offsets.upperBound }
        }
        tally.dropped = decided.dropped
        observer.took(type, tally)
    }
}
