import Logging
import SluiceCore
import SluicePostgres

/// The maintenance of the companion schema, at the start and every ten minutes, by every gateway.
///
/// It advances the horizon of row clocks, and deletes accounts that are out of use once a day. It limits rejected objects, write rejections
/// and audit entries to `Limits`, because clients that send rejected writes could otherwise fill the database.
struct Housekeeping: Sendable {
    private static let interval: UInt64 = 600_000_000_000
    /// The rounds between two searches for accounts that are out of use, which take a day together.
    private static let idleRounds = 144

    /// The tables.
    struct Stores: Sendable {
        let clients: ClientStore
        /// The client files of Realm's protocol.
        let realm: PostgresRealmClients
        let letters: DeadLetterStore
        let writes: WriteRejectionStore
        let audit: AuditLog
        let users: Users
    }

    /// The tables of users.
    struct Users: Sendable {
        let accounts: UserStore
        let logins: LoginStore
        let pending: PendingUserStore
        let events: UserEventStore

        init(pool: PostgresPool) {
            (accounts, logins) = (UserStore(pool: pool), LoginStore(pool: pool))
            (pending, events) = (PendingUserStore(pool: pool), UserEventStore(pool: pool))
        }
    }

    let stores: Stores
    /// The days for which the gateway keeps merge data for an offline client replica.
    let offlineDays: Int
    /// `true` if there is a dead-letter topic. Rejected objects then stay until the topic has them.
    let hasTopic: Bool
    let environment: any Environment
    let logger: Logger

    func run() async throws {
        var round = 0
        while !Task.isCancelled {
            defer { round += 1 }
            if round % Self.idleRounds == 0 { await deleteIdleAccounts() }
            await attempt("sluice.row_clock") { try await stores.clients.advanceHorizon(days: offlineDays) }
            await attempt("sluice.realm_file") {
                while !Task.isCancelled, try await stores.realm.forget() == PostgresRealmClients.forgotten {}
            }
            await attempt("sluice.client") {
                while !Task.isCancelled, try await stores.clients.deleteOrphans() == RejectionPruning.batch {}
                while !Task.isCancelled, try await stores.realm.deleteOrphans() == RejectionPruning.batch {}
                while !Task.isCancelled, try await stores.writes.deleteLargest(keeping: Int64(Limits.keptRefusals)) {}
            }
            await attempt("sluice.login") { try await stores.users.logins.prune(now: environment.wallMilliseconds()) }
            await attempt("sluice.pending_user") { try await stores.users.pending.prune(now: environment.wallMilliseconds()) }
            await prune("sluice.ingest_rejected", Limits.keptRefusals) { try await stores.letters.prune(keeping: $0, untold: !hasTopic) }
            await prune("sluice.rejected_write", Limits.keptRefusals) { try await stores.writes.prune(keeping: $0) }
            await attempt("sluice.rejected_write") {
                while !Task.isCancelled,
                    try await stores.writes.dropValues(keeping: Limits.keptRefusalBytes) == RejectionPruning.batch
                {}
            }
            await prune("sluice.admin_audit", Limits.auditEntries) { try await stores.audit.prune(keeping: $0) }
            await prune("sluice.user_event", UserEventStore.kept) { try await stores.users.events.prune(keeping: $0) }
            try await environment.sleep(nanoseconds: Self.interval)
        }
    }

    private func deleteIdleAccounts() async {
        await attempt("sluice.user_account") {
            let days = max(Limits.idleAccountDays, offlineDays)
            var deleted = 0
            while !Task.isCancelled {
                let count = try await stores.users.accounts.deleteIdle(days: days)
                deleted += count
                if count < RejectionPruning.batch { break }
            }
            guard deleted > 0 else { return }
            logger.notice(
                "Accounts of anonymous users, or without a login, were deleted, because they were not used.",
                metadata: ["deleted": "\(deleted)", "days": "\(days)"])
        }
    }

    private func prune(_ table: String, _ kept: Int, _ delete: (Int64) async throws -> Int) async {
        await attempt(table) {
            var deleted = 0
            while !Task.isCancelled {
                let count = try await delete(Int64(kept))
                deleted += count
                if count < RejectionPruning.batch { break }
            }
            guard deleted > 0 else { return }
            logger.warning(
                "The oldest rows of a table were deleted, because it exceeded its limit.",
                metadata: ["table": "\(table)", "deleted": "\(deleted)", "kept": "\(kept)"])
        }
    }

    private func attempt(_ table: String, _ work: () async throws -> Void) async {
        do { try await work() } catch {
            guard !Task.isCancelled else { return }
            logger.warning(
                "Old rows of a table could not be deleted. The gateway retries in ten minutes.",
                metadata: ["table": "\(table)", "error": "\(error)"])
        }
    }
}
