package import Logging
package import SluiceCore

/// Moves the objects of one ingest topic into their table, each exactly once.
///
/// Rows and offsets are written in one transaction, and the offset that was read is checked in it, so that neither a crash
/// nor a second sink can write an object twice or leave one out. One gateway holds a topic at a time. Memory is one batch
/// (`Limits.ingestBatchObjects`, `ingestBatchBytes`).
package final class IngestSink: Sendable {
    private let type: String
    private let topic: String
    private let partitions: Int32
    private let log: any MessageLog
    private let store: any IngestStore
    private let decider: IngestDecider
    private let environment: any Environment
    private let logger: Logger
    private let report: @Sendable (_ type: String, _ accepted: Int, _ refused: Int) -> Void

    package init(
        type: String, topic: String, partitions: Int32, log: any MessageLog, store: any IngestStore, rules: any Rules,
        authority: any SchemaAuthority, environment: any Environment, logger: Logger,
        report: @escaping @Sendable (_ type: String, _ accepted: Int, _ refused: Int) -> Void
    ) {
        self.type = type
        self.topic = topic
        self.partitions = partitions
        self.log = log
        self.store = store
        decider = IngestDecider(rules: rules, authority: authority)
        self.environment = environment
        self.logger = logger
        self.report = report
    }

    /// Works until the task is cancelled; troubles are waited out with a growing pause (0.1 to 5 s).
    package func run() async {
        var pause: UInt64 = 100
        while !Task.isCancelled {
            do {
                if try await store.acquire(topic: topic) {
                    pause = 100
                    try await log.withReader { try await drain($0) }
                } else {
                    pause = 1_000
                }
            } catch is CancellationError {
                break
            } catch {
                logger.warning("An ingest sink stopped; it starts again.", metadata: ["topic": "\(topic)", "error": "\(error)"])
                pause = min(pause * 2, 5_000)
            }
            await store.release(topic: topic)
            try? await environment.sleep(nanoseconds: pause * 1_000_000)
        }
        await store.release(topic: topic)
    }

    private func drain(_ reader: any LogReader) async throws {
        var offsets = try await store.offsets(of: (0..<partitions).map { LogPartition(topic, $0) })
        try await reader.assign(offsets)
        var fetch = LogFetch()
        while !Task.isCancelled {
            fetch = try await reader.next(fetch, milliseconds: 1_000)
            for gap in fetch.gaps { try await pass(gap, &offsets) }
            for run in runs(of: fetch) {
                try await write(run, of: fetch, offsets: &offsets)
            }
        }
    }

    /// What retention took before anybody read it is lost. Of a topic that was made anew nothing is: its records count from 0
    /// again, and objects that are in their table already are passed over by their keys.
    private func pass(_ gap: LogPartition, _ offsets: inout [LogPartition: Int64]) async throws {
        let stored = offsets[gap] ?? 0
        let end = try await log.ends(of: [gap])[gap] ?? 0
        logger.error(
            end < stored
                ? "An ingest topic was made anew; it is read from its beginning." : "Ingest records were lost: the log no longer has them.",
            metadata: ["topic": "\(gap.topic)", "partition": "\(gap.partition)", "offset": "\(stored)", "end": "\(end)", "code": "702"])
        guard end < stored else { return }
        try await store.rewind(gap, from: stored)
        offsets[gap] = 0
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

    private func write(_ run: [LogFetch.Entry], of fetch: LogFetch, offsets: inout [LogPartition: Int64]) async throws {
        guard let first = run.first, let last = run.last else { return }
        let from = offsets[first.partition] ?? 0
        let fresh = run.filter { $0.offset >= from }
        guard !fresh.isEmpty else { return }
        let outcome = try await decider.decide(fresh.map { Array(fetch.arena[$0.value]) }, of: type)
        try await store.commit(
            IngestOutcome(
                partition: first.partition, from: from, to: last.offset + 1, accepted: outcome.accepted, refused: outcome.refused))
        offsets[first.partition] = last.offset + 1
        report(type, outcome.accepted.count, outcome.refused.count)
    }
}
