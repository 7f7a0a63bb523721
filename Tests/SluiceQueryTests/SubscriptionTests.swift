import SluiceCore
import SluiceQuery
import TestSupport
import Testing

/// What a client may subscribe to.
struct SubscriptionTests {
    static let fields = QueryableFields(
        global: ["name", "number", "flag"], byType: ["Sample": ["tags", "scores", "price", "at", "friend", "blend", "place", "extra"]])

    private func check(
        _ text: String, fields: QueryableFields = fields, type: ObjectType = Samples.type, schema: Schema = Samples.schema
    ) throws -> Predicate {
        try Subscription.check(type: type, query: try Query.parse(text), in: schema, fields: fields)
    }

    private func failure(
        _ text: String, fields: QueryableFields = fields, type: ObjectType = Samples.type, schema: Schema = Samples.schema
    ) -> SluiceError? {
        do {
            _ = try check(text, fields: fields, type: type, schema: schema)
            Issue.record("'\(text)' was accepted")
            return nil
        } catch { return error as? SluiceError }
    }

    @Test(arguments: [
        "TRUEPREDICATE", "FALSEPREDICATE", "_id == oid(0123456789abcdef01234567)", "name == 'x'",
        "number BETWEEN {1, 2} OR NOT flag == true",
        "name IN {'a', 'b'}", "name BEGINSWITH 'a' AND name ENDSWITH[c] 'b'", "name LIKE '*x*'", "name CONTAINS 'q'", "number == null",
        "'x' IN tags", "ANY scores > 3", "NONE tags == 'x'", "tags.@count > 2", "scores.@size == 0", "price < 1.5", "at > T0:0",
        "place GEOWITHIN geoBox([0, 0], [1, 1])", "NOT place GEOWITHIN geoCircle([0, 0], 0.5) AND number == 1",
        "place GEOWITHIN geoPolygon({[0, 0], [4, 0], [4, 4], [0, 0]}, {[1, 1], [2, 1], [2, 2], [1, 1]})",
    ])
    func `what subscriptions have is accepted`(_ text: String) throws {
        #expect(try check(text) == Query.parse(text).predicate(on: Samples.type, in: Samples.schema))
    }

