import Logging
import SluiceCore
import SluicePostgres

/// Prepares the database before the other parts start.
enum PostgresPreparation {
    /// Waits at most 30 s for PostgreSQL, checks its settings and migrates the companion schema.
    ///
    /// - Returns: The names of the app's slot and publication.
    /// - Throws: `postgresUnreachable`; `postgresSetting` with every unfit setting.
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
                // A server that is starting does not announce that it is ready, so poll.
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
