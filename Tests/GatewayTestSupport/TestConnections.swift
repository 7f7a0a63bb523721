import SluicePostgres
import Synchronization

/// Connections of tests to the databases of `GatewayDatabase`. A test that looks at its database again and again logs in once.
enum TestConnections {
    /// The idle connections by the string of their database. A database that is missing here has none that are kept.
    private static let idle = Mutex<[String: [PostgresConnection]]>([:])

    /// Runs a body with a connection that nobody else uses, in the state of a new one.
    static func with<R: Sendable>(_ conninfo: String, _ body: (PostgresConnection) async throws -> R) async throws -> R {
        let connection = try await take(conninfo)
        do {
            let result = try await body(connection)
            await give(connection, back: conninfo)
            return result
        } catch {
            await connection.close()
            throw error
        }
    }

    private static func take(_ conninfo: String) async throws -> PostgresConnection {
        while let connection = idle.withLock({ $0[conninfo]?.popLast() }) {
            // A test may have ended all connections of its database.
            if (try? await connection.script("SELECT")) != nil { return connection }
            await connection.close()
        }
        return try await PostgresConnection.connect(conninfo)
    }

    private static func give(_ connection: PostgresConnection, back conninfo: String) async {
        let isKept = idle.withLock { $0[conninfo] != nil }
        let tidying = "ROLLBACK; SELECT pg_advisory_unlock_all(); UNLISTEN *; RESET ALL; DISCARD TEMP"
        guard isKept, (try? await connection.script(tidying)) != nil else { return await connection.close() }
        let isTaken = idle.withLock { idle in
            guard idle[conninfo] != nil else { return false }
            idle[conninfo]?.append(connection)
            return true
        }
        if !isTaken { await connection.close() }
    }

    /// Keeps the connections to a database while a body runs.
    static func keep<R>(_ conninfo: String, _ body: () async throws -> R) async throws -> R {
        idle.withLock { $0[conninfo] = [] }
        let outcome: Result<R, any Error>
        do { outcome = .success(try await body()) } catch { outcome = .failure(error) }
        let connections = idle.withLock { $0.removeValue(forKey: conninfo) } ?? []
        for connection in connections { await connection.close() }
        return try outcome.get()
    }
}
