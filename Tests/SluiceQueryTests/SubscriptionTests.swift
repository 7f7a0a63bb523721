import SluiceCore
import SluiceQuery
import Testing

/// What a client may subscribe to.
struct SubscriptionTests {
    private static let fields = QueryableFields(
        global: ["name", "number", "flag"], byType: ["Sample": ["tags", "scores", "price", "at", "friend", "blend", "place", "extra"]])

    private func check(_ text: String, fields: QueryableFields = fields, type: ObjectType = Samples.type) throws -> Predicate {
        try Subscription.check(type: type, query: try Query.parse(text), fields: fields)
    }

    private func failure(_ text: String, fields: QueryableFields = fields, type: ObjectType = Samples.type) -> SluiceError? {
        do {
            _ = try check(text, fields: fields, type: type)
            Issue.record("'\(text)' was accepted")
            return nil
        } catch { return error as? SluiceError }
    }

    @Test(arguments: [
        "TRUEPREDICATE", "FALSEPREDICATE", "_id == oid(0123456789abcdef01234567)", "name == 'x'",
        "number BETWEEN {1, 2} OR NOT flag == true",
        "name IN {'a', 'b'}", "name BEGINSWITH 'a' AND name ENDSWITH[c] 'b'", "name LIKE '*x*'", "name CONTAINS 'q'", "number == null",
        "'x' IN tags", "ANY scores > 3", "NONE tags == 'x'", "tags.@count > 2", "scores.@size == 0", "price < 1.5", "at > T0:0",
    ])
    func `what subscriptions have is accepted`(_ text: String) throws {
        #expect(try check(text) == Query.parse(text).bind(to: Samples.type))
    }

    @Test(arguments: [
        "friend.name == 'x'", "scores.@max > 1", "scores.@min > 1", "scores.@sum > 1", "scores.@avg > 1", "name.@count > 1",
        "SUBQUERY(tags, $x, $x.a == 1).@count > 0", "@links.A.b == 1", "name == 'x' SORT(name ASC)", "name == 'x' DISTINCT(name)",
        "name == 'x' LIMIT(5)", "number + 1 == 2", "number == number", "name TEXT 'x'", "ANY {'a'} == ANY tags", "{'a'} IN tags",
        "tags IN {'a', 'b'}",
        "name.@type == 'string'", "place GEOWITHIN geoBox([0, 0], [1, 1])",
    ])
    func `what only local queries have is refused`(_ text: String) throws {
        let error = try #require(failure(text))
        #expect([.queryUnsupported, .queryNotQueryable].contains(error.code), "\(error)")
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
        #expect(try #require(failure("nme == 'x'")).code == .queryUnknownProperty)
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
        #expect(try #require(failure("TRUEPREDICATE", type: embedded)).code == .queryUnsupported)
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
                arguments: [.list((0...Limits.inListValues).map { .int(Int64($0)) })], fields: SubscriptionTests.fields)
        }
        #expect(argument?.code == .queryTooLarge)
    }

    @Test
    func `the names of a query are listed for development mode`() throws {
        let query = try Query.parse("number == 1 AND (ANY tags == 'x' OR NOT number > 3 OR name CONTAINS 'x')")
        #expect(Subscription.names(in: query) == ["number", "tags", "name"])
    }
}
