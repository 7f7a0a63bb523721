import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceSDK
import SluiceTools
import SluiceValues
import TestSupport
import Testing

/// Rows that SQL wrote and that do not fit their classes.
@Suite(.timeLimit(.minutes(5))) struct `Rows that do not fit` {
    /// What operators see, as `type key`.
    private static func list(_ gateway: RunningGateway) async throws -> Set<String> {
        let answer = try await gateway.request("GET", "/admin/v1/quarantine?limit=1000", admin: true)
        let rows = answer.json["rows"]?.array ?? []
        // A row may come between the list and the count.
        #expect(answer.json["count"]?.int != nil)
        #expect(rows.allSatisfy { $0["reason"]?.string?.isEmpty == false && $0["at"]?.string?.isEmpty == false })
        return Set(rows.map { "\($0["type"]?.string ?? "") \($0["key"]?.string ?? "")" })
    }

    /// Waits until operators see these; noting them has no event for others.
    private static func await(_ wanted: Set<String>, _ gateway: RunningGateway) async throws {
        if try await eventually({ try await list(gateway) == wanted }) { return }
        #expect(try await list(gateway) == wanted)
    }

    @MainActor
    @Test func `Scenario 46: rows that lack what is required now are quarantined, and filling them frees them`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) SELECT 'n' || i, 'north', i FROM generate_series(1, 3) AS i")
            let before = try await Phone.open(gateway, orders: ["store == 'north'"])
            #expect(before.keys == ["n1", "n2", "n3"])
            // Required, and the column is there without a default.
            try await gateway.sql("ALTER TABLE orders ADD COLUMN rank bigint")
            let text = try #require(ShopApp.files[ShopApp.table("orders", "schema")])
                .replacing(#""required": ["#, with: #""required": ["rank", "#)
                .replacing(#""properties": {"#, with: #""properties": { "rank": { "bsonType": "long" }, "#)
            let app = try ShopApp.configuration(files: [ShopApp.table("orders", "schema"): text])
            #expect(try await SchemaTool(app: app, postgres: gateway.conninfo).apply(acceptsBreaking: false).statements.isEmpty)
            try await gateway.untilKnown("rank", of: "Order")
            let after = try await Phone.open(gateway, orders: ["store == 'north'"])
            #expect(after.keys.isEmpty)
            try await Self.await(["Order n1", "Order n2", "Order n3"], gateway)
            // Filling one, and deleting one.
            try await gateway.sql("UPDATE orders SET rank = 1 WHERE _id = 'n1'")
            try await after.wait { Set($0.map(\._id)) == ["n1"] }
            try await gateway.sql("DELETE FROM orders WHERE _id = 'n2'")
            try await Self.await(["Order n3"], gateway)
            // The device of before comes back to what fits; it never knew the property.
            before.session.suspend()
            before.session.resume()
            try await before.wait { Set($0.map(\._id)) == ["n1"] }
            try await gateway.sql("UPDATE orders SET rank = 3")
            for phone in [before, after] { try await phone.wait { Set($0.map(\._id)) == ["n1", "n3"] } }
            try await Self.await([], gateway)
            #expect(before.said.all.isEmpty && after.said.all.isEmpty)
        }
    }

    @MainActor
    @Test func `Scenario 56: bad rows never stop the app, and are told and released`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql("ALTER TABLE orders ALTER store DROP NOT NULL, ALTER size DROP NOT NULL")
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            try await gateway.besideHealthySession {
                try await gateway.sql(
                    """
                    BEGIN;
                    INSERT INTO orders (_id, store, size) SELECT 'b' || i, 'north', NULL FROM generate_series(1, 300) AS i;
                    INSERT INTO orders (_id, store, size) VALUES ('good', 'north', 1), ('lost', NULL, 1);
                    INSERT INTO tags (_id, place) VALUES ('t', '{"x": "text"}'), ('u', '{"x": 1}');
                    COMMIT
                    """)
                try await phone.wait { Set($0.map(\._id)) == ["good"] }
            }
            #expect(try await gateway.request("GET", "/ready", admin: true).status == 200)
            #expect(try await gateway.eventually("SELECT count(*) FROM sluice.quarantine", is: 302))
            let reason = try await gateway.count(
                "SELECT count(*) FROM sluice.quarantine WHERE type = 'Order' AND reason LIKE 'size: %NULL%'")
            #expect(reason == 300)
            // The rows are counted after they were noted.
            try await gateway.untilMetric("sluice_quarantined_rows", is: 302)
            // A row that a device has goes bad, and good again.
            try await gateway.sql("UPDATE orders SET size = NULL WHERE _id = 'good'")
            try await phone.wait { $0.isEmpty || $0.allSatisfy { $0._id.hasPrefix("after") } }
            try await gateway.sql("UPDATE orders SET size = 2 WHERE _id IN ('good', 'b1')")
            try await phone.wait { $0.contains { $0._id == "good" && $0.size == 2 } && $0.contains { $0._id == "b1" } }
            try await gateway.sql("DELETE FROM orders WHERE size IS NULL; UPDATE orders SET store = 'north' WHERE store IS NULL")
            try await phone.wait { $0.contains { $0._id == "lost" } }
            try await Self.await(["Tag t"], gateway)
            #expect(phone.said.all.isEmpty, "\(phone.said.all)")
        }
    }

    @Test func `one that is too large for the log never stops the app, and shrinking it releases it`() async throws {
        let log = try AppLog()
        try await RunningGateway.deploy { deployment in
            try await deployment.run(log.files, kafka: log.broker) { gateway in
                let session = try await gateway.openSession()
                try await session.subscribe(1, [("Order", "store == 'north'")])
                try await gateway.sql(
                    """
                    INSERT INTO orders (_id, store, title, secret)
                    VALUES ('grows', 'north', 'small', NULL), ('large', 'north', repeat('t', 6000000), repeat('s', 6000000))
                    """)
                try await session.receive { $0.keys("Order") == ["grows"] }
                try await gateway.besideHealthySession {
                    try await gateway.sql(
                        "UPDATE orders SET title = repeat('t', 6000000), secret = repeat('s', 6000000), size = 1 WHERE _id = 'grows'")
                    // Neither is sent again with the change.
                    try await gateway.sql("UPDATE orders SET size = 2")
                    try await Self.await(["Order grows", "Order large"], gateway)
                }
                try await session.receive { !$0.keys("Order").contains("grows") }
                let values: [String: Value] = [
                    "store": .string("north"), "size": .int(1), "title": .string(String(repeating: "t", count: 10 << 20)),
                ]
                #expect(try await session.isRefused(1, TestSession.order("mine", values)))
                #expect(try await gateway.texts("SELECT cause FROM sluice.rejected_write") == ["database"] && session.error == nil)
                // Who comes now gets what fits, and nobody gets the others before they do.
                let next = try await gateway.openSession()
                try await next.subscribe(1, [("Order", "store == 'north'")])
                #expect(next.keys("Order").isDisjoint(with: ["grows", "large", "mine"]))
                try await gateway.sql("UPDATE orders SET secret = NULL WHERE secret IS NOT NULL")
                for session in [session, next] {
                    try await session.receive { $0.keys("Order").isSuperset(of: ["grows", "large"]) }
                    let size = session.rows["Order"]?[.string("grows")]?["size"]
                    #expect(size == .int(2))
                }
                try await Self.await([], gateway)
            }
        }
        try await log.deleteTopics()
    }

    /// PostgreSQL keeps a large value beside its row and does not say it again when it stays as it is.
    @MainActor
    @Test func `a large value that was there before the row fits comes with it`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql("ALTER TABLE orders ALTER size DROP NOT NULL")
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            try await gateway.sql(
                """
                INSERT INTO orders (_id, store, size, title)
                SELECT 'large', 'north', NULL, string_agg(md5(i::text), '') FROM generate_series(1, 1000) AS i
                """)
            try await Self.await(["Order large"], gateway)
            try await gateway.sql("UPDATE orders SET size = 1 WHERE _id = 'large'")
            try await phone.wait { $0.first?._id == "large" }
            let title = try await gateway.texts("SELECT title FROM orders").first
            #expect(phone.realm.objects(Order.self).first?.title == title && title?.count == 32_000)
        }
    }

    @Test func `a schema that grows releases what it fits, and devices that are there get it`() async throws {
        try await RunningGateway.with { gateway in
            let session = try await gateway.openSession(["Tag"])
            try await session.subscribe(1, [("Tag", "TRUEPREDICATE")])
            try await gateway.sql(
                #"INSERT INTO tags (_id, place) VALUES ('deep', '{"x": 1, "y": 2, "z": 3}'), ('flat', '{"x": 1, "y": 2}')"#)
            try await session.receive { $0.keys("Tag") == ["flat"] }
            try await Self.await(["Tag deep"], gateway)
            let text = try #require(ShopApp.files[ShopApp.table("tags", "schema")])
                .replacing(#""y": {"#, with: #""z": { "bsonType": "long" }, "y": {"#)
            let app = try ShopApp.configuration(files: [ShopApp.table("tags", "schema"): text])
            #expect(try await SchemaTool(app: app, postgres: gateway.conninfo).apply(acceptsBreaking: false).applied == 2)
            try await session.receive { $0.keys("Tag") == ["deep", "flat"] }
            try await Self.await([], gateway)
        }
    }

    @Test func `operators have the list looked at, and what fits by then is sent again`() async throws {
        try await RunningGateway.with { gateway in
            let session = try await gateway.openSession(["Tag"])
            try await session.subscribe(1, [("Tag", "TRUEPREDICATE")])
            try await gateway.sql(#"INSERT INTO tags (_id, place) VALUES ('bad', '{"x": "text"}'), ('good', '{"x": 1}')"#)
            try await session.receive { $0.keys("Tag") == ["good"] }
            try await Self.await(["Tag bad"], gateway)
            // The gateway also looks by itself, when publishing starts and each minute. It may be first.
            let isReleased = try await eventually {
                try await gateway.sql(
                    """
                    INSERT INTO sluice.quarantine (type, key, reason, lsn) VALUES
                        ('Tag', 'good', 'a note that was left', '0/0'), ('Tag', 'gone', 'so was this', '0/0'), ('Nothing', 'x', 'and this', '0/0')
                    ON CONFLICT DO NOTHING
                    """)
                let listed = try await Self.list(gateway)
                let answer = try await gateway.request("POST", "/admin/v1/quarantine/release", admin: true)
                return listed == ["Tag bad", "Tag good", "Tag gone", "Nothing x"] && answer.json["released"]?.int == 3
                    && answer.json["left"]?.int == 1
            }
            #expect(isReleased)
            #expect(try await Self.list(gateway) == ["Tag bad"])
            let some = try await gateway.request("GET", "/admin/v1/quarantine?type=Order&limit=5", admin: true)
            #expect(some.json["rows"]?.array?.isEmpty == true && some.json["count"]?.int == 1)
        }
    }
}
