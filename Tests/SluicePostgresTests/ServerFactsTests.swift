import SluiceCore
import SluicePostgres
import Testing

private let item = ObjectType(name: "Item", properties: [Property(id: 1, name: "_id", type: .int)])
private let reading = ObjectType(name: "Reading", kind: .asymmetric, properties: [Property(id: 1, name: "_id", type: .int)])
private let absent = ObjectType(name: "Absent", properties: [Property(id: 1, name: "_id", type: .int)])

/// What `sluice check` reads from a server.
@Suite struct `The facts of a server` {
    @Test func `are those of the session's role, database and server`() async throws {
        try await TestPostgres.withConnection { (connection) async throws in
            let facts = try await ServerFacts.load(connection, slot: "no_such_slot")
            #expect(facts.version >= ServerSettings.oldestVersion && facts.encoding == "UTF8")
            #expect(facts.database.hasPrefix("sluice_test_") && facts.role.isSuperuser && facts.role.mayReplicate)
            #expect(facts["wal_level"] == "logical" && facts["track_commit_timestamp"] == "on")
            #expect(facts.number("max_replication_slots") ?? 0 > 0 && facts.freeConnections > 0)
            #expect(facts.slot == nil && !facts.isStandby && !facts.isEncrypted)
            #expect(ServerSettings.unmet(facts) == [])
        }
    }

    /// The connection's own settings must not hide those of the server: every session of ours sets `synchronous_commit`.
    @Test func `are the settings of new sessions, not those of this one`() async throws {
        try await TestPostgres.withDatabase { conninfo in
            let first = try await PostgresConnection.connect(conninfo)
            let name = try await first.query("SELECT current_database()")[0, 0] ?? ""
            try await first.script("ALTER DATABASE \(SQLQuote.identifier(name)) SET synchronous_commit = 'off'")
            await first.close()
            let second = try await PostgresConnection.connect(conninfo)
            #expect(try await second.query("SHOW synchronous_commit")[0, 0] == "on")
            #expect(try await ServerFacts.load(second, slot: "none")["synchronous_commit"] == "off")
            await second.close()
        }
    }

    @Test func `have the state of the slot`() async throws {
        try await TestPostgres.withConnection { (connection) async throws in
            let name = "facts_\(UInt32.random(in: .min ... .max))"
            _ = try await ReplicationSlot.ensure(connection, name: name)
            let slot = try await ServerFacts.load(connection, slot: name).slot
            #expect(slot?.isActive == false && slot?.isLost == false && slot?.status == "reserved")
            try await ReplicationSlot.drop(connection, name: name)
        }
    }
}

@Suite struct `The state of a publication` {
    @Test func `is read without the schema sluice, and says what is missing`() async throws {
        try await TestPostgres.withConnection { (connection) async throws in
            let catalog = TableCatalog(schema: Schema([item, absent]))
            _ = try await TableCatalog(schema: Schema([item])).create(connection)
            let none = try await Publication.state(connection, name: "p", tables: catalog.tables)
            #expect(!none.exists && none.tables.map(\.exists) == [true, false] && none.tables.map(\.isFull) == [false, false])
            try await connection.script("CREATE PUBLICATION p FOR TABLE \"Item\"")
            let bare = try await Publication.state(connection, name: "p", tables: catalog.tables)
            #expect(bare.exists && !bare.hasOptions && bare.tables.map(\.isPublished) == [true, false])
            #expect(bare.tables.map(\.wasReplaced) == [false, false])
            try await CompanionSchema.create(connection)
            let table = [catalog.tables[0]]
            _ = try await Publication.ensure(connection, name: "p", tables: table)
            let whole = try await Publication.state(connection, name: "p", tables: table)
            #expect(whole.hasOptions && whole.tables.map { $0.isFull && $0.isPublished && !$0.wasReplaced } == [true])
            try await connection.script(#"DROP TABLE "Item"; CREATE TABLE "Item" (_id bigint PRIMARY KEY)"#)
            let replaced = try await Publication.state(connection, name: "p", tables: table)
            #expect(replaced.tables.map { $0.wasReplaced && !$0.isPublished } == [true])
            try await Publication.drop(connection, name: "p")
        }
    }
}

@Suite struct `The privileges of a role` {
    /// Runs the body with a connection of a new role, and one of a superuser.
    private static func withRole(_ body: (PostgresConnection, PostgresConnection, String) async throws -> Void) async throws {
        try await TestPostgres.withDatabase { conninfo in
            let admin = try await PostgresConnection.connect(conninfo)
            let name = "sluice_role_\(UInt32.random(in: .min ... .max))"
            try await admin.script(
                "CREATE ROLE \(name) LOGIN PASSWORD 'p'; GRANT CONNECT ON DATABASE \(try await database(admin)) TO \(name)")
            // A later value of a connection string counts.
            let session = try await PostgresConnection.connect("\(conninfo) user=\(name) password=p")
            let outcome: Result<Void, any Error>
            do { outcome = .success(try await body(session, admin, name)) } catch { outcome = .failure(error) }
            await session.close()
            try await admin.script("DROP OWNED BY \(name); DROP ROLE \(name)")
            await admin.close()
            try outcome.get()
        }
    }

