import GatewayTestSupport
import SluiceCore
import SluiceGateway
import SluiceWire
import TestSupport
import Testing

/// What devices write and tables would hold, and nobody could read; and what tables cannot hold.
@Suite(.timeLimit(.minutes(5))) struct `A value that does not fit its class` {
    private static let tables = """
        CREATE TABLE orders (_id text PRIMARY KEY, store text NOT NULL, title text, size bigint NOT NULL DEFAULT 0, secret text);
        CREATE TABLE shapes (_id text PRIMARY KEY, title text, rank bigint, any_value jsonb, place jsonb, places jsonb, named jsonb);
        """

    private static var files: [String: String] {
        let place = """
            { "title": "Place", "bsonType": "object", "required": ["x", "y"],
              "properties": { "x": { "bsonType": "long" }, "y": { "bsonType": "long" }, "note": { "bsonType": "string" } } }
            """
        var files = ShopApp.files.filter { !$0.key.contains("/tags/") && !$0.key.contains("/readings/") }
        files["sync/config.json"] = ShopApp.files["sync/config.json"]?.replacing("[\"Reading\"]", with: "[]")
        files[ShopApp.table("shapes", "schema")] = """
            {
                "title": "Shape", "bsonType": "object", "required": ["_id", "rank"],
                "properties": {
                    "_id": { "bsonType": "string" }, "title": { "bsonType": "string" }, "rank": { "bsonType": "long" },
                    "any_value": { "bsonType": "mixed" }, "place": \(place),
                    "places": { "bsonType": "array", "items": \(place) }
                }
            }
            """
        files[ShopApp.table("shapes", "rules")] = ShopApp.files[ShopApp.table("tags", "rules")]?.replacing("\"tags\"", with: "\"shapes\"")
        return files
    }

    private static let key = ObjectKey(type: "Shape", key: .string("s"))

    private static func set(_ name: String, _ value: Value) -> ObjectChange { ObjectChange(object: key, kind: .set, values: [name: value]) }

    private static func edit(_ name: String, _ path: [EditStep], _ action: Edit.Action) -> ObjectChange {
        ObjectChange(object: key, kind: .set, edits: [Edit(name, path, action)])
    }

    private static func place(_ fields: [String: Value]) -> Value { .dictionary(["x": .int(1), "y": .int(2)].merging(fields) { $1 }) }

    /// What a device that means harm may say, and the field at fault.
    private static var writes: [(field: String, change: ObjectChange)] {
        let deep = (0..<Limits.nestingDepth).reduce(Value.list([])) { list, _ in .list([list]) }
        return [
            ("place", set("place", place(["x": .string("text")]))),
            ("place", set("place", place(["z": .int(1)]))),
            ("place", edit("place", [.key("x")], .set(.null))),
            ("places", set("places", .list([place([:]), .null]))),
            ("places", set("places", .list([place(["y": .null])]))),
            ("places", edit("places", [], .insert(.null, after: nil, tag: 1))),
            ("places", edit("places", [], .insert(.dictionary(["x": .int(1), "note": .int(7)]), after: nil, tag: 2))),
            ("any_value", set("any_value", deep)),
            ("rank", set("rank", .null)),
        ]
    }

    @Test func `is undone, whatever way it takes, and the object stays with everybody`() async throws {
        try await RunningGateway.deploy(Self.tables) { deployment in
            try await deployment.run(Self.files) { gateway in
                try await gateway.sql(#"INSERT INTO shapes VALUES ('s', 'first', 1, NULL, '{"x": 1, "y": 2}', '[]')"#)
                let (writer, reader) = (try await gateway.openSession(["Shape"]), try await gateway.openSession(["Shape"]))
                for session in [writer, reader] { try await session.subscribe(1, [("Shape", "TRUEPREDICATE")]) }
                var number: UInt64 = 0
                for (field, change) in Self.writes {
                    number += 1
                    #expect(try await writer.isRefused(number, change), "\(change)")
                    let report = try #require(writer.compensations.last)
                    #expect(report.fields == [field] && report.cause == .database && report.error.code == .compensatingWrite, "\(report)")
                    #expect(report.error.message.contains("Shape.\(field)"), "\(report)")
                }
                // Of an object that is made, and without touching the others of the changeset.
                let bad = ObjectChange(
                    object: ObjectKey(type: "Shape", key: .string("bad")), kind: .create, values: ["rank": .null, "title": .string("bad")])
                let good = ObjectChange(
                    object: ObjectKey(type: "Shape", key: .string("good")), kind: .create,
                    values: ["place": .dictionary(["note": .string("half")])])
                try await writer.upload(number + 1, [bad, good])
                try await writer.receive { $0.acknowledged == number + 1 }
                try await writer.upload(number + 2, [Self.set("title", .string("last"))])
                for session in [writer, reader] {
                    try await session.receive { $0.rows["Shape"]?[.string("s")]?["title"] == .string("last") }
                    #expect(session.rows["Shape"]?[.string("s")]?["place"] == Self.place([:]) && session.keys("Shape") == ["s", "good"])
                    let made = Value.dictionary(["x": .int(0), "y": .int(0), "note": .string("half")])
                    #expect(session.rows["Shape"]?[.string("good")]?["place"] == made)
                }
                #expect(try await gateway.count("SELECT count(*) FROM sluice.quarantine") == 0)
                // What a class must have cannot be taken out: that contradicts the schema.
                try await writer.upload(number + 3, [Self.edit("place", [.key("x")], .remove)])
                #expect(try await writer.failure().code == .badChangeset)
                reader.close()
            }
        }
    }

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
