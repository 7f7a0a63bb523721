import Logging
package import SluiceCore
import SluicePostgres

/// Prepares the database before the other parts start.
enum PostgresPreparation {
    /// Waits at most 30 s for PostgreSQL, checks settings and grants, and creates the companion schema. It logs every 5 s that it waits.
    ///
    /// - Parameter needs: The tables whose grants are checked; nil in development mode, where the role makes them.
    /// - Returns: The names of the app's slot and publication.
    /// - Throws: `postgresUnreachable`; at once `configInvalid` for a role, a password or a database that PostgreSQL refuses;
    ///   `postgresSetting` with every unfit setting; `grantMissing` with every missing grant.
    static func prepare(_ pool: PostgresPool, app: String, needs: DatabaseNeeds?, logger: Logger) async throws -> ReplicationNames {
        let deadline = ContinuousClock.now + .seconds(30)
        var nextLine = ContinuousClock.now
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
                        if let needs { try await DatabaseGrants.require(needs, connection) }
                        try await CompanionSchema.create(connection)
                        return names
                    }
                }
            } catch let error as SluiceError where error.code == .postgresUnreachable && ContinuousClock.now < deadline {
                if let refusal = PostgresRefusal.error(error) { throw refusal }
                if ContinuousClock.now >= nextLine {
                    nextLine = .now + .seconds(5)
                    logger.notice(
                        "PostgreSQL does not answer. The gateway tries again for 30 s in all.",
                        metadata: ["reason": "\(error.operatorText)"])
                }
                // A server that is starting does not announce that it is ready, so poll.
                try await Task.sleep(for: .milliseconds(500))
            }
        }
    }
}

/// The refusals of a connection to PostgreSQL that time does not heal.
package enum PostgresRefusal {
    /// Returns the error for such a refusal; nil for any other error, such as that of a statement.
    package static func error(_ error: SluiceError) -> SluiceError? {
        guard error.code == .postgresUnreachable, case .postgres(let state?, _) = error.cause else { return nil }
        let fix: String
        switch state {
        case "3D000": fix = "Create the database, or name another one in --postgres."
        case "42501": fix = "GRANT CONNECT on the database to the role of --postgres."
        case _ where state.hasPrefix("28"): fix = "Check the user and the password in --postgres, and the server's pg_hba.conf."
        default: return nil
        }
        return SluiceError(.configInvalid, "PostgreSQL refuses the connection. \(error.message)", fix: fix, cause: error.cause)
    }
}
