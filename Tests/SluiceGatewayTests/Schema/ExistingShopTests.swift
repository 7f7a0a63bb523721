import GatewayTestSupport
import RealmTestClient
import RealmTestSupport
import SluiceCore
import SluiceGateway
import SluicePorts
import SluicePostgres
import SluiceRealm
import SluiceValues
import SluiceWire
import Testing

/// Clients of a shop whose tables another role made, with a gateway that has grants alone.
@Suite(.timeLimit(.minutes(5))) struct `A shop that exists` {
    private static func id(_ number: UInt64) -> Value { .uuid(UUIDBytes(high: 0, low: number)) }
    private static func order(_ number: UInt64) -> ObjectKey { ObjectKey(type: "Order", key: id(number)) }
    private static func number(_ text: String) -> Value { Decimal128(text).map { .decimal($0) } ?? .null }
    private static func time(_ text: String) -> Value { Timestamp(iso8601: text).map { .timestamp($0) } ?? .null }

    private static func with(_ body: @escaping @Sendable (ExistingShop, RunningGateway, TestSession) async throws -> Void) async throws {
        try await ExistingShop.with { shop in
            try await shop.grant()
            try await shop.run { gateway in
                let session = try await gateway.session(token: try await gateway.anonymousToken())
                try await session.hello(["Customer", "Order", "Line", "Visit", "Item"])
                try await session.subscribe(
                    1,
                    [
                        ("Order", "ownerId == 'ann' AND status != 'sent' AND gross < 100000 AND ANY marks == 'paid' OR ownerId == 'eve'"),
                        ("Customer", "country == 'DE' OR name == 'Bo'"), ("Line", "ownerId == 'ann'"), ("Visit", "ownerId == 'ann'"),
                        ("Item", "ownerId == 'ann'"),
                    ])
                try await body(shop, gateway, session)
                session.close()
            }
        }
    }

    @Test func `is shown with the values of its columns, before and after changes by SQL`() async throws {
        try await Self.with { shop, gateway, session in
            let first = try #require(session.rows["Order"]?[Self.id(1)])
            #expect(session.rows["Order"]?.count == 1)
            #expect(first["status"] == .string("open") && first["net"] == Self.number("10.00") && first["gross"] == Self.number("12.000"))
            #expect(first["placedOn"] == Self.time("2026-03-01T00:00:00Z") && first["seen"] == Self.time("2026-03-01T12:30:00.25Z"))
            #expect(first["details"] == .dictionary(["a": .int(1)]) && first["rating"] == .int(3) && first["customer"] == .int(1))
            #expect(first["marks"] == .list([.string("paid")]))
            #expect(session.rows["Customer"]?[.int(1)]?["country"] == .string("DE"), "the padding of char(4) is none of the text")
            #expect(session.rows["Line"]?[.int(7)]?["amount"] == .float(1.5) && session.rows["Visit"]?.count == 1)
            try await shop.sql(
                """
                UPDATE orders SET status = 'paid', net = 15, placed_on = '2026-04-01', seen = NULL, details = '[1]', marks = '{paid,open}'
                    WHERE order_id = '00000000-0000-0000-0000-000000000001';
                UPDATE "Crm"."Customers" SET country = 'FR' WHERE customer_id = 1;
                INSERT INTO order_lines (order_id, line, owner_id) VALUES ('00000000-0000-0000-0000-000000000001', 2, 'ann')
                """)
            try await session.receive { $0.rows["Line"]?.count == 2 && $0.rows["Order"]?[Self.id(1)]?["net"] == Self.number("15.00") }
            let changed = try #require(session.rows["Order"]?[Self.id(1)])
            #expect(changed["status"] == .string("paid") && changed["gross"] == Self.number("18.000"), "\(changed)")
            #expect(changed["placedOn"] == Self.time("2026-04-01T00:00:00Z") && changed["seen"] == .null)
            #expect(changed["details"] == .list([.int(1)]) && changed["marks"] == .list([.string("paid"), .string("open")]))
            #expect(session.rows["Customer"]?[.int(1)] == nil, "it has left the query")
            // A row that leaves and enters by its generated column.
            try await shop.sql("UPDATE orders SET status = 'sent' WHERE owner_id = 'ann'")
            try await session.receive { $0.rows["Order"]?[Self.id(1)] == nil }
        }
    }

    @Test func `is shown with the values of a formula that changes meanwhile`() async throws {
        try await Self.with { shop, gateway, session in
            #expect(session.rows["Order"]?[Self.id(1)]?["gross"] == Self.number("12.000"))
            try await shop.sql(
                "ALTER TABLE orders DROP COLUMN gross; ALTER TABLE orders ADD COLUMN gross numeric GENERATED ALWAYS AS (net * 3) STORED")
            #expect(try await session.failure().code == .resync, "no row in the log shows the new values")
            let next = try await gateway.session(token: try await gateway.anonymousToken())
            try await next.hello(["Order"])
            try await next.subscribe(1, [("Order", "ownerId == 'ann'")])
            #expect(next.rows["Order"]?[Self.id(1)]?["gross"] == Self.number("30.00"))
            try await shop.sql("UPDATE orders SET net = 11 WHERE order_id = '00000000-0000-0000-0000-000000000001'")
            try await next.receive { $0.rows["Order"]?[Self.id(1)]?["net"] == Self.number("11.00") }
            #expect(next.rows["Order"]?[Self.id(1)]?["gross"] == Self.number("33.00"))
            next.close()
        }
    }

    @Test func `is written, and what a column cannot hold is undone with the reason`() async throws {
        try await Self.with { shop, gateway, session in
            func create(_ number: UInt64, _ values: [String: Value]) -> ObjectChange {
                ObjectChange(
                    object: Self.order(number), kind: .create,
                    values: ["ownerId": .string("eve"), "status": .string("paid"), "net": Self.number("2.5"), "marks": .list([])].merging(
                        values
                    ) { $1 })
            }
            try await session.upload(
                1,
                [
                    create(
                        3,
                        [
                            "placedOn": Self.time("2026-05-06T17:18:19Z"), "details": .dictionary(["b": .bool(true)]), "rating": .int(5),
                            "gross": Self.number("7"),
                        ])
                ])
            try await session.receive { $0.acknowledged == 1 && $0.rows["Order"]?[Self.id(3)]?["gross"] == Self.number("3.000") }
            let row =
                "SELECT concat_ws('|', status, net, gross, placed_on, details, rating, internal, number > 0) FROM orders WHERE order_id = '00000000-0000-0000-0000-000000000003'"
            #expect(try await shop.texts(row) == [#"paid|2.50|3.000|2026-05-06|{"b":true}|5|x|t"#])
            #expect(session.rows["Order"]?[Self.id(3)]?["placedOn"] == Self.time("2026-05-06T00:00:00Z"), "a date has no time of day")
            let refused: [(String, Value, String)] = [
                ("status", .string("lost"), #"Order.status cannot be "lost""#),
                ("marks", .list([.string("open"), .string("x")]), #"Order.marks cannot be "x""#),
                ("gross", Self.number("1"), "Order.gross is computed by the database"),
                ("rating", .int(70_000), "a value cannot be stored"),
                ("net", Self.number("1000"), "a check does not hold"), ("customer", .int(9), "a reference has no target"),
            ]
            for (index, (property, value, reason)) in refused.enumerated() {
                let number = UInt64(index + 2)
                try await session.upload(number, [ObjectChange(object: Self.order(3), kind: .set, values: [property: value])])
                try await session.receive { $0.acknowledged == number && $0.compensations.count == index + 1 }
                #expect(session.compensations.last?.error.message.contains(reason) == true, "\(session.compensations)")
            }
            #expect(
                session.compensations[0].error.message.contains("Its values are open, paid, sent."), "\(session.compensations[0].error)")
            #expect(try await shop.texts(row) == [#"paid|2.50|3.000|2026-05-06|{"b":true}|5|x|t"#])
            // A value that the enum has got since is none of the gateway's business.
            try await shop.sql("ALTER TYPE order_status ADD VALUE 'lost'")
            try await session.upload(
                8, [ObjectChange(object: Self.order(3), kind: .set, values: ["status": .string("lost"), "net": Self.number("5")])])
            try await session.receive { $0.acknowledged == 8 && $0.rows["Order"]?[Self.id(3)]?["gross"] == Self.number("6.000") }
            #expect(session.rows["Order"]?[Self.id(3)]?["status"] == .string("lost") && session.compensations.count == refused.count)
        }
    }

    @Test func `has a read-only class, a composite key beside ours, and partitions that rows move between`() async throws {
        try await Self.with { shop, gateway, session in
            // The role may only read the table, and the rules deny before that shows.
            let item = ObjectKey(type: "Item", key: .string("s1"))
            try await session.upload(1, [ObjectChange(object: item, kind: .set, values: ["title": .string("x")])])
            try await session.receive { $0.acknowledged == 1 && $0.compensations.count == 1 }
            #expect(session.compensations[0].error.message.contains("Not allowed to write"), "\(session.compensations)")
            let line = ObjectKey(type: "Line", key: .int(100))
            let values: [String: Value] = ["ownerId": .string("ann"), "order_id": Self.id(1), "line": .int(3), "amount": .float(2)]
            let visit = ObjectKey(type: "Visit", key: .int(50))
            try await session.upload(
                2,
                [
                    ObjectChange(object: line, kind: .create, values: values),
                    ObjectChange(
                        object: visit, kind: .create, values: ["at": Self.time("2025-06-01T00:00:00Z"), "ownerId": .string("ann")]),
                ])
            try await session.receive { $0.acknowledged == 2 }
            #expect(session.compensations.count == 1, "\(session.compensations)")
            #expect(try await shop.texts("SELECT amount FROM order_lines WHERE line_key = 100") == ["2"])
            // The other key of the table is taken.
            try await session.upload(3, [ObjectChange(object: ObjectKey(type: "Line", key: .int(101)), kind: .create, values: values)])
            try await session.receive { $0.acknowledged == 3 && $0.compensations.count == 2 }
            #expect(session.compensations[1].error.message.contains("must be unique"), "\(session.compensations)")
            #expect(try await shop.texts("SELECT tableoid::regclass FROM visits WHERE visit = 50") == ["visits_old"])
            try await session.upload(4, [ObjectChange(object: visit, kind: .set, values: ["at": Self.time("2026-06-01T00:00:00Z")])])
            try await session.receive { $0.acknowledged == 4 }
            #expect(try await shop.texts("SELECT tableoid::regclass FROM visits WHERE visit = 50") == ["visits_new"])
            try await shop.sql("UPDATE visits SET at = '2024-01-01' WHERE visit = 50")
            try await session.receive { $0.rows["Visit"]?[.int(50)]?["at"] == Self.time("2024-01-01T00:00:00Z") }
            try await session.upload(5, [ObjectChange(object: visit, kind: .delete)])
            try await session.receive { $0.acknowledged == 5 }
            #expect(try await shop.texts("SELECT count(*) FROM visits") == ["1"])
        }
    }

    @Test func `serves Realm's protocol`() async throws {
        try await ExistingShop.with { shop in
            try await shop.grant()
            try await shop.run { gateway in
                let client = RealmTestClient(try AppDirectory.read(files: ExistingShop.files).schema)
                try await client.connect(gateway.url, app: gateway.app, token: try await gateway.anonymousToken())
                try await client.subscribe(["Order": "ownerId == 'ann' OR ownerId == 'eve'"])
                #expect(client.file.objects[Self.order(1)]?["gross"] == Self.number("12.000"))
                let object = Self.order(4)
                try await client.write([
                    .createObject(object), .update(RealmPath(object, "ownerId"), .value(.string("eve"))),
                    .update(RealmPath(object, "status"), .value(.string("open"))),
                    .update(RealmPath(object, "net"), .value(Self.number("1"))),
                    .update(RealmPath(object, "gross"), .value(Self.number("0"))),
                ])
                try await client.synchronize()
                try await client.receive { $0.objects[object]?["gross"] == Self.number("1.200") }
                try await client.write([.update(RealmPath(object, "status"), .value(.string("lost")))])
                try await client.receive { $0.compensations.count == 1 && $0.objects[object]?["status"] == .string("open") }
                try await client.write([.update(RealmPath(object, "gross"), .value(Self.number("9")))])
                try await client.receive { $0.compensations.count == 2 && $0.objects[object]?["gross"] == Self.number("1.200") }
                try await shop.sql("UPDATE orders SET net = 2, status = 'sent' WHERE owner_id = 'eve'")
                try await client.receive { $0.objects[object]?["gross"] == Self.number("2.400") }
                #expect(client.file.objects[object]?["status"] == .string("sent") && client.file.error == nil)
                client.disconnect()
            }
        }
    }
}
