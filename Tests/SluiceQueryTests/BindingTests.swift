import SluiceCore
import SluiceQuery
import TestSupport
import Testing

/// Names, types, arguments, and the adaptation of constants.
struct BindingTests {
    private func bind(_ text: String, _ arguments: [Value] = []) throws -> Predicate {
        try Query.parse(text).bind(to: Samples.type, arguments: arguments)
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
        ("name CONTAINS 5", "type 'string'"), ("number == inf", "Infinity not supported for int"),
        ("number < nan", "NaN not supported for int"),
        ("1 == 2", "Cannot compare two constants"), ("1 IN {1, 2}", "Cannot compare two constants"), ("number IN 5", "must contain a list"),
        ("number IN other", "must contain a list. Found 'other'"), ("ANY number == 1", "following 'ANY' must contain a list"),
        ("number BETWEEN {1}", "exactly two"), ("number BETWEEN {1, 2, 3}", "exactly two"),
        ("ANY scores BETWEEN {1, 2}", "Only 'ALL' supported"),
        ("friend == 'x'", "type 'link'"), ("friend == obj('Other', 1)", "which links to type 'Sample'"),
        ("friend < obj('Sample', 1)", "type 'link'"),
        ("name == number", "type 'string' of 'name' and type 'int' of 'number'"), ("name == B64\"/w==\"", "type 'string'"),
    ])
    func `values that cannot be compared are refused`(_ text: String, _ reason: String) throws {
        let error = try #require(failure(text))
        #expect(error.code == .queryTypeMismatch)
        #expect(error.message.contains(reason), "\(error)")
    }

    @Test(arguments: [
        "a.b == 1", "friend.number == 1", "friend.@count == 1", "name.@count == 1", "scores.@min == 1", "number + 1 == 2",
        "@links.A.b == 1",
        "SUBQUERY(tags, $x, number == 1).@count > 0", "name TEXT 'x'", "blend.@type == 'int'",
        "scores == {1, 2}",
        "{1} IN scores", "tags == name", "extra == 1", "'abc' CONTAINS name", "$K0 == 1", "scores[0] == 1",
    ])
    func `constructs that need more than one row's scalars are named as unsupported`(_ text: String) throws {
        let type = ObjectType(
            name: "Sample", properties: Samples.type.properties + [Property(id: 50, name: "a", type: .link(to: "Sample"))])
        let error = #expect(throws: SluiceError.self) { try Query.parse(text).bind(to: type, arguments: [.string("x")]) }
        #expect(error?.code == .queryUnsupported, "\(String(describing: error))")
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
