import SluiceCore
import SluiceQuery
import TestSupport
import Testing

/// Names, types, arguments, and the adaptation of constants.
struct BindingTests {
    private func bind(_ text: String, _ arguments: [Value] = []) throws -> Predicate {
        try Query.parse(text).predicate(on: Samples.type, in: Samples.schema, arguments: arguments)
    }

    private func failure(_ text: String, _ arguments: [Value] = []) -> SluiceError? {
        do {
            let predicate = try bind(text, arguments)
            Issue.record("'\(text)' became \(predicate.canonicalText)")
            return nil
        } catch { return error as? SluiceError }
    }

    @Test
    func `an unknown property is named with its class, its place and a suggestion`() throws {
        let error = try #require(failure("number == 1 AND nmae == 'x'"))
        #expect(error.code == .queryUnknownProperty)
        #expect(error.message.hasPrefix("line 1, column 17: 'Sample' has no property 'nmae'"))
        #expect(error.fix == "Did you mean 'name'?")
    }

    @Test(arguments: [
        ("number == 'x'", "type 'int'"), ("number == true", "type 'bool'"), ("name == 5", "type 'string'"), ("flag == 1", "type 'bool'"),
        ("price == 1E-9223372036854775808", "type 'decimal'"),
        ("price == 1E9223372036854775807", "type 'decimal'"), ("at == 5", "type 'date'"), ("owner == 'x'", "type 'uuid'"),
        ("_id == uuid(01234567-89ab-cdef-0123-456789abcdef)", "type 'objectId'"),
        ("data == 'x'", "type 'binary'"), ("name == binary('x')", "type 'string'"),
        ("number CONTAINS 'x'", "operator 'contains' against type 'int'"),
        ("name CONTAINS 5", "against type 'int', right side must be a string"), ("number == inf", "Infinity not supported for int"),
        ("number < nan", "NaN not supported for int"),
        ("1 == 2", "Cannot compare two constants"), ("1 IN {1, 2}", "Cannot compare two constants"), ("number IN 5", "must contain a list"),
        ("number IN other", "must contain a list. Found 'other'"), ("ANY number == 1", "following 'ANY' must contain a list"),
        ("number BETWEEN {1}", "exactly two"), ("number BETWEEN {1, 2, 3}", "exactly two"),
        ("ANY scores BETWEEN {1, 2}", "Only 'ALL' supported"),
        ("friend == 'x'", "type 'link'"), ("friend == obj('Place', 1)", "which links to type 'Sample'"),
        ("friend < obj('Sample', 1)", "type 'link'"),
        ("name == number", "type 'string' of 'name' and type 'int' of 'number'"), ("name == B64\"/w==\"", "type 'string'"),
    ])
    func `values that cannot be compared are refused`(_ text: String, _ reason: String) throws {
        let error = try #require(failure(text))
        #expect(error.code == .queryTypeMismatch)
        #expect(error.message.contains(reason), "\(error)")
    }

