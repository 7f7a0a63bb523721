import Foundation
import GatewayTestSupport
import SluiceCore
import SluicePostgres
import SluiceValues
import SluiceWire
import TestSupport
import Testing

/// Many writers at once, through sessions and by SQL; when they rest, every session must show exactly what PostgreSQL
/// selects for its subscription and its user's rules.
@Suite struct `Sessions beside many writers` {
    /// A query in the query language, and what it means in SQL.
    private static let queries: [(text: String, sql: String)] = [
        ("store == 'north'", "store = 'north'"),
        ("store == 'south' AND size > 5", "store = 'south' AND size > 5"),
        ("store IN {'north', 'west'} AND title BEGINSWITH 'a'", "store IN ('north', 'west') AND title LIKE 'a%'"),
        ("store IN {'west', 'east'}", "store IN ('west', 'east')"),
        ("store == 'north' AND (size < 3 OR title == nil)", "store = 'north' AND (size < 3 OR title IS NULL)"),
    ]
    private static let stores = ["north", "south", "west", "east"]

    @Test func `tells a device that comes back no position before its view is whole, whatever it sends`() async throws {
        try await RunningGateway.with { gateway in
            let account = try await gateway.account()
            let first = try await gateway.session(token: account.token)
            try await first.hello()
            try await first.subscribe(1, [("Order", "store == 'north'")])
            let writes = [TestSession.order("mine", ["store": .string("north"), "size": .int(1)])]
            try await first.upload(1, writes)
            try await first.receive { $0.keys("Order") == ["mine"] }
            let file = try #require(first.welcome)
            first.close()
            // It has not heard the answer, sends it again, and asks to be told: a position would mean that it has what it has not.
            let again = try await gateway.session(token: account.token)
            try await again.sendHello(client: file.client, secret: Array(file.secret))
            try await again.receive { $0.welcome != nil }
            try await again.upload(1, writes)
            try await again.receive { $0.acknowledged == 1 }
            try await again.sendMark(1)
            try await again.receive { $0.mark == 1 }
            try await again.subscribe(1, [("Order", "store == 'north'")])
            #expect(again.earlyPositions == 0 && again.keys("Order") == ["mine"])
            // What it waited for is said then.
            try await again.sendMark(2)
            try await again.receive { $0.mark == 2 }
            #expect(again.applied > .zero)
            again.close()
        }
    }

