import SluiceCore
import SluiceQuery
import SluiceValues
import TestSupport
import Testing

/// The language's own logic, as tables.
struct SemanticsTests {
    private static let names: [String?] = ["Ann", "Abe", "Zoe", "Zora", "Zoé", "🦄 x", nil, ""]

    private func count(_ text: String, _ rows: [[String: Value]]) throws -> Int {
        let predicate = try Query.parse(text).predicate(on: Samples.type, in: Samples.schema)
        let program = predicate.compile()
        var buffer = RowBuffer()
        var count = 0
        for values in rows {
            let ref = buffer.append(Row(Samples.type.properties.map { values[$0.name] }))
            let compiled = buffer.withView(ref) { program.matches($0) }
            #expect(compiled == predicate.matches(values), "\(text) on \(values)")
            if compiled { count += 1 }
        }
        return count
    }

    private func countNames(_ text: String) throws -> Int {
        try count(text, SemanticsTests.names.map { ["name": $0.map { .string($0) } ?? .null] })
    }

    @Test(arguments: [
        ("name == null", 1), ("name != null", 7), ("name == 'Ann'", 1), ("name != 'Ann'", 7), ("NOT name == 'Ann'", 7), ("name > 'M'", 4),
        ("NOT name > 'M'", 4), ("name <= 'M'", 3), ("name >= null", 1), ("name <= null", 1), ("name > null", 0), ("name < null", 0),
        ("name CONTAINS null", 8), ("name BEGINSWITH null", 8), ("name ENDSWITH null", 8), ("name LIKE null", 1), ("null CONTAINS name", 0),
        ("null LIKE name", 1), ("name CONTAINS ''", 7), ("name BEGINSWITH ''", 7), ("name ENDSWITH ''", 7), ("name LIKE ''", 1),
        ("name LIKE '*'", 7),
        ("name IN {null, 'Abe'}", 2), ("NOT name IN {null, 'Abe'}", 6), ("name == {}", 0), ("name != {'Ann', 'Abe'}", 8),
        // A list may have values of several types: the others equal no name.
        ("name IN {'Ann', 5, null}", 2), ("NOT name IN {'Ann', 5}", 7), ("name IN {true, 'Zoe', 2.5f}", 1), ("NONE {'Ann', 5} == name", 7),
    ])
    func `null is a value that equals only itself`(_ text: String, _ expected: Int) throws {
        #expect(try countNames(text) == expected)
    }

    @Test(arguments: [
        ("name ENDSWITH 'e'", 2), ("name ENDSWITH 'E'", 0), ("name ENDSWITH[c] 'E'", 2), ("name BEGINSWITH[c] 'zO'", 3),
        ("name ==[c] 'ZOÉ'", 1),
        ("name ==[c] 'zoe'", 1), ("name !=[c] 'aNN'", 7), ("name IN[c] {'ANN', 'zoÉ'}", 2), ("name LIKE 'A*'", 2), ("name LIKE 'a*'", 0),
        ("name LIKE[c] 'a*'", 2), ("name LIKE 'Zo?'", 2), ("name LIKE '? x'", 1), ("name LIKE '*o*a'", 1), ("name LIKE '?'", 0),
        ("name CONTAINS 'o'", 3),
        ("name CONTAINS[c] 'É'", 1), ("name > 'Zoe'", 3), ("name BETWEEN {'A', 'B'}", 2),
    ])
    func `strings compare by bytes, and [c] folds Latin letters only`(_ text: String, _ expected: Int) throws {
        #expect(try countNames(text) == expected)
    }

    @Test
    func `folding leaves other scripts and ß alone`() throws {
        for (upper, lower) in [("Σ", "σ"), ("Ж", "ж"), ("İ", "i"), ("ẞ", "ß"), ("×", "÷"), ("Ÿ", "ÿ")] {
            #expect(try count("name ==[c] '\(upper)'", [["name": .string(lower)]]) == 0)
        }
        for (upper, lower) in [("À", "à"), ("Þ", "þ"), ("Ö", "ö"), ("Ø", "ø"), ("Z", "z")] {
            #expect(try count("name ==[c] '\(upper)'", [["name": .string(lower)]]) == 1)
            #expect(try count("name CONTAINS[c] '\(lower)'", [["name": .string("x\(upper)y")]]) == 1)
        }
    }