    private static let needsMore: [(text: String, construct: String, column: Int)] = [
        ("friend.number == 1", "a path beyond the property 'friend'", 1), ("place.x == 1", "a path beyond the property 'place'", 1),
        ("blend.k == 1", "a path beyond the property 'blend'", 1), ("blend[*] == 1", "a path beyond the property 'blend'", 1),
        ("tags.length == 1", "a path beyond the property 'tags'", 1), ("tags[*].@count == 1", "a path beyond the property 'tags'", 1),
        ("weights[0] == 1", "a path beyond the property 'weights'", 1), ("ANY extra.@keys == 'x'", "a path beyond the property 'extra'", 1),
        ("friend.@links.@count == 1", "a path beyond the property 'friend'", 1),
        ("friend.@count == 1", "@count of 'friend', which is not a list,", 1),
        ("2 > name.@count", "@count of 'name', which is not a list,", 5),
        ("blend.@count == 1", "@count of 'blend', which is not a list,", 1),
        ("place.@count == 1", "@count of 'place', which is not a list,", 1),
        ("scores.@min == 1", "the aggregate @min", 1), ("2 == number + 1", "arithmetic", 6),
        ("@links.Sample.friend.number == 1", "@links", 1), ("flag == true OR @links.@count > 0", "@links", 17),
        ("SUBQUERY(@links.Sample.friend, $x, number == 1).@count > 0", "SUBQUERY", 1), ("name TEXT 'x'", "TEXT", 6),
        ("blend.@type == 'int'", "@type", 1), ("extra == 'x'", "the dictionary 'extra'", 1),
        ("extra.@count == 1", "the dictionary 'extra'", 1),
        ("extra[*] == 'x'", "the dictionary 'extra'", 1), ("places == null", "the list of embedded objects 'places'", 1),
        ("scores == {1, 2}", "comparing two lists", 8), ("{1} IN scores", "comparing two lists", 5),
        ("ALL scores != {1, 2}", "comparing two lists", 12), ("ANY {1} == ANY scores", "comparing two lists", 9),
        ("name CONTAINS {'a'}", "'CONTAINS' with a list", 6), ("{'a'} LIKE name", "'LIKE' with a list", 7),
        ("tags == name", "comparing a list with another property", 6), ("name IN tags", "comparing a list with another property", 6),
        ("ANY tags == ANY tags", "comparing a list with another property", 10),
        ("number < scores.@count", "comparing a list with another property", 8),
        ("'abc' CONTAINS name", "'CONTAINS' with a constant on its left", 7),
        ("friend == blend", "comparing a link with a mixed property", 8),
        ("friend.place GEOWITHIN geoCircle([0, 0], 1)", "GEOWITHIN on anything but an embedded object of the row", 1),
        ("places GEOWITHIN geoCircle([0, 0], 1)", "GEOWITHIN on anything but an embedded object of the row", 1),
    ]

    @Test(arguments: needsMore)
    func `constructs that need more than one row's scalars are named as unsupported`(
        _ part: (text: String, construct: String, column: Int)
    ) throws {
        let places = Property(id: 50, name: "places", type: .embedded("Place"), collection: .list)
        let type = ObjectType(name: "Sample", properties: Samples.type.properties + [places])
        let schema = Schema([type, Samples.place])
        let query = try Query.parse(part.text)
        let error = try #require(#expect(throws: SluiceError.self) { try query.predicate(on: type, in: schema) })
        #expect(error.code == .queryUnsupported, "\(error)")
        let message = "line 1, column \(part.column): \(part.construct) is not supported in a query on 'Sample'"
        #expect(error.message.hasPrefix(message), "\(error)")
        // It has a meaning over several objects.
        #expect(try query.bind(to: type, in: schema).predicate == nil)
    }

