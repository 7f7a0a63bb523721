import GatewayTestSupport
import RealmTestClient
import RealmTestSupport
import SluiceCore
import SluiceGateway
import SluicePorts
import SluiceRealm
import SluiceValues
import Testing

/// Asymmetric objects of clients of Realm's protocol, from the upload to their table, over the broker.
@Suite(.timeLimit(.minutes(5))) struct `Asymmetric objects of Realm's protocol` {
    /// The writes of readings in the south are not allowed.
    private static let rules = [
        ShopApp.table("readings", "rules"): """
        {
            "database": "public", "collection": "readings",
            "roles": [
                {
                    "name": "north", "apply_when": {}, "document_filters": { "read": true, "write": { "store": "north" } },
                    "read": true, "write": true, "insert": true, "delete": true, "search": true
                }
            ]
        }
        """
    ]

    private static func reading(_ key: String, store: String = "north") -> [RealmInstruction] {
        let object = ObjectKey(type: "Reading", key: .string(key))
        return [
            .createObject(object), .update(RealmPath(object, "store"), .value(.string(store))),
            .update(RealmPath(object, "value"), .value(.double(1.5))),
        ]
    }

    private static func order(_ key: String) -> [RealmInstruction] {
        let object = ObjectKey(type: "Order", key: .string(key))
        return [
            .createObject(object), .update(RealmPath(object, "store"), .value(.string("north"))),
            .update(RealmPath(object, "size"), .value(.int(1))),
        ]
    }

    @Test func `are stored once, over a lost acknowledgement and a restart of the gateway`() async throws {
        try await KafkaShop.with { shop in
            let schema = try ShopApp.configuration().schema
            let (file, refresh) = try await shop.run(files: Self.rules) { gateway in
                let account = try await gateway.account()
                let client = RealmTestClient(schema)
                try await client.connect(gateway.url, app: gateway.app, token: account.token)
                try await client.subscribe(["Order": "store == 'north'"])
                try await client.write(Self.reading("a") + Self.order("n1"))
                try await client.write(Self.reading("b"))
                try await client.write(Self.reading("c", store: "south") + Self.reading("d"))
                // The acknowledgements are not read.
                #expect(try await gateway.eventually("SELECT count(*) FROM readings", is: 3))
                #expect(try await gateway.eventually("SELECT count(*) FROM sluice.ingest_rejected", is: 1))
                client.disconnect()
                try client.commit(Self.reading("e") + Self.order("n2"))
                return (client.file, account.refreshToken)
            }
            try await shop.run(files: Self.rules) { gateway in
                let answer = try await gateway.request("POST", "/api/client/v2.0/auth/session", token: refresh)
                let client = RealmTestClient(file)
                let token = try #require(answer.json["access_token"]?.string)
                try await client.connect(gateway.url, app: gateway.app, token: token)
                try await client.synchronize()
                try await client.receive { !$0.compensations.isEmpty }
                #expect(try await gateway.eventually("SELECT count(*) FROM readings", is: 4))
                #expect(try await gateway.texts("SELECT _id FROM readings ORDER BY 1") == ["a", "b", "d", "e"])
                #expect(try await gateway.texts("SELECT _id FROM orders ORDER BY 1") == ["n1", "n2"])
                #expect(try await shop.records() == 4)
                let rejected = client.file.compensations.flatMap(\.rejected)
                #expect(rejected.map(\.table) == ["Reading"] && rejected.first?.reason.contains("Reading") == true)
                #expect(client.file.error == nil && client.file.objects.keys.allSatisfy { $0.type == "Order" })
                // The confirmation of the notice ends it.
                try await client.write(Self.reading("f"))
                try await client.synchronize()
                #expect(try await gateway.eventually("SELECT count(*) FROM sluice.rejected_write WHERE NOT acknowledged", is: 0))
                client.disconnect()
            }
        }
    }
}
