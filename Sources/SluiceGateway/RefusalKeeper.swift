import Logging
import SluiceCore
import SluicePostgres

/// Keeps as many refused objects and refused writes as `Limits.keptRefusals` says: looks every ten minutes, on every gateway. Whoever
/// sends what is refused could fill the database with it.
struct RefusalKeeper: Sendable {
    private static let interval: UInt64 = 600_000_000_000

    let letters: DeadLetterStore
    /// Whether a dead-letter topic is told of refused objects, which then stay until it has been.
    let hasTopic: Bool
    let writes: RejectedWriteStore
    let environment: any Environment
    let logger: Logger

    func run() async throws {
        while !Task.isCancelled {
            await prune("sluice.ingest_rejected") { try await letters.prune(keeping: $0, untold: !hasTopic) }
            await prune("sluice.rejected_write", writes.prune)
            try await environment.sleep(nanoseconds: Self.interval)
        }
    }

    private func prune(_ table: String, _ delete: (Int64) async throws -> Int) async {
        do {
            var deleted = 0
            while !Task.isCancelled {
                let count = try await delete(Int64(Limits.keptRefusals))
                deleted += count
                if count < RefusalPruning.batch { break }
            }
            guard deleted > 0 else { return }
            logger.warning(
                "The oldest refusals were deleted: there are more than are kept.",
                metadata: ["table": "\(table)", "deleted": "\(deleted)", "kept": "\(Limits.keptRefusals)"])
        } catch {
            logger.warning("Old refusals could not be deleted.", metadata: ["table": "\(table)", "error": "\(error)"])
        }
    }
}