    /// Every construct of rql.md section 6 that subscriptions do not have: its code, what the text names, and the column.
    static let refusals: [(text: String, code: ErrorCode, names: String, column: Int)] = [
        ("scores.@max > 1", .queryAggregate, "@max", 8),
        ("scores.@min > 1", .queryAggregate, "@min", 8),
        ("flag == true AND scores.@sum > 1", .queryAggregate, "@sum", 25),
        ("1 < scores.@avg", .queryAggregate, "@avg", 12),
        ("name.@count > 1", .queryCount, "@count of \"name\"", 6),
        ("friend.@count == 1", .queryCount, "@count of \"friend\"", 8),
        ("extra.@size == 1", .queryCount, "@count of \"extra\"", 7),
        ("place[SIZE] == 1", .queryCount, "@count of \"place\"", 6),
        ("name == 'x' SORT(name ASC)", .querySort, "SORT", 13),
        ("name == 'x' DISTINCT(name)", .queryDistinct, "DISTINCT", 13),
        ("name == 'x' LIMIT(5)", .queryLimit, "LIMIT", 13),
        ("{'a'} IN tags", .queryTwoLists, "two lists", 7),
        ("tags == {'a', 'b'}", .queryTwoLists, "two lists", 6),
        ("tags IN {'a', 'b'}", .queryTwoLists, "two lists", 6),
        ("ANY tags IN {'a', 'b'}", .queryTwoLists, "two lists", 10),
        ("ANY {'a'} != ANY tags", .queryTwoLists, "two lists", 11),
        ("tags == tags", .queryTwoLists, "two lists", 6),
        ("friend.name == 'x'", .queryLinkPath, "\"friend\", which is a link", 8),
        ("friend.friend.friend.name == 'x'", .queryLinkPath, "\"friend\"", 8),
        ("place.city == 'x'", .queryLinkPath, "\"place\", which is an embedded object", 7),
        ("@links.Sample.friend.name == 'x'", .queryBacklinks, "@links", 1),
        ("@links.@count == 0", .queryBacklinks, "@links", 1),
        ("friend.@links.Sample.friend.@count == 0", .queryBacklinks, "@links", 8),
        ("SUBQUERY(tags, $x, $x.a == 1).@count > 0", .querySubquery, "SUBQUERY", 1),
        ("name GEOWITHIN geoBox([0, 0], [1, 1])", .queryGeospatial, "GEOWITHIN on \"name\"", 6),
        ("friend GEOWITHIN $0", .queryGeospatial, "GEOWITHIN on \"friend\"", 8),
        ("friend.place GEOWITHIN geoBox([0, 0], [1, 1])", .queryLinkPath, "\"friend\", which is a link", 8),
        ("place.x GEOWITHIN $0", .queryLinkPath, "\"place\", which is an embedded object", 7),
        ("name TEXT 'x'", .queryFullText, "TEXT", 6),
        ("number + 1 == 2", .queryArithmetic, "arithmetic", 1),
        ("2 == number * 3", .queryArithmetic, "arithmetic", 6),
        ("number == number", .queryTwoFields, "two fields", 8),
        ("number < tags.@count", .queryTwoFields, "two fields", 8),
        ("name IN tags", .queryTwoFields, "two fields", 6),
        ("name.@type == 'string'", .queryValueType, "@type", 6),
        ("friend.name.@type == 'string'", .queryLinkPath, "\"friend\"", 8),
        ("tags[0] == 'a'", .queryElement, "one element of \"tags\"", 5),
        ("tags[FIRST] == 'a'", .queryElement, "one element of \"tags\"", 5),
        ("extra['k'] == 'a'", .queryElement, "one element of \"extra\"", 6),
        ("extra.k == 'a'", .queryElement, "one element of \"extra\"", 7),
        ("ANY extra.@keys == 'a'", .queryElement, "one element of \"extra\"", 11),
        ("extra[*] == 'a'", .queryElement, "one element of \"extra\"", 6),
        ("blend.a[3] == 'a'", .queryElement, "one element of \"blend\"", 7),
        ("@values == 'a'", .queryElement, "@values", 1),
        ("friend == obj('Sample', oid(0123456789abcdef01234567))", .queryLinkValue, "links", 11),
        ("friend IN {obj('Sample', 1)}", .queryLinkValue, "links", 12),
        ("friend == L1:2", .queryLinkValue, "links", 11),
        ("$K0 == 1", .queryPathArgument, "argument", 1),
    ]

    @Test(arguments: refusals)
    func `what only local queries have is refused with its own code, name and place`(
        _ refusal: (text: String, code: ErrorCode, names: String, column: Int)
    ) throws {
        let error = try #require(failure(refusal.text))
        #expect(error.code == refusal.code, "\(error)")
        #expect(error.message.hasPrefix("line 1, column \(refusal.column): "), "\(error)")
        #expect(error.message.contains("Invalid query: unsupported query for table \"Sample\": "))
        #expect(error.message.contains(refusal.names), "\(error)")
        #expect(!error.code.fix.isEmpty)
    }

    @Test
    func `every code for a refused construct is in the table above`() {
        let produced = Set(SubscriptionTests.refusals.map(\.code.rawValue))
        let codes = ErrorCode.allCases.map(\.rawValue).filter { (320..<350).contains($0) && $0 != ErrorCode.queryEmbedded.rawValue }
        #expect(Set(codes) == produced, "an embedded type has a test of its own")
    }

