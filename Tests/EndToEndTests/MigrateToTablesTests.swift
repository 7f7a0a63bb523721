import Foundation
import SluicePostgres
import SluiceValues
import TestSupport
import Testing

/// Documents of Atlas for a table that other programs made.
@Suite(.timeLimit(.minutes(10))) struct `sluice migrate data into a table that exists` {
    private static let schema = """
        {
            "title": "Order", "bsonType": "object", "required": ["_id", "state", "total"],
            "properties": {
                "_id": { "bsonType": "long" }, "ownerId": { "bsonType": "string" }, "state": { "bsonType": "string" },
                "total": { "bsonType": "decimal" }, "day": { "bsonType": "date" }
            },
            "mapping": { "_id": "Order No", "ownerId": "owner_id" }
        }
        """

    private static let table = """
        CREATE SCHEMA shop;
        CREATE TYPE shop.state AS ENUM ('open', 'paid');
        CREATE TABLE shop."Orders" (
            "Order No" bigint PRIMARY KEY, owner_id text, state shop.state NOT NULL, total numeric(10, 2) NOT NULL, day date,
            doubled numeric GENERATED ALWAYS AS (total * 2) STORED, noted timestamptz NOT NULL DEFAULT now()
        )
        """

    private static let documents = [
        #"{"_id": {"$numberLong": "1"}, "ownerId": "ann", "state": "open", "total": {"$numberDecimal": "1.50"}, "#
            + #""day": {"$date": "2026-01-02T00:00:00Z"}}"#,
        #"{"_id": {"$numberLong": "2"}, "state": "paid", "total": {"$numberDecimal": "20.00"}}"#,
        #"{"_id": {"$numberLong": "3"}, "ownerId": "bob", "state": "lost", "total": {"$numberDecimal": "3.00"}}"#,
    ]

    @Test func `fills the mapped columns, leaves the others to PostgreSQL, and keeps what does not fit`() async throws {
        let base = try #require(ProcessInfo.processInfo.environment["SLUICE_TEST_POSTGRES"], "Run `make test`, which starts PostgreSQL.")
        let name = "sluice_migrate_\(UInt64.random(in: .min ... .max))"
        let admin = try await PostgresConnection.connect(base)
        try await admin.execute("CREATE DATABASE \(name) TEMPLATE template0 ENCODING 'UTF8'", within: .seconds(60))
        let folder = try DataFolder()
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await Self.fill("\(base) dbname=\(name)", folder.path)) } catch { outcome = .failure(error) }
        try await admin.execute("DROP DATABASE \(name) WITH (FORCE)", within: .seconds(60))
        await admin.close()
        try outcome.get()
    }

    private static func fill(_ conninfo: String, _ folder: String) async throws {
        let (app, file) = ("\(folder)/app", "\(folder)/orders.json")
        try MigratedApp.put(Array(#"{"app_id": "mapped", "name": "mapped"}"#.utf8), "\(app)/realm_config.json")
        try MigratedApp.put(Array(#"{"type": "flexible", "queryable_fields_names": ["ownerId"]}"#.utf8), "\(app)/sync/config.json")
        try MigratedApp.put(Array(schema.utf8), "\(app)/data_sources/mongodb-atlas/shop/Orders/schema.json")
        try MigratedApp.put(Array(documents.joined(separator: "\n").utf8), file)
        let connection = try await PostgresConnection.connect(conninfo)
        try await connection.script(table)
        let prepared = try Program("sluice", ["migrate", "schema", app, "--postgres", conninfo, "--yes"])
        #expect(await prepared.end() == .exit(0), "\(prepared.said)")
        let words = ["--collection", "shop.Orders=\(file)", "--app", app, "--postgres", conninfo, "--quarantine", "\(folder)/quarantine"]
        let filled = try Program("sluice", ["migrate", "data"] + words)
        let out = try #require(await filled.remainingLines(within: 180)).joined(separator: "\n")
        #expect(await filled.end() == .exit(65), "\(out) \(filled.said)")
        #expect(out.contains("3 documents, 2 rows, 1 in quarantine; read back and equal"), "\(out) \(filled.said)")
        let rows = try await connection.query(
            #"SELECT concat_ws(' ', "Order No", owner_id, state, total, day, doubled, noted IS NOT NULL) FROM shop."Orders" ORDER BY 1"#)
        #expect(rows.column(0) == ["1 ann open 1.50 2026-01-02 3.00 t", "2 paid 20.00 40.00 t"])
        let kept = try FileManager.default.contentsOfDirectory(atPath: "\(folder)/quarantine")
        let line = try String(contentsOfFile: "\(folder)/quarantine/\(try #require(kept.first))", encoding: .utf8)
        #expect(kept.count == 1 && line.contains(#""_id":{"$numberLong":"3"}"#) && line.contains("lost"), "\(line)")
        await connection.close()
    }
}
