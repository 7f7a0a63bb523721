import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceTools
import SluiceValues
import TestSupport
import Testing

/// Documents that are imported beside a gateway.
@Suite(.timeLimit(.minutes(3))) struct `An import beside a gateway` {
    @Test func `reaches the devices that subscribe to its rows, and leaves their own rows alone`() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("import-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        try FileManager.default.createDirectory(at: folder.appendingPathComponent("public"), withIntermediateDirectories: true)
        let documents = (0..<500).map { index in
            BSONWriter.document([
                "_id": .string("o\(index)"), "store": .string(index % 2 == 0 ? "north" : "south"), "size": .int(Int64(index)),
            ])
        }
        try Data(documents.joined()).write(to: folder.appendingPathComponent("public/orders.bson"))
        try await RunningGateway.with { gateway in
            let session = try await gateway.session(token: try await gateway.account().token)
            try await session.hello()
            try await session.subscribe(1, [("Order", "store == 'north'")])
            // A device wrote one of the keys before: its row stays, and the document is in quarantine.
            try await session.upload(1, [TestSession.order("o10", ["store": .string("north"), "size": .int(-1)])])
            try await session.receive { $0.keys("Order") == ["o10"] }
            let migration = try DataMigration(
                app: try ShopApp.configuration(), postgres: gateway.conninfo,
                options: .init(sources: [folder.path], quarantine: folder.appendingPathComponent("bad").path, isSilent: true))
            let outcomes = try await migration.run()
            #expect(outcomes.map(\.isWhole) == [false])
            #expect(outcomes[0].json["rows"] == 499 && outcomes[0].json["quarantined"] == 1)
            try await session.receive { $0.keys("Order").count == 250 }
            let rows = try #require(session.rows["Order"])
            #expect(rows[.string("o10")]?["size"] == .int(-1) && rows[.string("o498")]?["size"] == .int(498))
            session.close()
        }
    }
}
