import SluiceCore
import SluicePostgres

/// Prepares the database before the other parts start.
enum PostgresPreparation {
    /// Waits at most 30 s for PostgreSQL, checks its settings and creates the companion schema.
    ///
    /// - Returns: The names of the app's slot and publication.
    /// - Throws: `postgresUnreachable`; `postgresSetting` with every unfit setting.
    static func prepare(_ pool: PostgresPool, app: String) async throws -> ReplicationNames {
        let deadline = ContinuousClock.now + .seconds(30)
        while true {
            do {
                return try await PostgresError.translating {
                    try await pool.withConnection { connection in
                        let database = try await connection.query("SELECT current_database()")[0, 0]
                        let names = ReplicationNames(app: app, database: database)
                        let unfit = try await ServerSettings.check(connection, slot: names.slot)
                        if let first = unfit.first {
                            throw SluiceError(.postgresSetting, unfit.map(\.message).joined(separator: " "), fix: first.asSluiceError.fix)
                        }
                        try await CompanionSchema.create(connection)
                        return names
                    }
                }
            } catch let error as SluiceError where error.code == .postgresUnreachable && ContinuousClock.now < deadline {
                // A server that is starting does not announce that it is ready, so poll.
                try await Task.sleep(for: .milliseconds(500))
            }
        }
    }
}
