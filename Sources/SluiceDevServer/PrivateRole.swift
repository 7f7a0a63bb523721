import SluiceCore
import SluicePostgres

/// The role and the database of a gateway in a private server.
///
/// The role owns its database and may replicate, which is all that capture and development need. It is no superuser, so that no
/// statement of its sessions reaches files or programs of the machine.
struct PrivateRole: Sendable {
    static let name = "sluice_gateway"

    /// The superuser's connection string, without a database.
    let server: String
    let database: String
    let password: String

    /// The database's part of a connection string.
    var place: String { "dbname=\(SQLQuote.connectionValue(database))" }

    /// The role and the database, for a connection string.
    var credentials: String { "user=\(Self.name) password=\(password) \(place)" }

    /// Creates the role and the database if they are missing.
    func prepare(_ deadline: ContinuousClock.Instant) async throws {
        let connection = try await PostgresConnection.connect("\(server) dbname=postgres", within: max(deadline - .now, .seconds(10)))
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await makeRole(connection)) } catch { outcome = .failure(error) }
        await connection.close()
        return try outcome.get()
    }

    private func makeRole(_ connection: PostgresConnection) async throws {
        let role = SQLQuote.identifier(Self.name)
        let known = try await connection.query("SELECT 1 FROM pg_roles WHERE rolname = $1", [.text(Self.name)])
        let attributes = "LOGIN REPLICATION NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS"
        // The password is set at every start, so that it matches the file.
        try await connection.execute(
            "\(known.isEmpty ? "CREATE" : "ALTER") ROLE \(role) \(attributes) PASSWORD \(SQLQuote.postgresLiteral(password))")
        let name = SQLQuote.identifier(database)
        let found = try await connection.query("SELECT 1 FROM pg_database WHERE datname = $1", [.text(database)])
        guard found.isEmpty else { return }
        try await connection.execute(
            "CREATE DATABASE \(name) OWNER \(role) TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'", within: .seconds(60))
    }
}
