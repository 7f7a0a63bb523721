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

    /// Creates the role and the database if they are missing. The role receives the objects that an earlier release's superuser
    /// owns.
    func prepare(_ deadline: ContinuousClock.Instant) async throws {
        let found = try await connected("dbname=postgres", deadline) { try await makeRole($0) }
        if found { try await connected(place, deadline) { _ = try await $0.script(Self.handOver, within: .seconds(60)) } }
    }

    private func connected<R>(
        _ place: String, _ deadline: ContinuousClock.Instant, _ body: (PostgresConnection) async throws -> R
    ) async throws -> R {
        let connection = try await PostgresConnection.connect("\(server) \(place)", within: max(deadline - .now, .seconds(10)))
        let outcome: Result<R, any Error>
        do { outcome = .success(try await body(connection)) } catch { outcome = .failure(error) }
        await connection.close()
        return try outcome.get()
    }

    /// Creates or alters the role and the database.
    ///
    /// - Returns: `true` if the database existed.
    private func makeRole(_ connection: PostgresConnection) async throws -> Bool {
        let role = SQLQuote.identifier(Self.name)
        let known = try await connection.query("SELECT 1 FROM pg_roles WHERE rolname = $1", [.text(Self.name)])
        let attributes = "LOGIN REPLICATION NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS"
        // The password is set at every start, so that it matches the file.
        try await connection.execute(
            "\(known.isEmpty ? "CREATE" : "ALTER") ROLE \(role) \(attributes) PASSWORD \(SQLQuote.postgresLiteral(password))")
        let name = SQLQuote.identifier(database)
        let found = try await connection.query("SELECT 1 FROM pg_database WHERE datname = $1", [.text(database)])
        let statement =
            found.isEmpty
            ? "CREATE DATABASE \(name) OWNER \(role) TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'"
            : "ALTER DATABASE \(name) OWNER TO \(role)"
        try await connection.execute(statement, within: .seconds(60))
        return !found.isEmpty
    }

    /// SQL that gives the superuser's objects to the role. REASSIGN OWNED rejects the role that initdb has created.
    ///
    /// Sequences of columns and types of tables follow their tables. Objects of an extension stay.
    private static let handOver = """
        DO $hand_over$ DECLARE statement text; BEGIN
            FOR statement IN
                WITH own AS (SELECT oid FROM pg_roles WHERE rolname = current_user),
                    part AS (SELECT classid, objid FROM pg_depend WHERE deptype IN ('e', 'a', 'i'))
                SELECT format('ALTER SCHEMA %I OWNER TO \(name)', nspname) FROM pg_namespace, own
                WHERE nspowner = own.oid AND nspname !~ '^pg_' AND nspname <> 'information_schema'
                UNION ALL
                SELECT format('ALTER %s %I.%I OWNER TO \(name)', CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, nspname, relname)
                FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace, own
                WHERE relowner = own.oid AND c.oid >= 16384 AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND nspname !~ '^pg_'
                    AND (relkind <> 'S' OR ('pg_class'::regclass, c.oid) NOT IN (SELECT classid, objid FROM part))
                UNION ALL
                SELECT format('ALTER ROUTINE %s OWNER TO \(name)', p.oid::regprocedure) FROM pg_proc p, own
                WHERE proowner = own.oid AND p.oid >= 16384 AND ('pg_proc'::regclass, p.oid) NOT IN (SELECT classid, objid FROM part)
                UNION ALL
                SELECT format('ALTER TYPE %I.%I OWNER TO \(name)', nspname, typname)
                FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace, own
                WHERE typowner = own.oid AND t.oid >= 16384 AND typtype IN ('d', 'e', 'r')
                    AND ('pg_type'::regclass, t.oid) NOT IN (SELECT classid, objid FROM part)
                UNION ALL
                SELECT format('ALTER PUBLICATION %I OWNER TO \(name)', pubname) FROM pg_publication, own WHERE pubowner = own.oid
            LOOP EXECUTE statement; END LOOP;
        END $hand_over$
        """
}
