package import Logging
package import SluiceCore
import Synchronization

/// Moves the objects of one ingest topic into their table, each exactly once.
///
/// Rows and offsets are written in one transaction, and the offset that was read is checked in it, so that neither a crash
/// nor a second sink can write an object twice or leave one out. The gateways share a topic's partitions, and share them anew
/// within two seconds when one comes or goes. Memory is one batch (`Limits.ingestBatchObjects`, `ingestBatchBytes`).
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
    /// The partitions that this gateway has, each with the offset to go on from.
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
        var fetch = LogFetch()
        var shared: UInt64?
        while !Task.isCancelled {
            let now = environment.monotonicNanoseconds()
            if now - (shared ?? 0) >= Self.shareInterval || shared == nil {
                try await share(reader)
                shared = now
            }
            guard places.withLock({ !$0.isEmpty }) else {
                try await environment.sleep(nanoseconds: Self.shareInterval)
                continue
            }
            fetch = try await reader.next(fetch, milliseconds: 1_000)
            for gap in fetch.gaps { try await pass(gap) }
            for run in runs(of: fetch) { try await write(run, of: fetch) }
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

    /// The fetch cut into runs of one partition, bounded in count and bytes.
    private func runs(of fetch: LogFetch) -> [[LogFetch.Entry]] {
        var byPartition: [LogPartition: [LogFetch.Entry]] = [:]
        for entry in fetch.entries { byPartition[entry.partition, default: []].append(entry) }
        var runs: [[LogFetch.Entry]] = []
        for (_, entries) in byPartition.sorted(by: { $0.key.partition < $1.key.partition }) {
            var run: [LogFetch.Entry] = []
            var bytes = 0
            for entry in entries {
                if run.count >= Limits.ingestBatchObjects || bytes + entry.value.count > Limits.ingestBatchBytes, !run.isEmpty {
                    runs.append(run)
                    run = []
                    bytes = 0
                }
                run.append(entry)
                bytes += entry.value.count
            }
            if !run.isEmpty { runs.append(run) }
        }
        return runs
    }

    private func write(_ run: [LogFetch.Entry], of fetch: LogFetch) async throws {
        guard let first = run.first, let last = run.last, let from = places.withLock({ $0[first.partition] }) else { return }
        let fresh = run.filter { $0.offset >= from }
        guard !fresh.isEmpty else { return }
        let records = fresh.map { IngestRecord(type: type, $0, of: fetch) }
        let decision = try await decider.decide(records, of: type)
        var tally = try await store.commit(
            IngestOutcome(
                partition: first.partition, from: from, to: last.offset + 1, accepted: decision.accepted, refused: decision.refused))
        places.withLock { $0[first.partition] = last.offset + 1 }
        tally.dropped = decision.dropped
        observer.took(type, tally)
    }
}
