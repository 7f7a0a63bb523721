import GatewayTestSupport
import SluiceCore
import Testing

/// A bad subscription set fails its version alone: the view before stays, and a later good set completes.
@Suite struct `A gateway that is sent bad queries` {
    private static let cases: [(type: String, query: String, code: ErrorCode)] = [
        ("Order", "size >>> 3", .querySyntax),
        ("Order", "store == 'north' AND", .querySyntax),
        ("Order", "store == 'north' AND weight > 3", .queryUnknownProperty),
        ("Order", "store == 'north' AND size == 'large'", .queryTypeMismatch),
        ("Order", "store == 'north' AND secret == 'x'", .queryNotQueryable),
        ("Order", "size > 3", .queryIndexedFieldMissing),
        ("Order", "store == 'north' SORT(size ASC)", .querySort),
        ("Order", "store == 'north' LIMIT(3)", .queryLimit),
        ("Order", "store == 'north' DISTINCT(title)", .queryDistinct),
        ("Order", "store == 'north' AND title == store", .queryTwoFields),
        ("Nonsense", "TRUEPREDICATE", .querySubscribedTypeUnknown),
        ("Reading", "TRUEPREDICATE", .queryAsymmetric),
        ("Place", "TRUEPREDICATE", .queryEmbedded),
        ("Order", "store == 'north' AND title == '" + String(repeating: "x", count: Limits.queryBytes) + "'", .queryTooLarge),
        (
            "Order", "store == 'north' AND " + String(repeating: "(", count: 200) + "size == 1" + String(repeating: ")", count: 200),
            .querySyntax
        ),
    ]

