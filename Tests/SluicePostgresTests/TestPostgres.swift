import SluiceCore
import SluicePostgres
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The server that the tests run against, and a database of its own for each test.
enum TestPostgres {
    /// The conninfo of a superuser of a private cluster.
    static func conninfo() throws -> String {
        guard let value = unsafe getenv("SLUICE_TEST_POSTGRES") else {
            throw SluiceError(
                .configMissing, "SLUICE_TEST_POSTGRES is not set, so there is no PostgreSQL to test against.", fix: "Run `make test`.")
        }
        return unsafe String(cString: value)
    }

    /// Runs the body with the conninfo of a fresh database, which is dropped afterwards, its slots before it.
    static func withDatabase<R: Sendable>(_ body: (String) async throws -> R) async throws -> R {
        let base = try conninfo()
        let name = "sluice_test_\(UInt64.random(in: .min ... .max))"
        let admin = try await PostgresConnection.connect(base)
        try await admin.execute("CREATE DATABASE \(name) TEMPLATE template0 ENCODING 'UTF8'", within: .seconds(60))
        let outcome: Result<R, any Error>
        do {
            outcome = .success(try await body("\(base) dbname=\(name)"))
        } catch {
            outcome = .failure(error)
        }
        try await drop(name, admin)
        return try outcome.get()
    }

    private static func drop(_ name: String, _ admin: PostgresConnection) async throws {
        try await admin.query(
            """
            SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots
            WHERE database = '\(name)' AND active_pid IS NOT NULL
            """)
        try await admin.query("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = '\(name)'")
        try await admin.execute("DROP DATABASE \(name) WITH (FORCE)", within: .seconds(60))
    }

    static func withConnection<R: Sendable>(_ body: (PostgresConnection) async throws -> R) async throws -> R {
        try await withDatabase { try await body(try await PostgresConnection.connect($0)) }
    }
}

/// The failure that the body ends in; records an issue when it does not fail so.
func postgresFailure(_ body: () async throws -> Void, sourceLocation: SourceLocation = #_sourceLocation) async -> PostgresError? {
    do {
        try await body()
        Issue.record("it did not fail", sourceLocation: sourceLocation)
    } catch let failure as PostgresError {
        return failure
    } catch {
        Issue.record("it failed with \(error)", sourceLocation: sourceLocation)
    }
    return nil
}
