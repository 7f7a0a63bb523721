import GatewayTestSupport
import Logging
import RealmTestClient
import RealmTestSupport
import SluiceCore
import SluiceGateway
import SluicePorts
import SluiceRealm
import SluiceValues
import Testing

/// Clients of Realm's protocol at a gateway, from the upgrade to the end of the connection.
@Suite(.timeLimit(.minutes(5))) struct `Clients of Realm's protocol` {
    private static let all = ["Order": "store IN {'north', 'south'}", "Tag": "TRUEPREDICATE"]

    static func schema() throws -> Schema { try ShopApp.configuration().schema }

    static func order(_ key: String) -> ObjectKey { ObjectKey(type: "Order", key: .string(key)) }

    static func set(_ key: String, _ field: String, _ value: Value) -> RealmInstruction {
        .update(RealmPath(order(key), field), .value(value))
    }

    /// The instructions of a new order.
    static func create(_ key: String, store: String = "north", size: Int64 = 1) -> [RealmInstruction] {
        [.createObject(order(key)), set(key, "store", .string(store)), set(key, "size", .int(size))]
    }

    /// A connected client of a new user.
    private static func client(_ gateway: RunningGateway) async throws -> RealmTestClient {
        let client = RealmTestClient(try schema())
        try await client.connect(gateway.url, app: gateway.app, token: try await gateway.anonymousToken())
        return client
    }

    // MARK: The way of objects

    @Test func `get what they subscribe to, and every later change of it`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql(
                """
                INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1), ('s1', 'south', 2);
                INSERT INTO tags (_id, labels, place) VALUES ('t1', '{a,b}', '{"x": 1}')
                """)
            let client = try await Self.client(gateway)
            try await client.subscribe(["Order": "store == 'north'", "Tag": "TRUEPREDICATE"])
            #expect(client.file.objects.count == 2)
            #expect(client.file.objects[Self.order("n1")]?["size"] == .int(1))
            let tag = ObjectKey(type: "Tag", key: .string("t1"))
            #expect(client.file.objects[tag]?["labels"] == .list([.string("a"), .string("b")]))
            #expect(client.file.objects[tag]?["place"] == .dictionary(["x": .int(1), "y": .null]))

            try await gateway.sql("UPDATE orders SET size = 5 WHERE _id = 'n1'")
            try await client.receive { $0.objects[Self.order("n1")]?["size"] == .int(5) }
            try await gateway.sql("UPDATE orders SET store = 'north' WHERE _id = 's1'")
            try await client.receive { $0.objects[Self.order("s1")]?["size"] == .int(2) }
            try await gateway.sql("UPDATE orders SET store = 'south' WHERE _id = 'n1'; DELETE FROM orders WHERE _id = 's1'")
            try await client.receive { $0.objects.keys.allSatisfy { $0.type != "Order" } }
            try await gateway.sql("UPDATE tags SET labels = '{b,c,d}', place = '{\"x\": 2, \"y\": 3}', title = 'x'")
            try await client.receive { $0.objects[tag]?["title"] == .string("x") }
            #expect(client.file.objects[tag]?["labels"] == .list([.string("b"), .string("c"), .string("d")]))
            #expect(client.file.objects[tag]?["place"] == .dictionary(["x": .int(2), "y": .int(3)]))
            client.disconnect()
        }
    }

    @Test func `write to PostgreSQL and to the replicas of our own SDK`() async throws {
        try await RunningGateway.with { gateway in
            let session = try await gateway.openSession()
            try await session.subscribe(1, [("Order", "store == 'north'"), ("Tag", "TRUEPREDICATE")])
            let client = try await Self.client(gateway)
            try await client.write(RealmSchema.instructions(of: try Self.schema()))
            try await client.subscribe(Self.all)
            try await client.write(Self.create("n1"))
            try await session.receive { $0.rows["Order"]?[.string("n1")]?["size"] == .int(1) }

            let tag = ObjectKey(type: "Tag", key: .string("t1"))
            let (labels, place) = (RealmPath(tag, "labels"), RealmPath(tag, "place"))
            try await client.write([
                .createObject(tag), .arrayInsert(labels, at: 0, .value(.string("a")), priorSize: 0),
                .arrayInsert(labels, at: 1, .value(.string("c")), priorSize: 1),
                .arrayInsert(labels, at: 1, .value(.string("b")), priorSize: 2), .update(place, .container(.object)),
                .update(RealmPath(tag, "place", [.key("x")]), .value(.int(7))),
            ])
            try await client.write([.addInteger(RealmPath(Self.order("n1"), "size"), 4)])
            try await client.synchronize()
            #expect(try await gateway.texts("SELECT size FROM orders") == ["5"])
            #expect(try await gateway.texts("SELECT labels FROM tags") == ["{a,b,c}"])
            #expect(try await gateway.texts("SELECT place->>'x' FROM tags") == ["7"])
            try await session.upload(1, [TestSession.order("n2", ["store": .string("north"), "size": .int(9)])])
            try await client.receive { $0.objects[Self.order("n2")]?["size"] == .int(9) }
            try await client.write([.eraseObject(Self.order("n1"))])
            try await session.receive { $0.keys("Order") == ["n2"] }
            session.close()
            client.disconnect()
        }
    }

    @Test func `agree on a value that both kinds of clients write at once`() async throws {
        try await RunningGateway.with { gateway in
            let client = try await Self.client(gateway)
            try await client.subscribe(Self.all)
            try await client.write(Self.create("n1"))
            try await client.synchronize()
            let session = try await gateway.openSession()
            try await session.subscribe(1, [("Order", "store == 'north'")])
            // The client has not seen the session's write when it writes itself.
            try await session.upload(1, [TestSession.order("n1", ["size": .int(10)], .set)])
            try await session.receive { $0.rows["Order"]?[.string("n1")]?["size"] == .int(10) }
            try client.commit([Self.set("n1", "size", .int(20))])
            try await client.write([Self.set("n1", "title", .string("mine"))])
            try await client.synchronize()
            let size = try await gateway.texts("SELECT size FROM orders")
            #expect(size == ["20"], "the client's write is the later one")
            #expect(client.file.objects[Self.order("n1")]?["size"] == .int(20))
            try await session.receive { $0.rows["Order"]?[.string("n1")]?["title"] == .string("mine") }
            session.close()
            client.disconnect()
        }
    }

    @Test func `let the later of two writes win, whichever arrives last`() async throws {
        try await RunningGateway.with { gateway in
            let (token, north) = (try await gateway.anonymousToken(), ["Order": "store == 'north'"])
            let (first, second) = (RealmTestClient(try Self.schema()), try await Self.client(gateway))
            try await first.connect(gateway.url, app: gateway.app, token: token)
            try await first.subscribe(north)
            try await first.write(Self.create("n1"))
            try await first.synchronize()
            try await second.subscribe(north)
            first.disconnect()
            try first.commit([Self.set("n1", "title", .string("earlier"))])
            try second.commit([Self.set("n1", "title", .string("later"))], ahead: 1_000)
            try await second.synchronize()
            // The other client's write was made before, without knowing this one.
            try await first.connect(gateway.url, app: gateway.app, token: token)
            try await first.synchronize()
            try await second.synchronize()
            #expect(try await gateway.texts("SELECT title FROM orders") == ["later"])
            for client in [first, second] { #expect(client.file.objects[Self.order("n1")]?["title"] == .string("later")) }
            first.disconnect()
            second.disconnect()
        }
    }

    @Test func `write over what SQL wrote before, however far behind their clocks are`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1)")
            let client = try await Self.client(gateway)
            try await client.subscribe(["Order": "store == 'north'"])
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n2', 'north', 1)")
            try await client.receive { $0.objects[Self.order("n2")] != nil }
            // One has come with the view, and one by a change.
            try client.commit([Self.set("n1", "size", .int(5)), Self.set("n2", "size", .int(6))], ahead: -3_600_000)
            try await client.synchronize()
            #expect(try await gateway.texts("SELECT size FROM orders ORDER BY _id") == ["5", "6"])
            #expect(client.file.objects[Self.order("n1")]?["size"] == .int(5))
            #expect(client.file.objects[Self.order("n2")]?["size"] == .int(6))
            client.disconnect()
        }
    }

    @Test func `keep the elements that they insert offline, whatever others do to the list`() async throws {
        try await RunningGateway.with { gateway in
            let (token, tags) = (try await gateway.anonymousToken(), ["Tag": "TRUEPREDICATE"])
            let (first, second) = (RealmTestClient(try Self.schema()), try await Self.client(gateway))
            try await first.connect(gateway.url, app: gateway.app, token: token)
            let tag = ObjectKey(type: "Tag", key: .string("t1"))
            let labels = RealmPath(tag, "labels")
            try await first.subscribe(tags)
            try await first.write([.createObject(tag), .arrayInsert(labels, at: 0, .value(.string("a")), priorSize: 0)])
            try await first.synchronize()
            try await second.subscribe(tags)
            first.disconnect()
            try first.commit([.arrayInsert(labels, at: 1, .value(.string("mine")), priorSize: 1)])
            try first.commit([.update(RealmPath(tag, "title"), .value(.string("mine")))])
            try await second.write([.arrayInsert(labels, at: 0, .value(.string("theirs")), priorSize: 1)])
            try await second.synchronize()
            try await first.connect(gateway.url, app: gateway.app, token: token)
            try await first.synchronize()
            // The repair of the list may follow the answer to a mark.
            let all: Value = .list([.string("theirs"), .string("a"), .string("mine")])
            for client in [first, second] { try await client.receive { $0.objects[tag]?["labels"] == all } }
            #expect(try await gateway.texts("SELECT labels FROM tags") == ["{theirs,a,mine}"])
            #expect(first.file.objects[tag]?["title"] == .string("mine"))
            first.disconnect()
            second.disconnect()
        }
    }

    // MARK: Refusals

    @Test func `are told of a write outside of their queries, which is undone`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1)")
            let client = try await Self.client(gateway)
            try await client.subscribe(["Order": "store == 'north'"])
            try await client.write(Self.create("s1", store: "south"))
            try await client.receive { $0.compensations.count == 1 && $0.objects[Self.order("s1")] == nil }
            let compensation = try #require(client.file.compensations.first)
            #expect(compensation.rejected.map(\.table) == ["Order"])
            #expect(try await gateway.count("SELECT count(*) FROM orders") == 1)
            // The session goes on.
            try await client.write(Self.create("n2"))
            try await client.synchronize()
            #expect(try await gateway.count("SELECT count(*) FROM orders") == 2)
            #expect(client.file.error == nil && client.file.compensations.count == 1)
            client.disconnect()
        }
    }

    @Test func `keep their set if another one is refused`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1)")
            let client = try await Self.client(gateway)
            try await client.subscribe(["Order": "store == 'north'"])
            try await client.sendSubscriptions(["Order": "store == 'north' AND secret == 'x'"])
            try await client.receive { !$0.queryErrors.isEmpty }
            #expect(client.file.queryErrors.map(\.queryVersion) == [2])
            try await gateway.sql("UPDATE orders SET size = 2")
            try await client.receive { $0.objects[Self.order("n1")]?["size"] == .int(2) }
            try await client.subscribe(["Order": "store == 'south'"])
            #expect(client.file.objects.isEmpty)
            client.disconnect()
        }
    }

    // MARK: Connections

    @Test func `send their pending writes once, whichever connection and gateway takes them`() async throws {
        try await RunningGateway.deploy { deployment in
            var file = RealmTestFile(try Self.schema())
            var refresh = ""
            (file, refresh) = try await deployment.run(ShopApp.files) { gateway in
                let account = try await gateway.account()
                let client = RealmTestClient(try Self.schema())
                try await client.connect(gateway.url, app: gateway.app, token: account.token)
                try await client.subscribe(Self.all)
                try await client.write(Self.create("n1") + [.addInteger(RealmPath(Self.order("n1"), "size"), 1)])
                // The acknowledgement is not read.
                #expect(try await gateway.eventually("SELECT count(*) FROM orders", is: 1))
                client.disconnect()
                try client.commit([.addInteger(RealmPath(Self.order("n1"), "size"), 10)])
                return (client.file, account.refreshToken)
            }
            let (kept, token) = (file, refresh)
            try await deployment.run(ShopApp.files) { gateway in
                let answer = try await gateway.request("POST", "/api/client/v2.0/auth/session", token: token)
                let client = RealmTestClient(kept)
                try await client.connect(
                    gateway.url, app: gateway.app, token: try #require(answer.json["access_token"]?.string))
                try await client.synchronize()
                #expect(try await gateway.texts("SELECT size FROM orders") == ["12"])
                #expect(client.file.objects[Self.order("n1")]?["size"] == .int(12))
                try await gateway.sql("UPDATE orders SET title = 'seen'")
                try await client.receive { $0.objects[Self.order("n1")]?["title"] == .string("seen") }
                client.disconnect()
            }
        }
    }

    @Test func `are closed with the code that they act on`() async throws {
        try await RunningGateway.with { gateway in
            let id = try await gateway.createUser("ada@example.com")
            let nameless = RealmTestClient(try Self.schema())
            let error = await #expect(throws: SluiceError.self) {
                try await nameless.connect(gateway.url, app: gateway.app, token: "")
            }
            #expect(error?.message.contains("401") == true, "\(String(describing: error))")
            try await nameless.connect(gateway.url, app: gateway.app, token: "abc")
            #expect(try await nameless.untilEnd().contains("4001"))

            let expired = RealmTestClient(try Self.schema())
            try await expired.connect(gateway.url, app: gateway.app, token: try await gateway.token(of: id, lasting: -5))
            #expect(try await expired.untilEnd().contains("4001"))

            // A token of few seconds may expire on a busy machine before the view comes.
            var (seconds, isServed) = (Int64(1), false)
            while !isServed, seconds < 60 {
                seconds *= 2
                let soon = RealmTestClient(try Self.schema())
                try await soon.connect(gateway.url, app: gateway.app, token: try await gateway.token(of: id, lasting: seconds))
                do { try await soon.subscribe(Self.all) } catch { continue }
                isServed = true
                #expect(try await soon.untilEnd().contains("4001"))
            }
            #expect(isServed)

            let disabled = RealmTestClient(try Self.schema())
            try await disabled.connect(gateway.url, app: gateway.app, token: try await gateway.token(of: id))
            try await disabled.subscribe(Self.all)
            _ = try await gateway.request("PUT", "/admin/v1/users/\(id)/disable", admin: true)
            #expect(try await disabled.untilEnd().contains("4002"))
            try await disabled.connect(gateway.url, app: gateway.app, token: try await gateway.token(of: id))
            #expect(try await disabled.untilEnd().contains("4002"))
        }
    }

    /// They would connect with the same token for ever after a close code.
    @Test(arguments: ["com.mongodb.realm-query-sync#7", "com.mongodb.realm-query-sync/7"])
    func `of older versions receive the status at the upgrade`(subprotocol: String) async throws {
        try await RunningGateway.with { gateway in
            let id = try await gateway.createUser("ada@example.com")
            let client = RealmTestClient(try Self.schema())
            func connect(_ token: String) async throws {
                try await client.connect(gateway.url, app: gateway.app, token: token, offered: [subprotocol])
            }
            func expectRefusal(_ status: Int, _ token: String) async {
                let error = await #expect(throws: SluiceError.self) { try await connect(token) }
                #expect(error?.message.contains("\(status)") == true, "\(String(describing: error))")
            }
            await expectRefusal(401, "abc")
            await expectRefusal(401, try await gateway.token(of: id, lasting: -5))
            let soon = try await gateway.token(of: id, lasting: 2)
            try await connect(soon)
            try await client.subscribe(Self.all)
            #expect(try await client.untilEnd().contains("unexpectedServerError"))
            await expectRefusal(401, soon)
            try await connect(try await gateway.token(of: id))
            try await client.synchronize()
            _ = try await gateway.request("PUT", "/admin/v1/users/\(id)/disable", admin: true)
            #expect(try await client.untilEnd().contains("unexpectedServerError"))
            await expectRefusal(403, try await gateway.token(of: id))
        }
    }

    @Test func `that ask for partition-based sync are refused, and named in the log`() async throws {
        let lines = LinesOfLog()
        try await RunningGateway.with(logger: Logger(label: "test") { _ in lines }) { gateway in
            let client = RealmTestClient(try Self.schema())
            let token = try await gateway.anonymousToken()
            let error = await #expect(throws: SluiceError.self) {
                try await client.connect(
                    gateway.url, app: gateway.app, token: token, offered: ["com.mongodb.realm-sync#14", "com.mongodb.realm-sync#13"],
                    agent: "RealmSync/10.5.5 (iOS 14.4) RealmObjectiveC/10.7.2 com.example.shop")
            }
            #expect(error?.message.contains("400") == true, "\(String(describing: error))")
            await lines.wait(for: "partition-based sync", about: "com.example.shop")
            #expect(try await gateway.text("/metrics").contains(#"sluice_realm_partition_refusals_total{sdk="swift"} 1"#))
            #expect(lines.lines.allSatisfy { !"\($0)".contains(token) })
        }
    }
}