    private static func database(_ connection: PostgresConnection) async throws -> String {
        SQLQuote.identifier(try await connection.query("SELECT current_database()")[0, 0] ?? "")
    }

    private static func missing(_ session: PostgresConnection, unready: Set<String> = []) async throws -> [RolePrivileges.Missing] {
        let facts = try await ServerFacts.load(session, slot: "none")
        let catalog = TableCatalog(schema: Schema([item, reading, absent]), in: "shop")
        return try await RolePrivileges.missing(session, facts, catalog: catalog, unready: unready)
    }

    @Test func `that are missing come with the statement for each, and none is left once all have run`() async throws {
        try await Self.withRole { session, admin, name in
            try await admin.script(
                #"CREATE SCHEMA shop; CREATE TABLE shop."Item" (_id bigint PRIMARY KEY); CREATE TABLE shop."Reading" (_id bigint PRIMARY KEY)"#
            )
            let missing = try await Self.missing(session, unready: [#""shop"."Item""#])
            let database = try await Self.database(admin)
            #expect(
                missing.map(\.statement) == [
                    "ALTER ROLE \"\(name)\" REPLICATION", "GRANT CREATE ON DATABASE \(database) TO \"\(name)\"",
                    "GRANT USAGE ON SCHEMA \"shop\" TO \"\(name)\"",
                    "GRANT SELECT, INSERT, UPDATE, DELETE ON \"shop\".\"Item\" TO \"\(name)\"",
                    "ALTER TABLE \"shop\".\"Item\" OWNER TO \"\(name)\"", "GRANT USAGE ON SCHEMA \"shop\" TO \"\(name)\"",
                    "GRANT SELECT, INSERT ON \"shop\".\"Reading\" TO \"\(name)\"",
                ])
            for privilege in missing { try await admin.script(privilege.statement) }
            #expect(try await Self.missing(session, unready: [#""shop"."Item""#]) == [])
            // The last one is of use: the role can publish the table now.
            try await CompanionSchema.create(session)
            let catalog = TableCatalog(schema: Schema([item]), in: "shop")
            #expect(try await Publication.ensure(session, name: "p", tables: catalog.tables).map(\.isGap) == [false])
            try await Publication.drop(session, name: "p")
        }
    }

    @Test func `include the schema sluice, whoever made it`() async throws {
        try await Self.withRole { session, admin, name in
            try await admin.script("ALTER ROLE \(name) REPLICATION")
            try await CompanionSchema.create(admin)
            #expect(try await Self.missing(session).map(\.statement) == ["ALTER SCHEMA sluice OWNER TO \"\(name)\""])
        }
    }
}