    /// One binder checks every query before it is lowered, so a mistake has the same code wherever the query runs.
    @Test(arguments: [
        ("friend.nmber == 1", ErrorCode.queryUnknownProperty, "'Sample' has no property 'nmber'"),
        ("friend == obj('Other', 1)", .queryUnknownProperty, "There is no class 'Other'"),
        ("@links.Other.x == 1", .queryUnknownProperty, "There is no class 'Other'"),
        ("$K0 == 1", .queryUnknownProperty, "'Sample' has no property 'x'"),
        ("name.x == 1", .queryTypeMismatch, "which is not an object"),
        ("number.@count == 1", .queryTypeMismatch, "Operation '@count' is not supported on 'number' of type 'int'"),
        ("scores[0] == 1", .queryTypeMismatch, "an index or key behind what has none"),
        ("extra == 1", .queryTypeMismatch, "type 'string' of 'extra' and type 'int'"),
        ("SUBQUERY(tags, $x, number == 1).@count > 0", .queryTypeMismatch, "A subquery must operate on a list property"),
        ("{1} IN number", .queryTypeMismatch, "The keypath following 'IN' must contain a list. Found 'number'"),
        ("tags == tags", .queryTypeMismatch, "Two lists of values cannot be compared as wholes"),
        ("place == place", .queryTypeMismatch, "type 'object' of 'place' and type 'object' of 'place'"),
        ("place == blend", .queryTypeMismatch, "type 'object' of 'place' and type 'mixed' of 'blend'"),
        ("blend CONTAINS number", .queryTypeMismatch, "operator 'contains' against type 'int'"),
        ("number TEXT 'x'", .queryTypeMismatch, "TEXT searches a string property"),
        ("blend GEOWITHIN geoCircle([0, 0], 1)", .queryTypeMismatch, "data in the wrong format for GEOWITHIN"),
    ])
    func `a query without a meaning is refused before the row is asked about`(_ text: String, _ code: ErrorCode, _ reason: String) throws {
        let error = try #require(failure(text, [.string("x")]))
        #expect(error.code == code && error.message.contains(reason), "\(error)")
        let whole = #expect(throws: SluiceError.self) {
            try Query.parse(text).bind(to: Samples.type, in: Samples.schema, arguments: [.value(.string("x"))])
        }
        #expect(whole == error)
    }

    @Test(arguments: [
        ("number == 1 + 1", "number == 2"), ("scores[*] == 3", "ANY scores == 3"), ("$K0 == 3", "number == 3"),
        ("number BETWEEN {$1, 3}", "number >= 1 and number <= 3"), ("ANY scores.@count == 2", "scores.@count == 2"),
        ("ALL scores.@count == 2", "scores.@count == 2"), ("number == blend", "number == blend"),
        ("number CONTAINS blend", "number CONTAINS blend"),
    ])
    func `one row is enough wherever the bound condition reads no more`(_ text: String, _ lowered: String) throws {
        let arguments: [Value] = [.string("number"), .int(1)]
        let predicate = try bind(text, arguments)
        #expect(predicate.canonicalText == lowered)
        let query = try Query.parse(text).bind(to: Samples.type, in: Samples.schema, arguments: arguments.map { .value($0) })
        #expect(query.predicate == predicate)
    }

    @Test func `values in a property are the list of constants that a query names`() throws {
        func any(_ values: [Value], in name: String) throws -> Predicate {
            .any(of: values, in: try #require(Samples.type.index(of: name)), of: Samples.type)
        }
        let link = Value.link(type: "Sample", key: .objectId(Samples.ids[0]))
        #expect(try any([.int(3), .int(4), .int(3)], in: "number") == bind("number IN {3, 4}"))
        #expect(try any([.string("a")], in: "tags") == bind("ANY tags IN {'a'}"))
        #expect(try any([link], in: "friend") == bind("friend IN $0", [.list([link])]))
        #expect(try any([.string("x")], in: "number") == .false(Samples.type))
        #expect(try any([], in: "tags") == .false(Samples.type))
    }

    @Test
    func `missing and unfit arguments say which and why`() throws {
        #expect(try #require(failure("number == $0")).message.contains("Request for argument at index 0 but no arguments are provided"))
        #expect(try #require(failure("number == $1", [.int(1)])).message.contains("but only 1 argument is provided"))
        #expect(try #require(failure("number == $2", [.int(1), .int(2)])).message.contains("but only 2 arguments are provided"))
        let unfit = try #require(failure("number == $0", [.string("3")]))
        #expect(unfit.message.contains("Cannot compare argument $0 with value") && unfit.message.contains("to a int"))
        #expect(try #require(failure("number == ANY $0", [.int(3)])).code == .queryArgument)
        #expect(try bind("number == $0 AND name == $1", [.int(3), .string("x")]) == bind("number == 3 AND name == 'x'"))
        #expect(try bind("number IN $0", [.list([.int(3), .int(4)])]) == bind("number IN {4, 3}"))
        #expect(try bind("ANY scores IN $0", [.list([.int(3), .int(4)])]) == bind("ANY scores IN {3, 4}"))
    }

    @Test(arguments: [
        ("number < 1.5", "number <= 1"), ("number <= 1.5", "number <= 1"), ("number > -1.5", "number > -2"),
        ("number == 1.5", "FALSEPREDICATE"),
        ("number != 1.5", "TRUEPREDICATE"), ("number == 2.0", "number == 2"), ("number < 1e300", "number <= 9223372036854775807"),
        ("number > -1e300", "number != NULL"), ("number < -1e300", "FALSEPREDICATE"), ("number == '5'", "number == 5"),
        ("number IN {1, 1.5}", "number == 1"),
        ("ratio == 1", "ratio == 1.0"), ("ratio == 9007199254740993", "FALSEPREDICATE"),
        ("ratio < 9007199254740993", "ratio <= 9007199254740992.0"),
        ("ratio > -0.0", "ratio > 0.0"), ("ratio == nan", "FALSEPREDICATE"), ("ratio != nan", "TRUEPREDICATE"),
        ("ratio < inf", "ratio < inf"),
        ("small == 0.1", "small == 0.1f"), ("small == 16777217", "FALSEPREDICATE"), ("price == 1.50", "price == 1.5"),
        ("price == 1.0", "price == 1"),
        ("5 > number", "number < 5"), ("number BETWEEN {1, 3}", "number >= 1 and number <= 3"), ("number <= null", "number == NULL"),
        ("number > null", "FALSEPREDICATE"), ("name CONTAINS null", "TRUEPREDICATE"), ("name LIKE null", "name == NULL"),
        ("NULL CONTAINS name", "FALSEPREDICATE"), ("NULL LIKE name", "name == NULL"), ("name ==[c] 'ÀB'", "name ==[c] \"àb\""),
        ("number == {1, 2}", "number IN {1, 2}"), ("number != {1, 2}", "number != 1 or number != 2"), ("number == ALL {}", "TRUEPREDICATE"),
        ("number == {}", "FALSEPREDICATE"), ("number == NONE {1, 2}", "!(number == 1 or number == 2)"),
        ("number IN {2, 1, 2}", "number IN {1, 2}"),
        ("3 IN scores", "ANY scores == 3"), ("scores == 3", "ANY scores == 3"), ("ANY scores != 1.5", "scores.@count != 0"),
        ("ALL scores == 1.5", "scores.@count == 0"),
        ("NONE scores == 1.5", "TRUEPREDICATE"), ("NOT NOT number == 1", "number == 1"), ("number == 1 AND TRUEPREDICATE", "number == 1"),
        ("number == 1 OR TRUEPREDICATE", "TRUEPREDICATE"), ("friend == null", "friend == NULL"),
        ("friend == obj('Sample', oid(010203040506070800000001))", "friend == obj(\"Sample\", oid(010203040506070800000001))"),
        ("friend == obj('Sample', null)", "FALSEPREDICATE"), ("blend == 1", "blend == 1"), ("flag != TRUE", "flag != true"),
    ])
    func `constants adapt to the property's type without changing the condition`(_ text: String, _ bound: String) throws {
        #expect(try bind(text).canonicalText == bound)
    }

    @Test
    func `an int meets a double exactly, beyond 53 bits too`() throws {
        func holds(_ text: String, _ value: Int64) throws -> Bool { try bind(text).matches(["number": .int(value)]) }
        #expect(try holds("number > 9007199254740992.0", 9_007_199_254_740_993))
        #expect(try !holds("number == 9007199254740992.0", 9_007_199_254_740_993))
        #expect(try holds("number == 9007199254740992.0", 9_007_199_254_740_992))
    }

    @Test
    func `predicates of a type combine`() throws {
        let a = try bind("number == 1")
        let b = try bind("name == 'x'")
        #expect(Predicate.and(a, b) == (try bind("number == 1 AND name == 'x'")))
        #expect(Predicate.or(a, b).properties == [2, 6])
        #expect(Predicate.and(a, .true(Samples.type)) == a)
        #expect(Predicate.and(a, .false(Samples.type)) == .false(Samples.type))
        #expect(!(!a) == a)
    }
}
