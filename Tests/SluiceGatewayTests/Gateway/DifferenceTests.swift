import FoundationEssentials
import GatewayTestSupport
import SluiceCore
import SluiceValues
import SluiceWire
import Testing

/// What a bootstrap brings to a client that has had one before.
@Suite struct `A bootstrap for a client that has rows` {
    private static func fill(_ gateway: RunningGateway) async throws {
        try await gateway.sql(
            "INSERT INTO orders (_id, store, title, size) SELECT 'k' || g, (ARRAY['north', 'south'])[g % 2 + 1], 't', g FROM generate_series(1, 100) g"
        )
        try await gateway.untilOlderTransactionsEnd()
    }

    private static func expectEqual(
        _ session: TestSession, _ gateway: RunningGateway, _ condition: String, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let count = try await gateway.count("SELECT count(*) FROM orders WHERE \(condition)")
        #expect(session.rows["Order"]?.count == count.map { Int($0) }, sourceLocation: sourceLocation)
        for (key, values) in session.rows["Order"] ?? [:] {
            guard case .string(let id) = key, case .int(let size)? = values["size"] else { continue }
            let same = try await gateway.count("SELECT count(*) FROM orders WHERE _id = '\(id)' AND size = \(size) AND \(condition)")
            #expect(same == 1, "\(id)", sourceLocation: sourceLocation)
        }
    }

    @Test func `brings only what was written since, and takes away what is gone`() async throws {
        try await RunningGateway.with { gateway in
            try await Self.fill(gateway)
            let token = try await gateway.anonymousToken()
            let first = try await gateway.session(token: token)
            try await first.hello()
            try await first.subscribe(1, [("Order", "store == 'north'")])
            #expect(first.brought == (50, 0))
            // One change comes live: the file has it, whatever the next bootstrap thinks of it.
            try await gateway.sql("UPDATE orders SET size = 1000 WHERE _id = 'k2'")
            try await first.receive { $0.rows["Order"]?[.string("k2")]?["size"] == .int(1_000) }
            first.close()
            try await gateway.sql(
                """
                UPDATE orders SET size = size + 1 WHERE _id IN ('k4', 'k6');
                UPDATE orders SET store = 'south' WHERE _id = 'k8';
                UPDATE orders SET store = 'north' WHERE _id = 'k1';
                DELETE FROM orders WHERE _id = 'k10';
                INSERT INTO orders (_id, store, size) VALUES ('new', 'north', 7);
                """)
            let second = try await gateway.session(token: token)
            second.takeOver(first)
            try await second.hello()
            try await second.subscribe(1, [("Order", "store == 'north'")])
            // k2, k4, k6, k1 and the new one; 45 of the 50 are as they were.
            #expect(second.brought == (5, 45))
            try await Self.expectEqual(second, gateway, "store = 'north'")
            second.close()
        }
    }

    @Test func `brings only the rows that a changed set adds`() async throws {
        try await RunningGateway.with { gateway in
            try await Self.fill(gateway)
            let session = try await gateway.openSession()
            try await session.subscribe(1, [("Order", "store == 'north' AND size <= 40")])
            #expect(session.brought == (20, 0))
            try await session.subscribe(2, [("Order", "store IN {'north', 'south'} AND size <= 50")])
            #expect(session.brought == (30, 20))
            try await Self.expectEqual(session, gateway, "size <= 50")
            try await session.subscribe(3, [("Order", "store == 'south' AND size > 10")])
            #expect(session.brought == (25, 20))
            try await Self.expectEqual(session, gateway, "store = 'south' AND size > 10")
            try await session.subscribe(4, [])
            #expect(session.brought == (0, 0))
            session.close()
        }
    }

    @Test func `brings only the rows that a set adds which changed while the client was away`() async throws {
        try await RunningGateway.with { gateway in
            try await Self.fill(gateway)
            let token = try await gateway.anonymousToken()
            let first = try await gateway.session(token: token)
            try await first.hello()
            try await first.subscribe(1, [("Order", "store == 'north' AND size <= 40")])
            first.close()
            try await gateway.sql("UPDATE orders SET title = 'u' WHERE _id = 'k2'; UPDATE orders SET store = 'south' WHERE _id = 'k4'")
            let second = try await gateway.session(token: token)
            second.takeOver(first)
            try await second.hello()
            try await second.subscribe(1, [("Order", "store == 'north'")])
            #expect(second.brought == (31, 18), "30 of the wider set, and one that was written")
            try await Self.expectEqual(second, gateway, "store = 'north'")
            second.close()
        }
    }

