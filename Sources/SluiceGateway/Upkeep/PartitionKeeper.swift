import Logging
import SluiceCore
import SluicePostgres

/// Creates and drops the time partitions of ingest tables. Every gateway does so at its start and every ten minutes, one at a time.
struct PartitionKeeper: Sendable {
    private static let interval: UInt64 = 600_000_000_000

    let store: TimePartitionStore
    let environment: any Environment
    let logger: Logger

    func run() async throws {
        while !Task.isCancelled {
            do {
                for (table, outcome) in try await store.keep(now: environment.wallMilliseconds() / 1_000) { tell(table, outcome) }
            } catch  where !(error is CancellationError) {
                logger.warning("The partitions of ingest tables could not be read.", metadata: ["error": "\(error)"])
            }
            try await environment.sleep(nanoseconds: Self.interval)
        }
    }

    private func tell(_ table: String, _ outcome: Result<PartitionWork, any Error>) {
        switch outcome {
        case .success(let work):
            if !work.made.isEmpty { logger.info("Partitions were created.", metadata: ["table": "\(table)", "made": "\(work.made)"]) }
            guard !work.dropped.isEmpty || work.deleted > 0 else { return }
            logger.notice(
                "Partitions with expired rows were dropped.",
                metadata: ["table": "\(table)", "partitions": "\(work.dropped)", "rows": "\(work.deleted)"])
        case .failure(let error):
            logger.warning(
                "The partitions of a table could not be maintained. The gateway retries in ten minutes.",
                metadata: ["table": "\(table)", "error": "\(error)"])
        }
    }
}
