import SluiceCore
import SluicePostgres

/// What has to be so before anything else starts.
enum PostgresPreparation {
    /// Waits for PostgreSQL (30 seconds at most), checks its settings and brings the companion schema up to date.
    /// - Throws: `postgresUnreachable`, `postgresSetting` naming every setting that does not fit.
    static func prepare(_ pool: PostgresPool, app: String) async throws {
        let deadline = ContinuousClock.now + .seconds(30)
        while true {
            do {
                try await PostgresFailure.translating {
                    try await pool.withConnection { connection in
                        let unfit = try await ServerSettings.check(connection, slot: ReplicationNames(app: app).slot)
                        if let first = unfit.first {
                            throw SluiceError(.postgresSetting, unfit.map(\.message).joined(separator: " "), fix: first.asSluiceError.fix)
                        }
                        try await CompanionSchema.migrate(connection)
                    }
                }
                return
            } catch let error as SluiceError where error.code == .postgresUnreachable && ContinuousClock.now < deadline {
                // A server that is starting says nothing when it is ready; half a second is what its own tools wait.
                try await Task.sleep(for: .milliseconds(500))
            }
        }
    }
}