    @Test func `believes nobody a condition that is another's, of another point, or changed`() async throws {
        try await RunningGateway.with { gateway in
            try await Self.fill(gateway)
            let (token, other) = (try await gateway.anonymousToken(), try await gateway.anonymousToken())
            let first = try await gateway.session(token: token)
            try await first.hello()
            try await first.subscribe(1, [("Order", "store == 'north' AND size <= 40")])
            first.close()
            let stranger = try await gateway.session(token: other)
            try await stranger.hello()
            let theirs = stranger.identity
            stranger.close()
            let falsehoods: [(token: String, change: (inout PBHeld) -> Void)] = [
                (other, { _ in }), (token, { $0.transaction += 1 }), (token, { $0.types[0].sealed[20] ^= 1 }),
                (token, { $0.types[0].sealed = .init() }), (token, { $0.types[0].sealed = .init([1, 2, 3]) }),
            ]
            for (number, falsehood) in falsehoods.enumerated() {
                let second = try await gateway.session(token: falsehood.token)
                second.takeOver(first)
                if var held = second.held {
                    falsehood.change(&held)
                    second.held = held
                }
                if falsehood.token == other { second.identity = theirs }
                try await second.hello()
                try await second.subscribe(1, [("Order", "store == 'north'")])
                #expect(second.brought == (50, 0), "falsehood \(number)")
                second.close()
            }
        }
    }

    private static let small = "store IN {'north', 'south'} AND size <= 10"

    @Test func `tells of a permission that was lost while the client was away, and of no object that it never had`() async throws {
        try await RunningGateway.with { gateway in
            try await Self.fill(gateway)
            let ann = try await gateway.account(customData: #"{ "store": "north" }"#)
            let first = try await gateway.session(token: ann.token)
            try await first.hello()
            try await first.subscribe(1, [("Order", Self.small)])
            #expect(first.keys("Order") == ["k2", "k4", "k6", "k8", "k10"])
            first.close()
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('new', 'north', 1); DELETE FROM orders WHERE _id = 'k4'")
            try await gateway.setCustomData(#"{ "store": "south" }"#, of: ann.id)
            let second = try await gateway.session(token: ann.token)
            second.takeOver(first)
            try await second.hello()
            try await second.subscribe(1, [("Order", Self.small)])
            #expect(second.keys("Order") == ["k1", "k3", "k5", "k7", "k9"])
            let lost = PBViewEvent.lostPermission
            let all = ["k2", "k6", "k8", "k10"].map { ("\(Value.string($0))", lost) }
            #expect(second.left == Dictionary(uniqueKeysWithValues: all))
            second.close()
        }
    }

    @Test func `brings everything when another query, other classes or another database are asked for`() async throws {
        try await RunningGateway.with { gateway in
            try await Self.fill(gateway)
            let token = try await gateway.anonymousToken()
            let first = try await gateway.session(token: token)
            try await first.hello()
            try await first.subscribe(1, [("Order", "store == 'north'")])
            first.close()
            let other = try await gateway.session(token: token)
            other.takeOver(first)
            try await other.hello()
            try await other.subscribe(1, [("Order", "store == 'south'")])
            #expect(other.brought == (50, 0))
            other.close()
            let restored = try await gateway.session(token: token)
            restored.takeOver(first)
            restored.held?.cluster += "x"
            try await restored.hello()
            try await restored.subscribe(1, [("Order", "store == 'north'")])
            #expect(restored.brought == (50, 0))
            restored.close()
        }
    }

    @Test func `brings everything when the rules show other fields than before`() async throws {
        try await RunningGateway.with { gateway in
            try await Self.fill(gateway)
            try await gateway.createUser("ann@example.com")
            let login = try await gateway.login("ann@example.com")
            let first = try await gateway.session(token: try #require(login.json["access_token"]?.string))
            try await first.hello()
            try await first.subscribe(1, [("Order", "store == 'north'")])
            #expect(first.brought == (50, 0))
            first.close()
            // What the client says of a row's form is not what it is sent now.
            let second = try await gateway.session(token: try #require(login.json["access_token"]?.string))
            second.takeOver(first)
            second.held?.types[0].form += 1
            try await second.hello()
            try await second.subscribe(1, [("Order", "store == 'north'")])
            #expect(second.brought == (50, 0))
            try await Self.expectEqual(second, gateway, "store = 'north'")
            second.close()
        }
    }

    @Test func `a TRUNCATE leaves no session with rows that are gone, and others alone`() async throws {
        try await RunningGateway.with { gateway in
            try await Self.fill(gateway)
            try await gateway.sql("INSERT INTO tags (_id, title) VALUES ('t', 'x')")
            let token = try await gateway.anonymousToken()
            let orders = try await gateway.session(token: token)
            try await orders.hello()
            try await orders.subscribe(1, [("Order", "store == 'north'")])
            let tags = try await gateway.openSession()
            try await tags.subscribe(1, [("Tag", "TRUEPREDICATE")])
            // In one transaction with what comes after it.
            try await gateway.sql("BEGIN; TRUNCATE orders; INSERT INTO orders (_id, store, size) VALUES ('new', 'north', 1); COMMIT")
            try await orders.receive { $0.hasEnded }
            #expect(orders.error?.code == UInt32(ErrorCode.resync.rawValue))
            let again = try await gateway.session(token: token)
            again.takeOver(orders)
            try await again.hello()
            try await again.subscribe(1, [("Order", "store == 'north'")])
            #expect(again.keys("Order") == ["new"])
            try await gateway.sql("UPDATE tags SET title = 'y' WHERE _id = 't'")
            try await tags.receive { $0.rows["Tag"]?[.string("t")]?["title"] == .string("y") }
            #expect(!tags.hasEnded)
            again.close()
            tags.close()
        }
    }
}
