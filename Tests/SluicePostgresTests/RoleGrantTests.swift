import SluiceCore
import SluicePostgres
import Testing

/// The grants of roles. Roles belong to the whole server, so each test makes its own in a transaction that never commits.
@Suite struct `The grants of a role` {
    private static let item = ObjectType(name: "Item", properties: [Property(id: 1, name: "_id", type: .int)])

    private static func with(_ sql: String = "SELECT 1", _ body: (PostgresConnection, String) async throws -> Void) async throws {
        try await TestPostgres.withConnection { connection in
            let role = "sluice_role_\(UInt64.random(in: .min ... .max))"
            try await connection.script("BEGIN; CREATE ROLE \(role) LOGIN; \(sql)")
            try await body(connection, role)
            try await connection.script("ROLLBACK")
            await connection.close()
        }
    }

    private static func needs(_ role: String?, _ tables: [TableMapping] = []) -> DatabaseNeeds {
        DatabaseNeeds(role: role, app: "shop", tables: tables.map { NeededTable($0, [.select], isPublished: true) })
    }

    private static func statement(_ lack: String, _ needs: DatabaseNeeds, _ connection: PostgresConnection) async throws -> String? {
        try await DatabaseGrants.missing(needs, connection).first { $0.lack.contains(lack) }?.statement
    }

    @Test func `to replicate is a membership on a managed service, in which no role has the attribute`() async throws {
        try await Self.with("CREATE ROLE rds_replication") { connection, role in
            let needs = Self.needs(role)
            #expect(try await Self.statement("may not replicate", needs, connection) == "GRANT rds_replication TO \"\(role)\"")
            let absent = Self.needs("no_such_role")
            #expect(
                try await Self.statement("does not exist", absent, connection)
                    == "CREATE ROLE \"no_such_role\" LOGIN IN ROLE rds_replication")
            try await connection.script("GRANT rds_replication TO \(role)")
            #expect(try await Self.statement("may not replicate", needs, connection) == nil)
            try await connection.script("SET LOCAL ROLE \(role)")
            #expect(try await ServerFacts.load(connection, slot: "none").role.mayReplicate)
        }
    }

    @Test func `include BYPASSRLS where the policies of a table apply to it`() async throws {
        let table = #"CREATE TABLE "Item" (_id bigint PRIMARY KEY); ALTER TABLE "Item" ENABLE ROW LEVEL SECURITY"#
        try await Self.with(table) { connection, role in
            let tables = [TableMapping(Self.item)]
            func lack(of role: String?) async throws -> String? {
                try await Self.statement("Row-level security may hide rows of public.Item", Self.needs(role, tables), connection)
            }
            let bypass = "ALTER ROLE \"\(role)\" BYPASSRLS"
            #expect(try await lack(of: role) == bypass)
            #expect(try await lack(of: nil) == nil, "a superuser sees every row")
            #expect(try await lack(of: "no_such_role") != nil)
            try await connection.script("ALTER TABLE \"Item\" OWNER TO \(role)")
            #expect(try await lack(of: role) == nil, "the owner is exempt")
            try await connection.script("ALTER TABLE \"Item\" FORCE ROW LEVEL SECURITY")
            #expect(try await lack(of: role) == bypass)
            try await connection.script(bypass)
            #expect(try await lack(of: role) == nil)
        }
    }

    @Test func `include the schema of a table that is partitioned by time, and each of its partitions`() async throws {
        let table = """
            CREATE SCHEMA shop; CREATE TABLE shop.readings (_id bigint, at timestamptz, PRIMARY KEY (_id, at)) PARTITION BY RANGE (at);
            CREATE TABLE shop.readings_default PARTITION OF shop.readings DEFAULT
            """
        try await Self.with(table) { connection, role in
            let type = ObjectType(
                name: "Reading", kind: .asymmetric,
                properties: [Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "at", type: .timestamp)])
            let mapping = TableMapping(
                type, schema: "shop", table: "readings", partitions: TimePartitions(property: "at", period: .day))
            let needs = DatabaseNeeds(role: role, app: "shop", tables: [NeededTable(mapping, [.insert], isPublished: false)])
            func statements() async throws -> [String] {
                let missing = try await DatabaseGrants.missing(needs, connection).map(\.statement)
                return missing.filter { $0.contains("shop\"") || $0.contains("OWNER") }
            }
            #expect(
                try await statements() == [
                    "GRANT USAGE ON SCHEMA \"shop\" TO \"\(role)\"", "GRANT INSERT ON \"shop\".\"readings\" TO \"\(role)\"",
                    "GRANT CREATE ON SCHEMA \"shop\" TO \"\(role)\"", "ALTER TABLE shop.readings OWNER TO \"\(role)\"",
                    "ALTER TABLE shop.readings_default OWNER TO \"\(role)\"",
                ])
            for statement in try await statements() { try await connection.script(statement) }
            #expect(try await statements() == [])
        }
    }

    @Test func `are listed with the missing tables for a role that may not use a schema`() async throws {
        try await Self.with("CREATE SCHEMA hidden; CREATE TABLE hidden.items (_id bigint PRIMARY KEY)") { connection, role in
            try await connection.script("SET LOCAL ROLE \(role)")
            let tables = ["items", "none"].map { TableMapping(Self.item, schema: "hidden", table: $0) }
            #expect(try await DatabaseGrants.missingTables(Self.needs(nil, tables), connection) == ["hidden.none"])
        }
    }
}