    @Test
    func `lists and links that come as arguments are refused alike`() throws {
        func code(_ text: String, _ argument: Value) throws -> ErrorCode? {
            let query = try Query.parse(text)
            let error = #expect(throws: SluiceError.self) {
                try Subscription.check(
                    type: Samples.type, query: query, arguments: [argument], in: Samples.schema, fields: SubscriptionTests.fields)
            }
            return error?.code
        }
        #expect(try code("tags IN $0", .list([.string("a")])) == .queryTwoLists)
        #expect(try code("friend == $0", .link(type: "Sample", key: .int(1))) == .queryLinkValue)
    }

    @Test func `a place can be subscribed to where it is a point and queryable`() throws {
        let text = "place GEOWITHIN geoBox([0, 0], [1, 1])"
        #expect(try #require(failure(text, fields: QueryableFields())).code == .queryNotQueryable)
        #expect(try #require(failure("place GEOWITHIN geoBox([0, 2], [1, 1])")).code == .queryShape)
        let place = ObjectType(name: "Place", kind: .embedded, properties: [Property(id: 1, name: "x", type: .int)], primaryKey: nil)
        #expect(try #require(failure(text, schema: Schema([Samples.type, place]))).code == .queryGeospatial)
        func ring(_ vertices: Int) -> String {
            let steps = (0..<vertices - 1).map { "[\(10 + $0 % 2).\($0), 10.0]" }
            return "place GEOWITHIN geoPolygon({" + (steps + ["[10.0, 10.0]"]).joined(separator: ", ") + "})"
        }
        #expect(try #require(failure(ring(Limits.shapeVertices + 1))).code == .queryTooLarge)
        #expect(try #require(failure(ring(Limits.shapeVertices))).code == .queryShape, "it crosses itself")
        let circles = Array(repeating: "place GEOWITHIN geoCircle([0, 0], 1)", count: Limits.shapeVertices / 4 + 1)
        _ = try check(circles.dropFirst().joined(separator: " OR "))
        #expect(try #require(failure(circles.joined(separator: " OR "))).code == .queryTooLarge)
    }

    @Test
    func `a field that is not queryable is named with its table`() throws {
        let error = try #require(failure("name == 'x' AND (flag == true OR ratio > 1)"))
        #expect(error.code == .queryNotQueryable)
        #expect(error.message.contains("Invalid query: unsupported query for table \"Sample\": key \"ratio\" is not a queryable field"))
        #expect(error.message.contains("line 1, column 34"))
    }

    @Test(arguments: ["friend == null", "blend == 1", "place == null", "extra == 1"])
    func `fields that cannot be queryable are refused even when configured`(_ text: String) throws {
        #expect(try #require(failure(text)).code == .queryNotQueryable)
    }

    @Test
    func `a misspelt field is unknown rather than not queryable`() throws {
        let error = try #require(failure("flag == true AND nme == 'x'"))
        #expect(error.code == .queryUnknownProperty)
        #expect(error.fix == "Did you mean 'name'?")
        #expect(error.message.hasPrefix("line 1, column 18: "))
    }

    private static let indexed = QueryableFields(global: ["number", "other", "name"], indexed: "store")

    @Test(arguments: [
        "store == 'a'", "'a' == store", "store IN {'a', 'b', 'c'}", "store == 'a' AND number > 1",
        "number > 1 AND store == 'a' AND other == 2",
        "store IN {'a', 'b'} AND (number < 5 OR other < 10)", "(store == 'a') AND (number == 1)", "(number == 1 AND (store == 'a'))",
        "store == 'a' AND store > 'A'", "store == 'a' AND FALSEPREDICATE", "store = null", "store IN {'a'}", "store == ANY {'a', 'b'}",
        "store == 'a' AND NOT (number == 1)", "store == 'a' AND (store == 'b' OR number == 1)",
    ])
    func `a query that pins the indexed field at the top level is accepted`(_ text: String) throws {
        #expect(try check(text, fields: SubscriptionTests.indexed).type.name == "Sample")
    }

    @Test(arguments: [
        "TRUEPREDICATE", "FALSEPREDICATE", "number == 1", "store == 'a' OR store == 'b'", "store == 'a' OR number == 1",
        "store > 'a' AND number > 2",
        "store != 'a'", "store == 'a' AND number < 5 OR other < 10", "NOT store == 'a'", "NOT (NOT store == 'a')", "store BEGINSWITH 'a'",
        "store LIKE 'a'",
        "store BETWEEN {'a', 'b'}", "store ==[c] 'a'", "store IN[c] {'a'}", "(store == 'a' OR number == 1) AND other == 2",
        "store == ALL {'a'}", "store >= 'a' AND store <= 'a'",
    ])
    func `a query that does not pin the indexed field is refused`(_ text: String) throws {
        let error = try #require(failure(text, fields: SubscriptionTests.indexed))
        #expect(error.code == .queryIndexedFieldMissing)
        #expect(error.message.contains("\"store\"") && error.message.contains("\"Sample\""))
    }

    @Test
    func `a type without the indexed field needs no pin`() throws {
        let type = ObjectType(
            name: "Other", properties: [Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "number", type: .int)])
        #expect(try check("number > 1", fields: SubscriptionTests.indexed, type: type).type.name == "Other")
    }

    @Test
    func `asymmetric and embedded types cannot be subscribed to`() throws {
        let asymmetric = ObjectType(name: "Reading", kind: .asymmetric, properties: Samples.type.properties)
        #expect(try #require(failure("TRUEPREDICATE", type: asymmetric)).code == .queryAsymmetric)
        let embedded = ObjectType(name: "Place", kind: .embedded, properties: Samples.type.properties)
        #expect(try #require(failure("TRUEPREDICATE", type: embedded)).code == .queryEmbedded)
    }

    @Test
    func `limits on size, comparisons and lists have an error of their own`() throws {
        let long = "name == '\(String(repeating: "x", count: Limits.queryBytes))'"
        #expect(try #require(failure(long)).code == .queryTooLarge)
        let leaves = (0...Limits.queryLeaves).map { "number==\($0)" }.joined(separator: "||")
        #expect(try #require(failure(leaves)).code == .queryTooLarge)
        let list = "number IN {" + (0...Limits.inListValues).map { "\($0)" }.joined(separator: ",") + "}"
        #expect(try #require(failure(list)).code == .queryTooLarge)
        let spread = "number != {" + (0..<9_000).map { "\($0)" }.joined(separator: ",") + "}"
        #expect(try #require(failure(spread)).code == .queryTooLarge)
        let argument = #expect(throws: SluiceError.self) {
            try Subscription.check(
                type: Samples.type, query: try Query.parse("number IN $0"),
                arguments: [.list((0...Limits.inListValues).map { .int(Int64($0)) })], in: Samples.schema, fields: SubscriptionTests.fields)
        }
        #expect(argument?.code == .queryTooLarge)
    }

    @Test
    func `arguments count for size, lists each time they are used, and patterns are short`() throws {
        func code(_ text: String, _ arguments: [Value] = []) throws -> ErrorCode? {
            let query = try Query.parse(text)
            do throws(SluiceError) {
                _ = try Subscription.check(
                    type: Samples.type, query: query, arguments: arguments, in: Samples.schema, fields: SubscriptionTests.fields)
                return nil
            } catch { return error.code }
        }
        let long = Value.string(String(repeating: "x", count: Limits.queryBytes))
        #expect(try code("name == $0", [long]) == .queryTooLarge)
        let list = Value.list((0..<9_000).map { .int($0) })
        #expect(try code("number IN $0", [list]) == nil)
        #expect(try code((0..<8).map { _ in "number IN $0" }.joined(separator: " OR "), [list]) == .queryTooLarge)
        for word in ["LIKE", "CONTAINS"] {
            let longest = String(repeating: "a", count: Limits.patternBytes)
            #expect(try code("name \(word) '\(longest)'") == nil)
            #expect(try code("name \(word) '\(longest)a'") == .queryTooLarge)
            #expect(try code("name \(word) $0", [.string(longest + "a")]) == .queryTooLarge)
            let many = (0...Limits.queryPatternBytes / Limits.patternBytes).map { _ in "name \(word) '\(longest)'" }
            #expect(try code(many.joined(separator: " OR ")) == .queryTooLarge)
        }
        #expect(try code("name BEGINSWITH $0", [.string(String(repeating: "a", count: 5_000))]) == nil)
    }

    @Test
    func `a set is bounded as a whole`() throws {
        let half = String(repeating: "x", count: Limits.queryBytes / 2)
        try Subscription.checkSize(ofSet: [half, half])
        let error = #expect(throws: SluiceError.self) { try Subscription.checkSize(ofSet: [half, half, "x"]) }
        #expect(error?.code == .queryTooLarge)
    }

    @Test
    func `the names of a query are listed for development mode`() throws {
        let query = try Query.parse("number == 1 AND (ANY tags == 'x' OR NOT number > 3 OR name CONTAINS 'x')")
        #expect(Subscription.names(in: query) == ["number", "tags", "name"])
    }
}
