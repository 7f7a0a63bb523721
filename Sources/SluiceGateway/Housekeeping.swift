import Logging
import SluiceCore
import SluicePostgres

/// What any gateway may do for the companion schema, at the start and every ten minutes: forget what no client can still need, and
/// keep as many refused objects, refused writes and entries of the audit log as `Limits` says. Whoever sends what is refused could fill
/// the database with it.
struct Housekeeping: Sendable {
    private static let interval: UInt64 = 600_000_000_000

    let clients: ClientStore
    /// How long a client that does not come is waited for.
    let offlineDays: Int
    let letters: DeadLetterStore
    /// Whether a dead-letter topic is told of refused objects, which then stay until it has been.
    let hasTopic: Bool
    let writes: RejectedWriteStore
    let audit: AuditLog
    let environment: any Environment
    let logger: Logger

    func run() async throws {
        while !Task.isCancelled {
            await attempt("sluice.row_clock") { try await clients.advanceHorizon(days: offlineDays) }
            await prune("sluice.ingest_rejected", Limits.keptRefusals) { try await letters.prune(keeping: $0, untold: !hasTopic) }
            await prune("sluice.rejected_write", Limits.keptRefusals) { try await writes.prune(keeping: $0) }
            await prune("sluice.admin_audit", Limits.auditEntries) { try await audit.prune(keeping: $0) }
            try await environment.sleep(nanoseconds: Self.interval)
        }
    }

    private func prune(_ table: String, _ kept: Int, _ delete: (Int64) async throws -> Int) async {
        await attempt(table) {
            var deleted = 0
            while !Task.isCancelled {
                let count = try await delete(Int64(kept))
                deleted += count
                if count < RefusalPruning.batch { break }
            }
            guard deleted > 0 else { return }
            logger.warning(
                "The oldest rows of a table were deleted: there are more than are kept.",
                metadata: ["table": "\(table)", "deleted": "\(deleted)", "kept": "\(kept)"])
        }
    }

    private func attempt(_ table: String, _ work: () async throws -> Void) async {
        do { try await work() } catch {
            guard !Task.isCancelled else { return }
            logger.warning(
                "A table could not be tidied; it is tried again in ten minutes.", metadata: ["table": "\(table)", "error": "\(error)"])
        }
    }
}
