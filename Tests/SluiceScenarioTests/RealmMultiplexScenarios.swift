import GatewayTestSupport
import RealmTestClient
import RealmTestSupport
import SluiceCore
import SluiceGateway
import SluiceRealm
import SluiceValues
import Testing

/// Sessions of several files on one connection.
@Suite(.timeLimit(.minutes(5))) struct `Sessions of one connection of Realm's protocol` {
    private static let orders = ["Order": "store IN {'north', 'south'}"]
    private static let tags = ["Tag": "TRUEPREDICATE"]
    private static let tag = ObjectKey(type: "Tag", key: .string("t1"))
    private static let order = ObjectKey(type: "Order", key: .string("n1"))

    /// Runs a connection with the sessions 1 and 2, whose files have orders and tags.
    private static func with(
        _ body: @escaping @Sendable (RunningGateway, RealmTestMultiplexer) async throws -> Void
    ) async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql(
                "INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1); INSERT INTO tags (_id, title) VALUES ('t1', 'a')")
            let schema = try ShopApp.configuration().schema
            let client = RealmTestMultiplexer()
            try await client.connect(gateway.url, app: gateway.app, token: try await gateway.anonymousToken())
            for session in [1, 2] as [UInt64] { try await client.bind(RealmTestFile(schema, session: session)) }
            try await client.subscribe(1, orders)
            try await client.subscribe(2, tags)
            #expect(client.files[1]?.objects.keys.map { $0 } == [order] && client.files[2]?.objects.keys.map { $0 } == [tag])
            try await body(gateway, client)
            client.disconnect()
        }
    }

    /// Checks that the second session gets what others write, and that its own writes take effect.
    private static func goesOn(_ gateway: RunningGateway, _ client: RealmTestMultiplexer, title: String) async throws {
        try await gateway.sql("UPDATE tags SET title = '\(title)'; UPDATE orders SET size = size + 1")
        try await client.receive(2) { $0.objects[tag]?["title"] == .string(title) }
        guard case .list(let list)? = client.files[2]?.objects[tag]?["labels"] else { throw RealmTestFile.Fault("there are no labels") }
        let labels = RealmPath(tag, "labels")
        try await client.write(2, [.arrayInsert(labels, at: list.count, .value(.string(title)), priorSize: list.count)])
        try await client.receive(2) { $0.isUploaded }
        #expect(try await gateway.texts("SELECT title FROM tags WHERE '\(title)' = ANY(labels)") == [title])
        #expect(client.files[2]?.error == nil)
    }

    @Test func `go on when another one is unbound, whose number can be bound again`() async throws {
        try await Self.with { gateway, client in
            try await client.change(1) { [$0.unbind()] }
            try await client.receive(1) { $0.isUnbound }
            try await Self.goesOn(gateway, client, title: "b")
            #expect(client.files[1]?.objects[Self.order]?["size"] == .int(1), "nothing comes after the UNBOUND")
            let file = try #require(client.files[1])
            try await client.bind(file)
            try await client.receive(1) { $0.objects[Self.order]?["size"] == .int(2) }
            try await Self.goesOn(gateway, client, title: "c")
            try await client.receive(1) { $0.objects[Self.order]?["size"] == .int(3) }
        }
    }

    @Test func `go on when another one is refused`() async throws {
        try await Self.with { gateway, client in
            // A second session of a file that is open already.
            var twin = try #require(client.files[1])
            twin.session = 3
            try await client.bind(twin)
            try await client.receive(3) { $0.error != nil }
            let error = try #require(client.files[3]?.error)
            #expect(error.code == .otherSessionError && error.action == .transient && error.tryAgain, "\(error)")
            try await Self.goesOn(gateway, client, title: "b")
            try await client.receive(1) { $0.objects[Self.order]?["size"] == .int(2) }
            // The UNBIND of the refused session has no answer, and its number is free.
            try await client.change(3) { [$0.unbind()] }
            try await Self.goesOn(gateway, client, title: "c")
            #expect(client.files[3]?.isUnbound == false)
            #expect(try await gateway.text("/metrics").contains(#"sluice_realm_sessions{sdk="swift"} 2"#))
        }
    }
}
