import GatewayTestSupport
import RealmTestClient
import RealmTestSupport
import SluiceCore
import SluiceGateway
import SluiceRealm
import SluiceValues
import Testing

/// A client of Realm's protocol whose view is larger than one entry of its stream.
@Suite(.timeLimit(.minutes(5))) struct `A client of Realm's protocol with a large view` {
    /// Orders of 10 KB, which are about 70 MB.
    private static let count = 7_000
    private static let fill = """
        INSERT INTO orders (_id, store, title, size)
            SELECT 'k' || i, 'north', repeat(md5(i::text), 320), i FROM generate_series(1, \(count)) AS i;
        """

    private static func order(_ number: Int) -> ObjectKey { ObjectKey(type: "Order", key: .string("k\(number)")) }

    @Test func `gets it in slices, also if its connection ends between two of them`() async throws {
        try await RunningGateway.deploy(ShopApp.tables + Self.fill) { deployment in
            try await deployment.run(ShopApp.files) { gateway in
                let token = try await gateway.anonymousToken()
                let client = RealmTestClient(try ShopApp.configuration().schema)
                try await client.connect(gateway.url, app: gateway.app, token: token)
                try await client.sendSubscriptions(["Order": "store == 'north'"])
                try await client.receive { $0.waitingParts > 0 }
                #expect(client.file.objects.isEmpty)
                client.disconnect()
                // The first slice has some of them. The client keeps it, and the next view follows it.
                try await gateway.sql("DELETE FROM orders WHERE size % 10 = 0; UPDATE orders SET title = 'x' WHERE size % 10 = 1")
                try await client.connect(gateway.url, app: gateway.app, token: token)
                try await client.receive { $0.isQueryComplete && $0.isMarkReached }
                #expect(client.file.objects.count == Self.count - Self.count / 10)
                #expect(client.file.objects.values.count { $0["title"] == .string("x") } == Self.count / 10)
                try await gateway.sql("UPDATE orders SET title = 'y' WHERE _id = 'k2'; DELETE FROM orders WHERE _id = 'k3'")
                try await client.receive {
                    $0.objects[Self.order(2)]?["title"] == .string("y") && $0.objects[Self.order(3)] == nil
                }
                try await client.write([.update(RealmPath(Self.order(4), "title"), .value(.string("mine")))])
                try await client.synchronize()
                #expect(try await gateway.texts("SELECT title FROM orders WHERE _id = 'k4'") == ["mine"])
                client.disconnect()
            }
        }
    }
}
