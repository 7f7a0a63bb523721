import ReplicaTestSupport
import SluiceCore
import SluiceReplica
import TestSupport
import Testing

@Suite struct `Quoting in SQLite` {
    private static let pieces = [
        "\"", "'", "\\", "\"\u{301}", "'\u{301}", "\"\u{200D}", ";", "--", "`", "]", " ", "a", "e\u{301}", "é", "\u{212A}", "\r\n", "👩‍👩‍👧",
    ]

    private static func text(_ random: inout SplitMix64) -> String {
        var text = ""
        for _ in 0..<(1 + random.below(7)) { text.unicodeScalars.append(contentsOf: random.pick(pieces).unicodeScalars) }
        return text
    }

    @Test(arguments: seeds(3)) func `keeps each name and each text as it is`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        for _ in 0..<60 {
            let library = try SQLiteLibrary()
            let (table, column, value) = (Self.text(&random), Self.text(&random), Self.text(&random))
            try library.run("CREATE TABLE \(SQLQuote.identifier(table)) (\(SQLQuote.identifier(column)) TEXT)")
            #expect(try library.rows("SELECT name FROM sqlite_master WHERE type = 'table'") == [[.string(table)]], "seed \(seed)")
            #expect(
                try library.rows("SELECT name FROM pragma_table_info(?)", [.string(table)]) == [[.string(column)]], "seed \(seed)")
            #expect(try library.rows("SELECT \(SQLQuote.sqliteLiteral(value))") == [[.string(value)]], "seed \(seed)")
        }
    }

    private static func schema(_ name: String, _ property: String) -> Schema {
        Schema([
            ObjectType(
                name: name,
                properties: [
                    Property(id: 1, name: "_id", type: .int), Property(id: 2, name: property, type: .string),
                    Property(id: 3, name: "links\"\u{301}'", type: .link(to: name), collection: .list),
                ])
        ])
    }

    @Test(arguments: ["a\"\u{301}(x); DROP TABLE _sluice_link; --", "b'\u{308}\\", "c\"'\u{200D}"])
    func `keeps a replica whole whose classes have such names`(name: String) async throws {
        let folder = try TemporaryFolder()
        let property = "\(name)\"\u{302}"
        let replica = try Replica(path: folder.file, schema: Self.schema(name, property), environment: TestEnvironment())
        var buffer = ReplicaBatch()
        let row = Row([.int(1), .string("one"), .list([.int(1)])])
        buffer.changes = [ReplicaRowChange(type: 0, event: .updated, row: buffer.rows.append(row))]
        buffer.commits = [ReplicaCommit(lsn: LSN(rawValue: 10), changes: buffer.changes.indices)]
        buffer.lsn = LSN(rawValue: 10)
        try await replica.apply(buffer)
        let store = try replica.makeReader().store
        #expect(try store.origins(of: .int(1), type: 0, property: 2) == [.int(1)])
        var values: [Value?] = []
        try store.scan(type: 0) { values.append($0.value(1)) }
        #expect(values == [.string("one")])
    }

    @Test func `refuses a name with a NUL`() throws {
        let folder = try TemporaryFolder()
        let error = #expect(throws: SluiceError.self) {
            _ = try Replica(path: folder.file, schema: Self.schema("a\0b", "c"), environment: TestEnvironment())
        }
        #expect(error?.code == .invalidName)
    }
}
