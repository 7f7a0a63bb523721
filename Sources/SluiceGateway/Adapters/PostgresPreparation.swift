import Logging
import SluiceCore
import SluicePostgres

/// What has to be so before anything else starts.
enum PostgresPreparation {
    /// Waits for PostgreSQL (30 seconds at most), checks its settings and brings the companion schema up to date.
    /// - Returns: the names of the app's slot and publication.
    /// - Throws: `postgresUnreachable`, `postgresSetting` naming every setting that does not fit.
    static func prepare(_ pool: PostgresPool, app: String, logger: Logger) async throws -> ReplicationNames {
        let deadline = ContinuousClock.now + .seconds(30)
        while true {
            do {
                return try await PostgresFailure.translating {
                    try await pool.withConnection { connection in
                        let database = try await connection.query("SELECT current_database()")[0, 0]
                        let names = ReplicationNames(app: app, database: database)
                        let unfit = try await ServerSettings.check(connection, slot: names.slot)
                        if let first = unfit.first {
                            throw SluiceError(.postgresSetting, unfit.map(\.message).joined(separator: " "), fix: first.asSluiceError.fix)
                        }
                        try await CompanionSchema.migrate(connection)
                        for conflict in try await EmailForms.conflicts(connection) { warn(conflict, logger) }
                        return names
                    }
                }
            } catch let error as SluiceError where error.code == .postgresUnreachable && ContinuousClock.now < deadline {
                // A server that is starting says nothing when it is ready; half a second is what its own tools wait.
                try await Task.sleep(for: .milliseconds(500))
            }
        }
    }

    private static func warn(_ conflict: EmailForms.Conflict, _ logger: Logger) {
        let error = SluiceError(
            conflict.keeper == nil ? .invalidEmail : .nameInUse,
            conflict.keeper.map { "User \($0) has the e-mail of user \(conflict.user)." }
                ?? "User \(conflict.user) has an unusable e-mail.",
            fix: "Delete user \(conflict.user), or change its row in sluice.user_account; it cannot log in by e-mail.")
        logger.warning("An account has no usable e-mail.", metadata: ["user": "\(conflict.user)", "error": "\(error)"])
    }
}
