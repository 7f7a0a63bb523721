import Logging
import ServiceLifecycle
import SluiceCore
import SluicePipeline
import SluicePorts

/// Runs a sink for each asymmetric class. A class that is learned at run time gets its sink within about a second.
struct IngestService: Service {
    let schema: GatewaySchema
    let topics: Topics
    let log: any MessageLog
    let store: any IngestStore
    let rules: any Rules
    let environment: any Environment
    let watch: IngestWatch
    let logger: Logger

    func run() async throws {
        do {
            try await cancelWhenGracefulShutdown { try await work() }
        } catch is CancellationError {
            return
        }
    }

    private func work() async throws {
        await withDiscardingTaskGroup { group in
            var running: Set<String> = []
            while !Task.isCancelled {
                for type in schema.current().schema.types where type.kind == .asymmetric && !running.contains(type.name) {
                    // If the log does not answer, the next pass retries.
                    guard let partitions = try? await schema.ingestPartitions(of: type.name) else { continue }
                    running.insert(type.name)
                    let sink = sink(for: type.name, partitions: partitions)
                    group.addTask { await sink.run() }
                }
                // Development mode and `schema apply` add classes. One second of delay is acceptable for both.
                try? await environment.sleep(nanoseconds: 1_000_000_000)
            }
            group.cancelAll()
        }
    }

    private func sink(for type: String, partitions: Int32) -> IngestSink {
        IngestSink(
            topic: IngestSink.Topic(of: type, name: topics.ingest(of: type), partitions: partitions), log: log, store: store, rules: rules,
            authority: schema, environment: environment, logger: logger, observer: watch)
    }
}

/// Records ingest metrics.
struct IngestWatch: IngestObserver {
    let metrics: Metrics
    let logger: Logger

    func took(_ type: String, _ tally: IngestTally) {
        metrics.number(.ingested, label: type).add(tally.written + tally.duplicates)
        metrics.number(.ingestDuplicates, label: type).add(tally.duplicates)
        metrics.number(.ingestRefused, label: type).add(tally.refused)
        guard !tally.dropped.isEmpty else { return }
        metrics.number(.ingestDropped, label: type).add(tally.dropped.values.reduce(0, +))
        for (reason, count) in tally.dropped {
            logger.debug("The ingest rules dropped objects.", metadata: ["type": "\(type)", "reason": "\(reason)", "count": "\(count)"])
        }
    }

    func lags(_ type: String, records: Int64) { metrics.number(.ingestLag, label: type).set(Double(records)) }
}
