import SluiceCore
import SluicePostgres
import TestSupport
import Testing

/// Texts that quoting by characters gets wrong, among random ones.
enum HostileText {
    private static let pieces: [String] = [
        "\"", "'", "\\", "\"\u{301}", "'\u{301}", "\\\u{308}", "\"\u{200D}", "'\u{FE0F}", "\r\n", "\n", "\t", ";", "--", "/*", "*/", "$1",
        "$$",
        "?", "%", "{", "}", ",", " ", "a", "B", "é", "e\u{301}", "\u{212A}", "\u{FFFF}", "\u{10FFFD}", "👩‍👩‍👧", "\u{E0001}",
        "); DROP TABLE t; --",
    ]

    /// - Parameter most: bytes at most.
    static func random(_ random: inout SplitMix64, most: Int = 63) -> String {
        var text = ""
        for _ in 0..<(1 + random.below(8)) {
            var piece = random.pick(pieces)
            if random.chance(20) { piece = String(Unicode.Scalar(UInt32(random.below(0xD7FF) + 1)).map(Character.init) ?? "x") }
            // By scalar, so that marks come to stand behind quotes.
            if text.utf8.count + piece.utf8.count <= most { text.unicodeScalars.append(contentsOf: piece.unicodeScalars) }
        }
        return text.isEmpty ? "x" : text
    }
}

@Suite struct `Quoting in PostgreSQL` {
    @Test(arguments: seeds(3)) func `keeps each name and each text as it is`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        var names: [(table: String, column: String)] = [("a\"\u{301}; DROP TABLE witness; --", "b\"\u{308}")]
        for _ in 0..<60 { names.append((HostileText.random(&random), HostileText.random(&random))) }
        let texts = (0..<200).map { _ in HostileText.random(&random, most: 200) }
        try await TestPostgres.withConnection { [names] connection in
            try await connection.script("CREATE TABLE witness (a int)")
            for (number, name) in names.enumerated() {
                let schema = "s\(number)"
                let place = "\(schema).\(SQLQuote.identifier(name.table))"
                try await connection.script("CREATE SCHEMA \(schema); CREATE TABLE \(place) (\(SQLQuote.identifier(name.column)) int)")
                let found = try await connection.query(
                    """
                    SELECT relname, attname FROM pg_class c JOIN pg_attribute a ON attrelid = c.oid AND attnum > 0
                    WHERE relnamespace = $1::regnamespace
                    """, [.text(schema)])
                #expect(found.count == 1, "seed \(seed)")
                #expect(Array((found[0, 0] ?? "").utf8) == Array(name.table.utf8), "seed \(seed)")
                #expect(Array((found[0, 1] ?? "").utf8) == Array(name.column.utf8), "seed \(seed)")
            }
            for conforming in ["on", "off"] {
                try await connection.script("SET standard_conforming_strings = \(conforming); SET escape_string_warning = off")
                for text in texts {
                    let read = try await connection.query("SELECT \(SQLQuote.postgresLiteral(text))")[0, 0] ?? ""
                    #expect(Array(read.utf8) == Array(text.utf8), "seed \(seed)")
                }
            }
            #expect(try await connection.query("SELECT to_regclass('public.witness') IS NOT NULL").bool(0, 0) == true)
        }
    }

    @Test func `refuses a statement with a NUL instead of running its beginning`() async throws {
        try await TestPostgres.withConnection { connection in
            try await connection.script("CREATE TABLE witness (a int)")
            let name = SQLQuote.identifier("a\0\u{301}")
            for statement in ["DROP TABLE witness\0 CASCADE", "CREATE TABLE \(name) (a int)"] {
                let script = await postgresFailure { try await connection.script(statement) }
                #expect(script?.sqlState == "22021")
                let query = await postgresFailure { try await connection.query(statement) }
                #expect(query?.sqlState == "22021")
            }
            #expect(try await connection.query("SELECT count(*) FROM witness").int(0, 0) == 0)
        }
    }

    @Test(arguments: seeds(2)) func `keeps the values of connection strings`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let base = try TestPostgres.conninfo()
        for _ in 0..<5 {
            // Other than names, settings of a connection are cut at what is no printable ASCII.
            let name =
                HostileText.random(&random, most: 50).unicodeScalars.filter { (32..<127).contains($0.value) }.map(String.init).joined()
                + "'\\"
            let connection = try await PostgresConnection.connect("\(base) application_name=\(SQLQuote.connectionValue(name))")
            let found = try await connection.query("SELECT current_setting('application_name')")[0, 0]
            #expect(found == name, "seed \(seed)")
            await connection.close()
        }
    }
}