    @Test func `Scenario 13: show what PostgreSQL selects, whatever was written and subscribed meanwhile`() async throws {
        let seed = ProcessInfo.processInfo.environment["SLUICE_TEST_SEED"].flatMap { UInt64($0) } ?? .random(in: .min ... .max)
        try await RunningGateway.with { gateway in
            let rest = Rest(of: 8)
            for store in Self.stores { try await gateway.createUser("\(store)@example.com", customData: #"{"store": "\#(store)"}"#) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<5 {
                    // Two keepers of one store each, three who may see all.
                    let store = number < 2 ? Self.stores[number] : nil
                    group.addTask {
                        var random = SplitMix64(seed: seed &+ UInt64(number))
                        try await Self.session(gateway, keeperOf: store, &random, rest, "seed \(seed), session \(number)")
                    }
                }
                for number in 0..<3 {
                    group.addTask {
                        var random = SplitMix64(seed: seed &+ 100 &+ UInt64(number))
                        try await Self.writer(gateway, &random)
                        await rest.arrive()
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    // MARK: Sessions

    private static func session(
        _ gateway: RunningGateway, keeperOf store: String?, _ random: inout SplitMix64, _ rest: Rest, _ comment: String
    ) async throws {
        let session: TestSession
        if let store {
            let login = try await gateway.login("\(store)@example.com")
            session = try await gateway.session(token: try #require(login.json["access_token"]?.string))
            try await session.hello()
        } else {
            session = try await gateway.openSession()
        }
        var version: UInt64 = 0
        var uploads: UInt64 = 0
        var asked: [Int] = []
        do {
            for step in 0..<40 {
                if step == 0 || random.below(8) == 0 {
                    version += 1
                    asked = (0...random.below(2)).map { _ in random.below(queries.count) }
                    try await session.subscribe(version, asked.map { ("Order", queries[$0].text) })
                }
                uploads += 1
                try await session.upload(uploads, (0...random.below(3)).map { _ in change(&random) })
                // Some uploads are on their way at a time, as with the SDK.
                let settled = uploads > 3 ? uploads - 3 : 0
                try await session.receive { $0.acknowledged >= settled }
            }
            let last = uploads
            try await session.receive { $0.acknowledged == last }
        } catch {
            await rest.arrive()
            throw error
        }
        await rest.arrive()
        await rest.wait()
        try await session.sendMark(1)
        try await session.receive { $0.mark == 1 }
        let permitted = store.map { "store = '\($0)'" } ?? "true"
        let wanted = asked.map { "(\(queries[$0].sql))" }.joined(separator: " OR ")
        let expected = try await gateway.orders("(\(wanted)) AND \(permitted)")
        let shown = session.rows["Order"] ?? [:]
        #expect(Set(shown.keys) == Set(expected.keys), "\(comment): \(wanted)")
        for (key, values) in expected { #expect(shown[key] == values, "\(comment): \(key)") }
        session.close()
    }

    private static func change(_ random: inout SplitMix64) -> ObjectChange {
        let key = "k\(random.below( 30))"
        switch random.below(10) {
        case 0: return TestSession.order(key, [:], .delete)
        case 1...4:
            return TestSession.order(
                key,
                ["store": .string(stores[random.below(4)]), "size": .int(Int64(random.below(10))), "title": title(&random)])
        case 5...6: return TestSession.order(key, ["title": title(&random)], .set)
        case 7: return TestSession.order(key, ["store": .string(stores[random.below(4)])], .set)
        default:
            return ObjectChange(
                object: ObjectKey(type: "Order", key: .string(key)), kind: .set, counters: ["size": Int64(random.below(5)) - 2])
        }
    }

    private static func title(_ random: inout SplitMix64) -> Value {
        [.null, .string("apple"), .string("avocado"), .string("pear")][random.below(4)]
    }

    // MARK: SQL

    private static func writer(_ gateway: RunningGateway, _ random: inout SplitMix64) async throws {
        let connection = try await PostgresConnection.connect(gateway.conninfo)
        for _ in 0..<60 {
            // Keys in one order, so that writers do not lock each other out.
            let keys = Set((0...random.below(4)).map { _ in "k\(random.below( 30))" }).sorted()
            let statements = keys.map { statement($0, &random) }
            // A transaction that PostgreSQL undoes, since it met a session's, wrote nothing: that is part of the game.
            _ = try? await connection.script(
                "BEGIN;\(statements.joined(separator: ";"));\(random.below( 10) == 0 ? "ROLLBACK" : "COMMIT")")
            _ = try? await connection.script("ROLLBACK")
        }
        await connection.close()
    }

    private static func statement(_ key: String, _ random: inout SplitMix64) -> String {
        let store = stores[random.below(4)]
        let title = ["NULL", "'apple'", "'avocado'", "'pear'"][random.below(4)]
        switch random.below(6) {
        case 0: return "DELETE FROM orders WHERE _id = '\(key)'"
        case 1: return "UPDATE orders SET store = '\(store)' WHERE _id = '\(key)'"
        case 2: return "UPDATE orders SET size = \(random.below( 10)), secret = 'x' WHERE _id = '\(key)'"
        default:
            return """
                INSERT INTO orders (_id, store, title, size) VALUES ('\(key)', '\(store)', \(title), \(random.below( 10)))
                ON CONFLICT (_id) DO UPDATE SET store = EXCLUDED.store, title = EXCLUDED.title, size = EXCLUDED.size
                """
        }
    }
}

/// Where everybody waits until all have written what they wanted.
private actor Rest {
    private var missing: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(of count: Int) { missing = count }

    func arrive() {
        missing -= 1
        if missing == 0 { for continuation in waiting { continuation.resume() } }
    }

    func wait() async { if missing > 0 { await withCheckedContinuation { waiting.append($0) } } }
}

extension RunningGateway {
    /// The orders that PostgreSQL selects, as a session shows them.
    fileprivate func orders(_ condition: String) async throws -> [Value: [String: Value]] {
        let connection = try await PostgresConnection.connect(conninfo)
        let result = try await connection.query("SELECT _id, store, title, size, secret FROM orders WHERE \(condition)")
        await connection.close()
        var orders: [Value: [String: Value]] = [:]
        for row in 0..<result.count {
            let text = { (column: Int) -> Value in result[row, column].map { .string($0) } ?? .null }
            orders[text(0)] = [
                "_id": text(0), "store": text(1), "title": text(2), "size": result.int(row, 3).map { .int($0) } ?? .null, "secret": text(4),
            ]
        }
        return orders
    }
}