    @Test(arguments: [
        ("ANY scores == 3", 2), ("scores == 3", 2), ("3 IN scores", 2), ("ALL scores == 3", 3), ("NONE scores == 3", 3),
        ("ALL scores > 0", 4),
        ("ANY scores > 4", 2), ("NONE scores > 4", 3), ("scores.@count == 0", 2), ("scores.@count > 1", 2), ("scores.@size <= 1", 3),
        ("ANY scores IN {1, 3}", 3), ("ALL scores IN {1, 3}", 3), ("NOT ANY scores == 3", 3), ("ANY scores != 3", 2),
        ("ANY scores == null", 0),
        ("ALL scores BETWEEN {1, 3}", 3), ("scores == ANY {1, 3}", 3), ("ALL scores == ALL {3}", 3),
    ])
    func `quantifiers over a list, an empty one and a null one`(_ text: String, _ expected: Int) throws {
        let lists: [Value] = [
            .list([.int(3)]), .list([.int(1), .int(3), .int(5)]), .list([.int(-1), .int(9), .int(1)]), .list([]), .null,
        ]
        #expect(try count(text, lists.map { ["scores": $0] }) == expected)
    }

    @Test
    func `NaN is in no order and unequal to itself in a number property, a value of its own in a mixed one`() throws {
        let rows: [[String: Value]] = [["ratio": .double(.nan), "blend": .double(.nan)], ["ratio": .double(1), "blend": .int(1)], [:]]
        let expected = [
            ("ratio == nan", 0), ("ratio != nan", 3), ("ratio > 0", 1), ("NOT ratio > 0", 2), ("ratio <= inf", 1), ("ratio IN {nan, 1}", 1),
            ("blend == nan", 1), ("blend < 0", 1), ("blend == 1.0", 1), ("blend >= nan", 2), ("blend != 1", 2), ("blend < 'x'", 0),
        ]
        for (text, count) in expected { #expect(try self.count(text, rows) == count, "\(text)") }
    }

    @Test
    func `decimals compare as numbers whatever their zeros`() throws {
        let decimals = ["1", "1.0", "1.00e0", "0.99", "10e-1"].compactMap { Decimal128($0) }
        let rows = decimals.map { ["price": Value.decimal($0)] }
        #expect(try count("price == 1", rows) == 4)
        #expect(try count("price IN {1.000, 2}", rows) == 4)
        #expect(try count("price < 1", rows) == 1)
        #expect(try count("price == 0.99", rows) == 1)
    }

    @Test
    func `a row that is older than a property reads null there`() throws {
        let predicate = try Query.parse("other == null AND number == 1").predicate(on: Samples.type, in: Samples.schema)
        var buffer = RowBuffer()
        let ref = buffer.append(Row([.objectId(Samples.ids[0]), .null, .int(1)]))
        buffer.withView(ref) { row in
            #expect(predicate.matches(row))
            #expect(predicate.compile().matches(row))
        }
    }

    @Test
    func `LIKE with many stars stays fast`() throws {
        let pattern = String(repeating: "*a", count: 200) + "*b"
        let text = String(repeating: "a", count: 20_000)
        #expect(try count("name LIKE '\(pattern)'", [["name": .string(text)]]) == 0)
    }

    @Test
    func `a condition with more leaves than a program can hold is still evaluated`() throws {
        let parts = (0..<70_000).map { BoundPredicate.test(.property(2), Test(.notEqual, .int(Int64($0)))) }
        let predicate = Predicate(type: Samples.type, bound: .and(parts))
        var buffer = RowBuffer()
        let out = buffer.append(Row([nil, nil, .int(69_999)]))
        let into = buffer.append(Row([nil, nil, .int(70_000)]))
        let program = predicate.compile()
        #expect(!program.isFlat)
        #expect(buffer.withView(out) { !program.matches($0) })
        #expect(buffer.withView(into) { program.matches($0) })
    }
}
