import SluiceCore
import SluiceQuery
import SluiceValues
import Testing

/// The truth tables of section 4: quantifiers on either side, lists pair by pair, null, and the spot values.
struct QuantifierTests {
    private static let type = ObjectType(
        name: "T",
        properties: [
            Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "one", type: .int, isOptional: true),
            Property(id: 3, name: "list", type: .int, collection: .list, isOptional: true),
            Property(id: 4, name: "group", type: .int, collection: .set), Property(id: 5, name: "name", type: .string, isOptional: true),
            Property(id: 6, name: "data", type: .binary, isOptional: true), Property(id: 7, name: "other", type: .string, isOptional: true),
            Property(id: 8, name: "fees", type: .double, isOptional: true), Property(id: 9, name: "mix", type: .mixed),
            Property(id: 10, name: "names", type: .string, collection: .list, isOptional: true), Property(id: 11, name: "firm", type: .int),
        ])

    private func rows(_ values: [[String: Value]]) -> MemoryGraph {
        MemoryGraph(
            schema: Schema([QuantifierTests.type]),
            rows: values.enumerated().map { index, values in
                ("T", Row(QuantifierTests.type.properties.map { $0.name == "_id" ? .int(Int64(index)) : values[$0.name] ?? $0.emptyValue }))
            })
    }

    private func count(_ text: String, _ graph: MemoryGraph, _ arguments: [QueryArgument] = []) throws -> Int {
        let query = try Query.parse(text).bind(to: QuantifierTests.type, in: Schema([QuantifierTests.type]), arguments: arguments)
        let compiled = query.compile()
        let keys = graph.keys(of: query.type)
        for key in keys { #expect(query.matches(key, in: graph) == compiled.matches(key, in: graph), "\(text) on \(key)") }
        if let predicate = query.predicate {
            for key in keys {
                #expect(graph.row(key, of: query.type).map { predicate.matches($0) } == query.matches(key, in: graph), "\(text)")
            }
        }
        return keys.count { query.matches($0, in: graph) }
    }

    private static func ints(_ values: Int64...) -> Value { .list(values.map { .int($0) }) }

    /// Every quantifier on both sides, over lists of no, one and several elements, against the definition written out.
    @Test
    func `quantifiers nest, the left one outside`() throws {
        let lists: [[Int64]] = [[], [1], [2], [1, 2], [2, 3], [1, 1, 3]]
        let graph = rows(lists.map { ["list": .list($0.map { .int($0) })] })
        let quantifiers = ["ANY", "ALL", "NONE"]
        let operators: [(String, (Int64, Int64) -> Bool)] = [
            ("==", { $0 == $1 }), ("!=", { $0 != $1 }), ("<", { $0 < $1 }), (">=", { $0 >= $1 }),
        ]
        for outer in quantifiers {
            for inner in quantifiers {
                for (symbol, holds) in operators {
                    for right in lists {
                        let text = "\(outer) list \(symbol) \(inner) {\(right.map { "\($0)" }.joined(separator: ", "))}"
                        let expected = lists.count { left in
                            QuantifierTests.quantified(outer, left) { l in QuantifierTests.quantified(inner, right) { holds(l, $0) } }
                        }
                        #expect(try count(text, graph) == expected, "\(text)")
                        #expect(try count("NOT \(text)", graph) == lists.count - expected, "\(text)")
                    }
                }
            }
        }
    }

    private static func quantified(_ quantifier: String, _ values: [Int64], _ holds: (Int64) -> Bool) -> Bool {
        switch quantifier {
        case "ANY": values.contains(where: holds)
        case "ALL": values.allSatisfy(holds)
        default: !values.contains(where: holds)
        }
    }

    @Test(arguments: [
        ("one == {}", 0), ("one == ALL {}", 3), ("one == NONE {}", 3), ("one != {}", 0), ("one != ALL {}", 3), ("one != NONE {}", 3),
        ("one != {1, 2}", 3), ("NOT one IN {1, 2}", 1), ("one IN {1, 2}", 2), ("one == NONE {1, 2}", 1), ("one != ALL {1, 2}", 1),
        ("one == ANY {1}", 1), ("one > ALL {0, 1}", 1), ("{1, 2} == one", 2), ("ALL {1, 1} == one", 1), ("NONE {1, 2} == one", 1),
        ("ALL {} == one", 3),
        ("ANY list == 3", 1), ("ALL list == 3", 2), ("NONE list == 3", 2), ("list == 3", 1), ("3 IN list", 1), ("3 IN ALL list", 2),
        ("3 IN NONE list", 2),
        ("one IN list", 0), ("one == ALL list", 1), ("ANY list == one", 0), ("NONE list == one", 3), ("ANY list == ANY group", 2),
        ("ALL list == ANY group", 2), ("ANY list IN group", 2), ("NONE list == ALL group", 2), ("ALL list BETWEEN {2, 4}", 2),
    ])
    func `an empty side decides alone, and a quantifier stands before any list`(_ text: String, _ expected: Int) throws {
        let graph = rows([
            ["one": .int(1), "list": Self.ints(), "group": Self.ints(1)], ["one": .int(2), "list": Self.ints(3), "group": Self.ints(3)],
            ["one": .null, "list": Self.ints(1, 2), "group": Self.ints(2, 9)],
        ])
        #expect(try count(text, graph) == expected)
    }

    @Test(arguments: [
        ("{1, 2} == list", "1"), ("list == {1, 2}", "1"), ("{2, 1} == list", ""), ("{1, 2} IN list", "1"), ("list IN {1, 2}", "1"),
        ("{} == list", "0"),
        // Unequal lengths, or every pair different.
        ("{} != list", "0 1 2 3"), ("{1, 2} != list", "0 2"), ("{2, 1} != list", "0 1 2 3"), ("{0, 1} < list", "1"),
        ("list > {0, 1}", "1"), ("{1, 1, 1} <= list", "2"),
        ("{1, null} == list", "3"), ("ANY {1, 2} == list", "1 2 3"), ("{1, 2} == ANY list", "1 2 3"), ("{1, 2} == ALL list", "0"),
        ("ALL {1, 2} == list", "1 2"),
        ("{3, 1, 3} == group", "1"), ("{1, 3} != group", "0 2 3"), ("list == $0", "1"), ("$0 IN list", "1"), ("ANY list == $0", "1 2 3"),
    ])
    func `a list literal and a list without quantifiers compare pair by pair`(_ text: String, _ expected: String) throws {
        let graph = rows([
            ["list": Self.ints(), "group": Self.ints()], ["list": Self.ints(1, 2), "group": Self.ints(1, 3)],
            ["list": Self.ints(1, 2, 3), "group": Self.ints(2, 4)], ["list": .list([.int(1), .null]), "group": Self.ints(1)],
        ])
        let query = try Query.parse(text)
            .bind(to: Self.type, in: Schema([Self.type]), arguments: [.value(Self.ints(1, 2))])
        let keys = query.run(over: graph)
        #expect(keys.map { if case .int(let key) = $0 { "\(key)" } else { "?" } }.joined(separator: " ") == expected)
        #expect(keys == graph.keys(of: query.type).filter { query.matches($0, in: graph) })
    }

    @Test(arguments: [
        ("{2.5, 3} == parts", true), ("{3, 2.5, 3.0} == parts", true), ("parts == {3.0}", false), ("parts != {3.0}", true),
        ("parts == $0", true),
        ("blend == {true, 1, 'a'}", true), ("blend == {'a', 1.0, true, 1}", true), ("blend == {'a', 2, true}", false),
    ])
    func `a set literal has no order, and its numbers any type`(_ text: String, _ expected: Bool) throws {
        let type = ObjectType(
            name: "S",
            properties: [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "parts", type: .double, collection: .set),
                Property(id: 3, name: "blend", type: .mixed, collection: .set),
            ])
        let values: [Value] = [.int(1), .set([.double(3), .double(2.5)]), .set([.double(1), .string("a"), .bool(true)])]
        let graph = MemoryGraph(schema: Schema([type]), rows: [("S", Row(values))])
        let query = try Query.parse(text)
            .bind(to: type, in: Schema([type]), arguments: [.value(.list([.int(3), .decimal(Decimal128("2.5") ?? .nan)]))])
        #expect(query.matches(.int(1), in: graph) == expected)
        #expect(query.compile().matches(.int(1), in: graph) == expected)
    }

    private static let names: [String?] = ["Billy", "Bob", "Joe", "Jake", "Joel", "Unicorn🦄", nil]

    @Test(arguments: [
        ("name CONTAINS NULL", 7), ("name BEGINSWITH NULL", 7), ("name ENDSWITH NULL", 7), ("name LIKE NULL", 1), ("NULL CONTAINS name", 0),
        ("NULL BEGINSWITH name", 0), ("NULL ENDSWITH name", 0), ("NULL LIKE name", 1), ("name CONTAINS[c] NULL", 7),
        ("name LIKE[c] NULL", 1),
        ("NULL LIKE[c] name", 1), ("NULL CONTAINS[c] name", 0), ("name !=[c] 'bOB'", 6), ("name ==[c] NULL", 1), ("name !=[c] NULL", 6),
        ("name CONTAINS ''", 6), ("name BEGINSWITH ''", 6), ("name ENDSWITH[c] ''", 6), ("name LIKE ''", 0), ("'' CONTAINS name", 1),
        ("name == ''", 0), ("name CONTAINS other", 7), ("name LIKE other", 1), ("'Billy the kid' CONTAINS name", 2),
        ("'xBOB' ENDSWITH[c] name", 2),
        ("'JOEL' BEGINSWITH[c] name", 3), ("'Joe*' LIKE name", 0), ("name < NULL", 0), ("name > NULL", 0), ("name <= NULL", 1),
        ("name >= NULL", 1),
        ("NOT name > 'C'", 3), ("name LIKE '*🦄'", 1), ("name LIKE 'Unicorn?'", 1), ("name LIKE 'Unicorn??'", 0),
        ("name IN {'Bob', NULL}", 2),
        ("name IN[c] {'BOB', 'JOE'}", 2), ("name BETWEEN {'B', 'C'}", 2), ("name == other", 1), ("name != other", 6),
    ])
    func `null and the text operators`(_ text: String, _ expected: Int) throws {
        #expect(try count(text, rows(Self.names.map { ["name": $0.map { .string($0) } ?? .null] })) == expected)
    }

    @Test(arguments: [
        ("name ENDSWITH \"E\"", 0), ("name ENDSWITH[c] \"E\"", 2), ("name LIKE[c] \"b*\"", 2), ("name LIKE \"b*\"", 0),
        ("name BEGINSWITH 'J'", 3),
    ])
    func `spot values over five names`(_ text: String, _ expected: Int) throws {
        #expect(try count(text, rows(["Billy", "Bob", "Joe", "Jane", "Joel"].map { ["name": .string($0)] })) == expected)
    }

    @Test(arguments: [
        ("data == NULL", 1), ("data CONTAINS NULL", 4), ("data CONTAINS[c] NULL", 3), ("data BEGINSWITH[c] NULL", 4),
        ("data ENDSWITH NULL", 4),
        ("data LIKE NULL", 1), ("data == binary('')", 1), ("data CONTAINS binary('')", 3), ("data == binary('aB')", 1),
        ("data ==[c] binary('Ab')", 1),
        ("data CONTAINS binary(B64\"/w==\")", 1), ("data < binary('b')", 2), ("data > binary('a')", 2), ("data LIKE binary('a*')", 1),
        ("data CONTAINS data", 4), ("data CONTAINS[c] data", 3), ("data.@size == 2", 1), ("data.@size == 0", 2), ("data != NULL", 3),
    ])
    func `binary and null`(_ text: String, _ expected: Int) throws {
        let values: [Value] = [.null, .binary([]), .binary(Array("aB".utf8)), .binary([255])]
        #expect(try count(text, rows(values.map { ["data": $0] })) == expected)
    }

    @Test(arguments: [
        ("fees == nan", 0), ("fees != nan", 5), ("NOT fees == nan", 5), ("fees < nan", 0), ("fees >= nan", 0), ("fees IN {nan, 1}", 1),
        ("fees == fees", 4),
        ("fees == 0", 2), ("fees == -0.0", 2), ("fees > 0", 1), ("NOT fees > 0", 4), ("fees <= 1", 3), ("fees == null", 1),
        ("fees * 1 == nan", 1), ("0 - fees == 0", 2), ("fees / fees == nan", 3), ("firm == null", 0), ("firm != null", 5),
        ("fees + null == null", 5),
        ("fees == $0", 0), ("fees != $0", 5),
    ])
    func `NaN in a number property is equal to nothing, in a calculation to itself`(_ text: String, _ expected: Int) throws {
        let graph = rows([.double(.nan), .double(0), .double(-0.0), .double(1), .null].map { ["fees": $0] })
        #expect(try count(text, graph, [.value(.double(.nan))]) == expected)
    }

    @Test(arguments: [
        ("mix == 1", 3), ("mix == 1.0", 3), ("mix == true", 1), ("mix == 'a'", 1), ("mix == null", 1), ("mix != 1", 6), ("mix > 0", 3),
        ("mix < 2", 4),
        ("mix < 'b'", 1), ("mix == nan", 1), ("mix < 0", 1), ("mix >= nan", 4), ("mix CONTAINS 'a'", 1), ("mix CONTAINS NULL", 9),
        ("mix == binary('a')", 1),
        ("mix BEGINSWITH[c] 'A'", 1), ("mix <= null", 1), ("mix IN {1, 'a', NULL}", 5), ("mix == 'A'", 0), ("mix ==[c] 'A'", 1),
        ("mix[0] == 1", 1),
        ("mix[*] == 2", 1), ("mix BETWEEN {0, 1}", 3), ("mix == mix", 9), ("mix == one", 1), ("mix.@size == 1", 2),
    ])
    func `a mixed value is comparable within its group only`(_ text: String, _ expected: Int) throws {
        let values: [Value] = [
            .null, .bool(true), .int(1), .double(1), .decimal(Decimal128(1)), .string("a"), .binary([97]), .list([.int(1), .int(2)]),
            .double(.nan),
        ]
        #expect(try count(text, rows(values.map { ["mix": $0] })) == expected)
    }

    @Test
    func `numbers compare by value beyond 53 bits and across types`() throws {
        let big: Int64 = 9_007_199_254_740_993
        let graph = rows([
            ["one": .int(big), "fees": .double(9_007_199_254_740_992)], ["one": .int(big - 1), "fees": .double(9_007_199_254_740_992)],
        ])
        let expected = [
            ("one == 9007199254740992.0", 1), ("one > 9007199254740992.0", 1), ("one == fees", 1), ("one > fees", 1), ("fees < one", 1),
            ("fees == 9007199254740993", 0), ("fees < 9007199254740993", 2), ("one == $0", 1), ("fees < $0", 2), ("one - fees == 0.0", 2),
        ]
        for (text, count) in expected {
            #expect(try self.count(text, graph, [.value(.decimal(Decimal128(big)))]) == count, "\(text)")
        }
        let tenth = rows([["fees": .double(0.1)]])
        let argument = try #require(Decimal128("0.10000000000000000000000000001"))
        for (text, count) in [
            ("fees < $0", 1), ("fees == $0", 0), ("fees != $0", 1), ("fees >= $0", 0), ("fees == 0.1f", 0), ("fees < 0.1f", 1),
        ] {
            #expect(try self.count(text, tenth, [.value(.decimal(argument))]) == count, "\(text)")
        }
    }

    @Test(arguments: [
        ("_id == 0", true), ("_id IN {0, 0x0}", true), ("name == 'e\u{301}'", false), ("name == '\u{e9}'", true),
        ("name.@size == 2", true), ("name < 'f'", false), ("name > 'z'", true), ("name LIKE '?'", true), ("name LIKE '??'", false),
        ("name ==[c] '\u{c9}'", true),
    ])
    func `texts compare by bytes`(_ text: String, _ expected: Bool) throws {
        let graph = rows([["name": .string("\u{e9}")]])
        #expect(try count(text, graph) == (expected ? 1 : 0))
    }
}
