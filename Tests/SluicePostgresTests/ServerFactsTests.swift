import SluiceCore
import SluicePostgres
import Testing

private let item = ObjectType(name: "Item", properties: [Property(id: 1, name: "_id", type: .int)])
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

    /// PostgreSQL hides the kind of other roles' backends from a role without `pg_read_all_stats`.
    @Test func `count the connections of other roles, also for a role that may not see what they do`() async throws {
        try await TestPostgres.withDatabase { conninfo in
            let role = "facts_\(UInt64.random(in: .min ... .max))"
            let admin = try await PostgresConnection.connect(conninfo)
            try await admin.script("CREATE ROLE \(role) LOGIN PASSWORD 'p'")
            var others: [PostgresConnection] = []
            for _ in 0..<5 { others.append(try await PostgresConnection.connect(conninfo)) }
            let plain = try await PostgresConnection.connect("\(conninfo) user=\(role) password=p")
            let facts = try await ServerFacts.load(plain, slot: "none")
            let bound = (facts.number("max_connections") ?? 0) - (facts.number("superuser_reserved_connections") ?? 0)
            // Other tests have connections, too.
            #expect(facts.freeConnections <= bound - 7, "\(facts.freeConnections) of \(bound)")
            for connection in others + [plain] { await connection.close() }
            try await admin.script("DROP ROLE \(role)")
            await admin.close()
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

    @Test func `tells row filters and column lists`() async throws {
        try await TestPostgres.withConnection { (connection) async throws in
            // PostgreSQL 15 brought both.
            guard try await connection.query("SELECT current_setting('server_version_num')::int >= 150000").bool(0, 0) == true else {
                return
            }
            let tables = TableCatalog(schema: Schema([item, absent])).tables
            _ = try await TableCatalog(schema: Schema([item, absent])).create(connection)
            func narrowed() async throws -> [Bool] {
                try await Publication.state(connection, name: "p", tables: tables).tables.map(\.isNarrowed)
            }
            try await connection.script(#"CREATE PUBLICATION p FOR TABLE "Item" WHERE (_id > 7), "Absent""#)
            #expect(try await narrowed() == [true, false])
            try await connection.script(#"ALTER PUBLICATION p SET TABLE "Item", "Absent" (_id)"#)
            #expect(try await narrowed() == [false, true])
            try await connection.script(#"ALTER PUBLICATION p SET TABLE "Item", "Absent""#)
            #expect(try await narrowed() == [false, false])
        }
    }
}