    @Test func `Scenarios 1, 6, 7: tells which version failed and why, keeps the view, and takes a later set`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1), ('s1', 'south', 1)")
            try await gateway.besideHealthySession {
                let session = try await gateway.openSession(["Order", "Tag", "Reading"])
                try await session.subscribe(1, [("Order", "store == 'north'")])
                #expect(session.keys("Order") == ["n1"])
                var version: UInt64 = 1
                for bad in Self.cases {
                    version += 1
                    try await session.sendSubscribe(version, [(bad.type, bad.query)])
                    try await session.receive { $0.queryErrors.last?.version == version }
                    #expect(session.queryErrors.last?.error.code == bad.code, "\(bad.query.prefix(80))")
                    #expect(session.completed == 1)
                }
                // The view of version 1 is live.
                try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n2', 'north', 1), ('s2', 'south', 1)")
                try await session.receive { $0.keys("Order") == ["n1", "n2"] }
                try await session.subscribe(version + 1, [("Order", "store == 'south' AND size == 1")])
                #expect(session.keys("Order") == ["s1", "s2"])
            }
        }
    }

    /// A class with a property of each kind that forms of queries are about, and without the indexed field.
    private static let parcels: [String: String] = [
        ShopApp.table("parcels", "schema"): """
        {
            "title": "Parcel", "bsonType": "object", "required": ["_id", "size"],
            "properties": {
                "_id": { "bsonType": "string" }, "title": { "bsonType": "string" }, "size": { "bsonType": "long" },
                "labels": { "bsonType": "array", "items": { "bsonType": "string" } },
                "scores": { "bsonType": "array", "items": { "bsonType": "long" } },
                "spot": {
                    "title": "Spot", "bsonType": "object", "required": ["type", "coordinates"],
                    "properties": {
                        "type": { "bsonType": "string" }, "coordinates": { "bsonType": "array", "items": { "bsonType": "double" } }
                    }
                },
                "order": { "bsonType": "string" }
            }
        }
        """,
        ShopApp.table("parcels", "relationships"): """
        { "order": { "ref": "#/relationship/postgres/public/orders", "source_key": "order", "foreign_key": "_id", "is_list": false } }
        """,
        ShopApp.table("parcels", "rules"): ShopApp.files[ShopApp.table("tags", "rules")]?.replacing("\"tags\"", with: "\"parcels\"")
            ?? "",
        "sync/config.json": ShopApp.files["sync/config.json"]?.replacing(
            #""size"]"#, with: #""size", "labels", "scores", "spot"]"#) ?? "",
    ]

    private static func withParcels(_ body: @escaping @Sendable (TestSession) async throws -> Void) async throws {
        let table = """
            CREATE TABLE parcels (
                _id text PRIMARY KEY, title text, size bigint NOT NULL, labels text[] NOT NULL DEFAULT '{}',
                scores bigint[] NOT NULL DEFAULT '{}', spot jsonb, "order" text);
            INSERT INTO parcels (_id, title, size, labels, scores, spot, "order") VALUES
                ('a', 'Alpha', 1, '{red,blue}', '{1,2}', '{"type": "Point", "coordinates": [2.35, 48.85]}', 'n1'),
                ('b', 'Beta', 2, '{red}', '{5}', '{"type": "Point", "coordinates": [12.5, 41.9]}', NULL),
                ('c', 'alphabet', 3, '{}', '{}', NULL, NULL);
            """
        try await RunningGateway.deploy(ShopApp.tables + table) { deployment in
            try await deployment.run(ShopApp.files.merging(Self.parcels) { $1 }) { gateway in
                let session = try await gateway.openSession(["Parcel", "Order"])
                try await session.subscribe(1, [("Parcel", "TRUEPREDICATE")])
                #expect(session.keys("Parcel") == ["a", "b", "c"])
                try await body(session)
                session.close()
            }
        }
    }

    /// What subscriptions do not have, and what of it the message names.
    private static let refused: [(query: String, code: ErrorCode, names: String)] = [
        ("size > 0 SORT(size ASC)", .querySort, "SORT"),
        ("size > 0 LIMIT(3)", .queryLimit, "LIMIT"),
        ("size > 0 DISTINCT(title)", .queryDistinct, "DISTINCT"),
        ("order.title == 'x'", .queryLinkPath, "a path through \"order\", which is a link"),
        ("spot.type == 'Point'", .queryLinkPath, "a path through \"spot\", which is an embedded object"),
        ("labels == {'red', 'blue'}", .queryTwoLists, "comparing two lists"),
        ("{'red'} IN labels", .queryTwoLists, "comparing two lists"),
        ("ANY labels IN {'red', 'blue'}", .queryTwoLists, "comparing two lists"),
        ("ANY {'red'} == ANY labels", .queryTwoLists, "comparing two lists"),
        ("labels == labels", .queryTwoLists, "comparing two lists"),
        ("title.@count > 0", .queryCount, "@count of \"title\""),
        ("order.@count == 1", .queryCount, "@count of \"order\""),
        ("scores.@sum > 1", .queryAggregate, "@sum"),
        ("scores.@avg > 1", .queryAggregate, "@avg"),
        ("scores.@min > 1", .queryAggregate, "@min"),
        ("scores.@max > 1", .queryAggregate, "@max"),
        ("SUBQUERY(labels, $x, $x.a == 1).@count > 0", .querySubquery, "SUBQUERY"),
        ("@links.Parcel.order.title == 'x'", .queryBacklinks, "@links"),
        ("@links.@count > 0", .queryBacklinks, "@links"),
        ("order.@links.Parcel.order.@count > 0", .queryBacklinks, "@links"),
        ("title GEOWITHIN geoBox([0, 40], [10, 50])", .queryGeospatial, "GEOWITHIN on \"title\""),
        ("title TEXT 'x'", .queryFullText, "TEXT"),
        ("size + 1 == 2", .queryArithmetic, "arithmetic"),
        ("title == order.title", .queryLinkPath, "a path through \"order\""),
        ("title == labels", .queryTwoFields, "comparing two fields"),
        ("title.@type == 'string'", .queryValueType, "@type"),
        ("labels[0] == 'red'", .queryElement, "one element of \"labels\""),
        ("order == obj('Order', 'n1')", .queryLinkValue, "comparing links"),
        ("$K0 == 1", .queryPathArgument, "a path given as an argument"),
        ("spot == nil", .queryNotQueryable, "key \"spot\" is not a queryable field: it is an embedded object"),
    ]

    /// What can be subscribed to in its form and means nothing, and what of it the message says.
    private static let meaningless: [(query: String, code: ErrorCode, says: String)] = [
        ("spot GEOWITHIN geoBox([0, 50], [10, 40])", .queryShape, "Invalid region in GEOWITHIN query"),
        ("spot GEOWITHIN geoCircle([181, 0], 1)", .queryShape, "out of bounds"),
        ("'Alpha' CONTAINS title", .queryUnsupported, "'CONTAINS' with a constant on its left is not supported in a query on 'Parcel'"),
        ("title == $0", .queryArgument, "$0"),
    ]

    @Test func `Scenario 6: is told by name what of a query subscriptions do not have`() async throws {
        try await Self.withParcels { session in
            for (index, bad) in Self.refused.enumerated() {
                let version = UInt64(index) + 2
                try await session.sendSubscribe(version, [("Parcel", bad.query)])
                try await session.receive { $0.queryErrors.last?.version == version || $0.completed == version }
                let error = try #require(session.queryErrors.last?.error, "\(bad.query)")
                #expect(session.completed == 1 && error.code == bad.code, "\(bad.query): \(error)")
                #expect(error.message.contains("table \"Parcel\"") && error.message.contains(bad.names), "\(bad.query): \(error)")
            }
            for (index, bad) in Self.meaningless.enumerated() {
                let version = UInt64(Self.refused.count + index) + 2
                try await session.sendSubscribe(version, [("Parcel", bad.query)])
                try await session.receive { $0.queryErrors.last?.version == version || $0.completed == version }
                let error = try #require(session.queryErrors.last?.error, "\(bad.query)")
                #expect(session.completed == 1 && error.code == bad.code && error.message.contains(bad.says), "\(bad.query): \(error)")
            }
            #expect(session.keys("Parcel") == ["a", "b", "c"] && session.error == nil)
        }
    }

    /// What they have, and the objects that it is true of.
    private static let taken: [(query: String, keys: Set<String>)] = [
        ("'red' IN labels", ["a", "b"]),
        ("ANY labels == 'blue'", ["a"]),
        ("NONE labels == 'red'", ["c"]),
        ("ALL labels == 'red'", ["b", "c"]),
        ("ANY scores > 4", ["b"]),
        ("labels.@count == 2", ["a"]),
        ("scores.@size == 0", ["c"]),
        ("size IN {1, 3}", ["a", "c"]),
        ("NOT title IN {'Alpha', 'Beta'}", ["c"]),
        ("size BETWEEN {2, 3}", ["b", "c"]),
        ("title BEGINSWITH 'Al'", ["a"]),
        ("title BEGINSWITH[c] 'al'", ["a", "c"]),
        ("title ENDSWITH 'ta'", ["b"]),
        ("title CONTAINS 'pha'", ["a", "c"]),
        ("title LIKE '?lpha'", ["a"]),
        ("spot GEOWITHIN geoBox([0, 40], [10, 50])", ["a"]),
        ("spot GEOWITHIN geoCircle([12.5, 41.9], 0.01)", ["b"]),
        ("spot GEOWITHIN geoPolygon({[0, 40], [20, 40], [20, 60], [0, 60], [0, 40]})", ["a", "b"]),
    ]

    @Test func `Scenario 6: takes what they have, and brings the objects that it is true of`() async throws {
        try await Self.withParcels { session in
            for (index, good) in Self.taken.enumerated() {
                try await session.subscribe(UInt64(index) + 2, [("Parcel", good.query)])
                #expect(session.keys("Parcel") == good.keys, "\(good.query)")
            }
        }
    }

    @Test func `Scenario 7: a set may have so many bytes of queries together, however many they are`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) VALUES ('n1', 'north', 1)")
            let session = try await gateway.openSession()
            try await session.subscribe(1, [("Order", "store == 'north'")])
            /// Three queries, none of which is too large.
            func set(of bytes: Int) -> [(type: String, text: String)] {
                let sizes = [bytes / 3, bytes / 3, bytes - bytes / 3 * 2]
                return sizes.map { size in
                    let head = "store == 'south' AND title == '"
                    return ("Order", head + String(repeating: "x", count: size - head.utf8.count - 1) + "'")
                }
            }
            try await session.sendSubscribe(2, set(of: Limits.queryBytes + 1))
            try await session.receive { !$0.queryErrors.isEmpty }
            let error = try #require(session.queryErrors.first)
            #expect(error.version == 2 && error.error.code == .queryTooLarge, "\(error)")
            #expect(error.error.message.contains("\(Limits.queryBytes + 1) bytes"), "\(error.error)")
            #expect(session.completed == 1 && session.keys("Order") == ["n1"])
            try await session.subscribe(3, set(of: Limits.queryBytes))
            #expect(session.keys("Order").isEmpty)
            session.close()
        }
    }

    @Test func `goes on with the bootstrap under way`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, size) SELECT 'n' || g, 'north', g FROM generate_series(1, 20000) g")
            let session = try await gateway.openSession()
            try await session.sendSubscribe(1, [("Order", "store == 'north'")])
            try await session.sendSubscribe(2, [("Order", "size >>> 3")])
            try await session.receive { $0.completed == 1 && $0.queryErrors.map(\.version) == [2] }
            #expect(session.keys("Order").count == 20_000)
            session.close()
        }
    }
}
