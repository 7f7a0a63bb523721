import SluiceCore
import SluiceGateway
import SluiceWire
import TestSupport
import Testing

/// What devices write and tables would hold, and nobody could read; and what tables cannot hold.
@Suite(.timeLimit(.minutes(5))) struct `A value that does not fit its class` {
    @Test func `as its key takes nothing else of the changeset with it, and the next one follows`() async throws {
        var generator = SplitMix64(seed: 3)
        let letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
        // No index takes it, and no compression makes it small.
        let long = String((0..<6_000).map { _ in letters.randomElement(using: &generator) ?? "a" })
        try await RunningGateway.with { gateway in
            let session = try await gateway.openSession()
            try await session.subscribe(1, [("Order", "store == 'north'")])
            let values: [String: Value] = ["store": .string("north"), "size": .int(1)]
            var number: UInt64 = 0
            for key in ["a\0b", long] {
                try await session.upload(number + 1, [key, "good \(number)"].map { TestSession.order($0, values) })
                try await session.upload(number + 2, [TestSession.order(key, [:], .delete)])
                try await session.upload(number + 3, [TestSession.order("next \(number)", values)])
                number += 3
                try await session.receive { $0.acknowledged == number }
                #expect(session.compensations.contains { $0.object.key == .string(key) && $0.cause == .database }, "\(key.prefix(9))")
            }
            try await session.receive { $0.keys("Order") == ["good 0", "next 0", "good 3", "next 3"] }
            #expect(session.compensations.allSatisfy { $0.object.key == .string("a\0b") || $0.object.key == .string(long) })
            #expect(session.error == nil)
        }
    }

    @Test func `as its class has no use is denied to a role whose plugin's predicate is none, and other classes are not`() async throws {
        try await RunningGateway.with(files: FaultyApp.files, plugins: ["FaultyC"], isDevelopment: true) { gateway in
            let account = try await gateway.account(customData: #"{ "word": "do-misbind" }"#)
            let session = try await gateway.session(token: account.token)
            try await session.hello(["Order", "Store"])
            try await session.subscribe(1, [("Order", "store == 'north'"), ("Store", "TRUEPREDICATE")])
            let store = ObjectChange(
                object: ObjectKey(type: "Store", key: .string("one")), kind: .create, values: ["name": .string("One"), "size": .int(2)])
            for number in [1, 2] as [UInt64] {
                let order = TestSession.order("o\(number)", ["store": .string("north"), "size": .int(1)])
                try await session.upload(number, number == 1 ? [order, store] : [order])
                try await session.receive { $0.acknowledged == number }
            }
            try await session.receive { $0.keys("Store") == ["one"] }
            #expect(session.compensations.map(\.cause) == [.pluginFailed, .pluginFailed] && session.error == nil)
            #expect(session.compensations.allSatisfy { !$0.error.message.contains("nothing") })
            let rules = try await gateway.texts("SELECT rule FROM sluice.rejected_write")
            #expect(rules.count == 2 && rules.allSatisfy { $0.contains("nothing == 1") }, "\(rules)")
            #expect(try await gateway.count("SELECT count(*) FROM orders") == 0)
        }
    }

    @Test func `for the database counts once with a plugin that counts, and so do those that fit`() async throws {
        let limits =
            #"{ "plugins": [{ "file": "libRateLimits.so", "config": { "types": { "Order": { "writes_per_minute": 1, "burst": 10 } } } }] }"#
        try await RunningGateway.with(files: ["plugins.json": limits]) { gateway in
            try await gateway.sql("ALTER TABLE orders ADD CHECK (size < 100)")
            let session = try await gateway.openSession()
            try await session.subscribe(1, [("Order", "store == 'north'")])
            let orders = (0..<10).map { number in
                TestSession.order("o\(number)", ["store": .string("north"), "size": .int(number % 5 == 4 ? 100 : 1)])
            }
            try await session.upload(1, orders)
            try await session.receive { $0.acknowledged == 1 }
            #expect(session.compensations.map(\.cause) == [.database, .database], "\(session.compensations)")
            try await session.receive { $0.keys("Order").count == 8 }
            // All ten are spent.
            #expect(try await session.isRefused(2, TestSession.order("more", ["store": .string("north"), "size": .int(1)])))
            #expect(session.compensations.last?.cause == .plugin)
        }
    }
}
