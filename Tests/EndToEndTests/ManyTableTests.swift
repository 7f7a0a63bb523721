import SluiceCore
import SluicePostgres
import TestSupport
import Testing

/// The reading of tables by a gateway, at its start and every five seconds.
@Suite(.timeLimit(.minutes(5))) struct `Many tables` {
    private static func type(_ number: Int) -> ObjectType {
        ObjectType(
            name: "T\(number)",
            properties: [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "a", type: .string, isOptional: true),
                Property(id: 3, name: "b", type: .decimal, isOptional: true),
            ])
    }

    /// Makes so many tables, and returns the number of pieces of bytes that their reading sends. One question to the server is one piece,
    /// or a few if it is long.
    private static func pieces(_ count: Int, _ connection: PostgresConnection, _ conninfo: String) async throws -> Int {
        for start in stride(from: 0, to: count, by: 500) {
            // Each block holds a lock for every table that it makes.
            let last = min(start + 500, count) - 1
            try await connection.script(
                """
                DO $$ BEGIN FOR i IN \(start)..\(last) LOOP
                    EXECUTE format('CREATE TABLE IF NOT EXISTS %I (_id bigint PRIMARY KEY, a text, b numeric, c int NOT NULL)', 'T' || i);
                END LOOP; END $$
                """, within: .seconds(60))
        }
        let port = try #require(conninfo.split(separator: " ").last { $0.hasPrefix("port=") }.flatMap { Int($0.dropFirst(5)) })
        let link = try FaultyLink { [port] }
        defer { link.end() }
        let reader = try await PostgresConnection.connect("\(conninfo) host=127.0.0.1 port=\(link.port)")
        let catalog = TableCatalog(schema: Schema((0..<count).map(type)))
        try await catalog.requireFit(reader)
        try await catalog.notePartitions(reader)
        let found = try await catalog.found(reader).tables
        #expect(found.count == count && found.allSatisfy { $0.isWritable && !$0.hasKeyPerPartition })
        // Each table has one column that refuses inserts.
        #expect(try await catalog.findings(reader).map(\.subject) == Array(repeating: "c", count: count))
        #expect(try await Publication.missing(reader, name: "many", tables: found).count == count)
        let pieces = link.piecesToServer
        await reader.close()
        return pieces
    }

    @Test func `are read without a question for each table`() async throws {
        try await `sluice init`.with("SELECT") { conninfo, _ in
            let connection = try await PostgresConnection.connect(conninfo)
            try await CompanionSchema.create(connection)
            let few = try await Self.pieces(10, connection, conninfo)
            let many = try await Self.pieces(5_000, connection, conninfo)
            await connection.close()
            #expect((5..<100).contains(few) && many < 1_000, "\(few) pieces for 10 tables, \(many) for 5,000")
        }
    }
}
