import SluiceCore
import SluiceQuery
import Testing

/// What is a query and what is none, without a type.
struct SyntaxTests {
    @Test(arguments: [
        "TRUEPREDICATE", "falsepredicate", "a == 1", "a=1", "a <> 1", "a => 1", "a =< 1", "a != b", "1 == a", "a == -1", "a == +1",
        "a == 0xFF",
        "a == 1.", "a == -.5", "a == .5e3", "a == 1e5", "a == 1.5f", "a == 1e2f", "a == inf", "a == -Infinity", "a == +nan", "a == NaN",
        "a == true", "a == FALSE", "a == null", "a == NIL", "a == 'x'", "a == \"x\"", "a == 'say \"hi\"'", "a == 'it\\'s'",
        "a == '\\u00e9'",
        "a == 'two\nlines'", "a == B64\"YQ==\"", "a == binary('x')", "a == BIN(B64\"/w==\")", "a == T12:34", "a == T-12:-34",
        "a == 2026-11-21@10:00:00", "a == 2026-11-21T10:00:00:5", "a == oid(0123456789abcdef01234567)",
        "a == uuid(01234567-89AB-cdef-0123-456789abcdef)", "a == $0", "a == $002", "a IN $1", "a IN {1, 2}", "a in {}", "1 IN a",
        "ANY a == 1",
        "some a > 1", "ALL a IN {1}", "NONE a == $0", "a == ANY {1, 2}", "a == ALL $0", "a BETWEEN {1, 2}", "a beginsWith 'x'",
        "a ENDSWITH[c] 'x'", "a contains [c] 'x'", "a LIKE 'x*'", "a TEXT 'x'", "a ==[c] 'x'", "a !=[c] 'x'", "a IN[c] {'x'}",
        "a == 1 && b == 2", "a == 1 AND b == 2 or c == 3", "a=1AND b=2", "NOT a == 1", "!a == 1", "!(a == 1)", "not not a == 1",
        "not -1 = a",
        "((a == 1))", "(a) == (1)", "(a + 1) * 2 == 4", "a + b - c == d", "a / 2 > 1 and b == 1", "NOT0=0", "a-1 == 2", "a - 1 == 2",
        "_a == 1", "$a == 1", "é == 1", "日本 == '語'", "first\\ name == 'x'", "a.b.c == 1", "a[0] == 1", "a[FIRST] == 1", "a[last].b == 1",
        "a['k'] == 1", "a[*] == 1", "a[$0] == 1", "a[SIZE] == 1", "a.@count == 1", "a.@size > 1", "a.@type == 'int'", "a.@keys == 'x'",
        "a.@links.B.c == 1", "@links.B.c.@count == 0", "a.@min == 1", "a.@max.b == 1", "a.@avg > 0.5", "a.@sum.b == 1", "$K0 == 1",
        "a.$K1 == 1",
        "SUBQUERY(a, $x, $x.b == 1).@count > 0", "a == obj('B', 1)", "a == obj(\"class_B\", oid(0123456789abcdef01234567))",
        "obj('B', $0) IN a",
        "a GEOWITHIN geoBox([1.0, 2], [3, 4])", "a geowithin geoCircle([1, 2], 0.1)",
        "a GEOWITHIN geoPolygon({[0, 0], [1, 0], [1, 1], [0, 0]})",
        "a GEOWITHIN $0", "a == 1 SORT(b ASC)", "a == 1 SORT(b.c descending, d asc) DISTINCT(e) LIMIT(5)", "TRUEPREDICATE LIMIT(0)",
        "sort == 1", "limit == 1", "in == 1", "contains == 1", "size == 1", "first == 1", "text == 'x'", "binary == 1", "like LIKE 'x'",
        "beginswith BEGINSWITH 'a'", "Not == 1", "Any == 1", "True == 1", "T2017-12-04 == 1", "asc == desc", "a == '[c]'", "a == ''",
    ])
    func `a valid text parses, and its canonical text parses to the same query`(_ text: String) throws {
        let query = try fixed(text).map { try Query.parse($0) } ?? Query.parse(text)
        let again = try Query.parse(query.canonicalText)
        #expect(again == query, "\(query.canonicalText)")
    }

    /// A path cannot begin with a name and go on with a path argument.
    private func fixed(_ text: String) -> String? { text == "a.$K1 == 1" ? "$K1 == 1" : nil }

    @Test(arguments: [
        "", "  ", "a", "a && b", "a ==", "== 1", "a == 1 b == 2", "a === 1", "a == == 1", "a ! = 1", "a < = 1", "a & b == 1", "a | b == 1",
        "a == 1 & b == 2", "a == 1 &&& b == 2", "a == 1 AND", "OR a == 1", "(a == 1", "a == 1)", "()", "(a == 1))", "((a == 1)", "NOT",
        "not", "a == 'x", "a == \"x", "a == '\\x'", "a == '\\u12'", "a == '\\", "a == B64\"?\"", "a == B64\"YQ", "a == uuid(1)",
        "a == oid(12)",
        "a == oid (0123456789abcdef01234567)", "a == UUID(01234567-89ab-cdef-0123-456789abcdef)", "a == 1.2.3", "a == 1e", "a == --1",
        "1a == 1", "a b == 1", "a -1 == 2", "1-0 == 1", "a == 1OR b == 2OR", "a == aORa == a", "a == #1", "a == ~1", "a % 2 == 0",
        "a == 1; b == 2", "a < [c] 1", "a <[c] 'x'", "a BETWEEN[c] {1, 2}", "a == [C] 'x'", "a ==[d] 'x'", "a ==[cd] 'x'", "a BETWEEN 1",
        "a BETWEEN {1, 2", "a BETWEEN (1, 2)", "a IN (1, 2)", "a IN [1, 2]", "a IN {1 2}", "a IN {1,}", "a IN {,}", "a IN {b}",
        "a IN {1, b}",
        "a IN", "IN {1}", "a IN {{1}}", "a CONTAINS", "CONTAINS 'x'", "a NOT CONTAINS 'x'", "a NOT IN {1}", "a == T1:", "a == T1:-1",
        "a == T-1:1", "a == 1899-12-31@00:00:00", "a == 2026-13-01@00:00:00", "a == 2026-01-32@00:00:00", "a == 2026-01-01@24:00:00",
        "a == 2026-01-01@00:60:00", "a.b. == 1", "a..b == 1", ".a == 1", "a[ == 1", "a[] == 1", "a[-1] == 1", "a[b] == 1", "a[1.5] == 1",
        "a.@foo == 1", "@count == 1", "a.@Count == 1", "@ == 1", "a@count == 1", "ANY a.@min == 1", "a == 1 SORT", "a == 1 SORT()",
        "a == 1 SORT(b)", "a == 1 SORT(b ASC,)", "a == 1 SORT(b ASC", "a == 1 SORT(b UP)", "SORT(a ASC)", "a == 1 SORT b ASC",
        "a == 1 DISTINCT()", "a == 1 DISTINCT(b,)", "a == 1 DISTINCT b", "a == 1 LIMIT()", "a == 1 LIMIT(-1)", "a == 1 LIMIT(b)",
        "a == 1 LIMIT(1.5)", "a == 1 LIMIT 5", "a == 1 LIMIT(5) AND b == 2", "a == 1 INCLUDE(b)", "SUBQUERY(a, $x, $x.b == 1)",
        "SUBQUERY(a, x, x.b == 1).@count > 0", "SUBQUERY(a, $, b == 1).@count > 0", "SUBQUERY(a, $x).@count > 0",
        "SUBQUERY(a $x, b == 1).@count > 0",
        "SUBQUERY().@count > 0", "SUBQUERY(a, $x, $x.b == 1).@max > 0", "a == obj(B, 1)", "a == obj('B')", "a == obj('B', 1, 2)",
        "a == obj('B', true)",
        "a == binary(1)", "a == binary('x'", "a GEOWITHIN [1, 2]", "a GEOWITHIN geoBox([1, 2])", "a GEOWITHIN geoCircle([-1, 2], 3)",
        "a GEOWITHIN geoPolygon([1, 2])", "TRUEPREDICATE == 1", "and == 1", "not == 1", "true", "null", "null == 1 ==", "all == 1",
        "obj == 1",
        "a == 1 TRUEPREDICATE", "a == {1, 2", "ANY == 1", "ANY ANY a == 1", "NOT (a + 1)", "(a == 1) + 2 == 3", "(a == 1) == true",
        "a == (b == 1)",
        "a == \u{1}", "$0", "$K == 1 2",
    ])
    func `an invalid text is refused with its place`(_ text: String) {
        do throws(SluiceError) {
            let query = try Query.parse(text)
            Issue.record("'\(text)' parsed to \(query.canonicalText)")
        } catch {
            #expect(error.code == .querySyntax)
            #expect(error.message.hasPrefix("line 1, column "), "\(error)")
            #expect(error.message.contains("^"))
        }
    }

    @Test
    func `a syntax error says line, column, what was expected and shows the place`() throws {
        let error = #expect(throws: SluiceError.self) { try Query.parse("name == 'é' AND\n  größe > ") }
        #expect(
            error?.message == """
                line 2, column 11: expected a property or a value, the query ends
                      größe > \n\u{20}             ^

                """)
    }

    @Test
    func `the excerpt of a long line stays short`() {
        let text = (0..<2_000).map { "a == \($0)" }.joined(separator: " OR ") + " OR b"
        let error = #expect(throws: SluiceError.self) { try Query.parse(text) }
        #expect(error.map { $0.message.utf8.count < 500 } == true)
    }

    @Test
    func `precedence is NOT, arithmetic, comparison, AND, OR`() throws {
        func same(_ left: String, _ right: String) throws -> Bool { try Query.parse(left) == Query.parse(right) }
        #expect(try same("! a == 1 && b == 2 || c == 3", "((!(a == 1)) && b == 2) || (c == 3)"))
        #expect(try same("a == 1 || b == 2 && c == 3", "a == 1 || (b == 2 && c == 3)"))
        #expect(try same("a + b * c - d == 1", "((a + (b * c)) - d) == 1"))
        #expect(try !same("a - (b - c) == 1", "a - b - c == 1"))
        #expect(try same("a == 1 and (b == 2 and c == 3)", "a == 1 and b == 2 and c == 3"))
    }

    @Test
    func `canonical text is the same for every spelling of a query`() throws {
        let texts = [
            "a==1&&(b<>'x')OR c IN{1,2}", "(a = 1 and b != \"x\") || c in { 1 , 2 }", "( ( a == 01 ) AND b != 'x' ) or ((c IN {1,2}))",
        ]
        let canonical = try texts.map { try Query.parse($0).canonicalText }
        #expect(Set(canonical) == ["(a == 1 and b != \"x\") or c IN {1, 2}"])
    }

    @Test
    func `strings with quotes, backslashes or control characters print as base64`() throws {
        #expect(try Query.parse("a == 'it is'").canonicalText == "a == \"it is\"")
        #expect(try Query.parse("a == 'x\"y'").canonicalText == "a == B64\"eCJ5\"")
        #expect(try Query.parse("a == '\\n'").canonicalText == "a == B64\"XG4=\"")
        #expect(try Query.parse("a == B64\"eA==\"").canonicalText == "a == \"x\"")
    }

    @Test
    func `every byte survives printing as a binary literal`() throws {
        let type = Samples.type
        for byte in UInt8.min...UInt8.max {
            let predicate = try Query.parse("data == $0").bind(to: type, arguments: [.binary([byte, 0x41])])
            #expect(try Query.parse(predicate.canonicalText).bind(to: type) == predicate)
        }
        for scalar in (0..<0x250).compactMap({ Unicode.Scalar($0) }) {
            let predicate = try Query.parse("name == $0").bind(to: type, arguments: [.string("a\(scalar)")])
            #expect(try Query.parse(predicate.canonicalText).bind(to: type) == predicate)
        }
    }

    @Test(arguments: ["(", "NOT ", "!"])
    func `deep nesting is refused instead of exhausting the stack`(_ opening: String) {
        let text = String(repeating: opening, count: 100_000) + "a == 1"
        let error = #expect(throws: SluiceError.self) { try Query.parse(text) }
        #expect(error?.message.contains("nested deeper") == true)
    }

    @Test
    func `long chains of AND and OR parse`() throws {
        let text = (0..<5_000).map { "a == \($0)" }.joined(separator: " OR ")
        #expect(try Query.parse(text).canonicalText == text.replacing(" OR ", with: " or "))
        let sum = "a" + String(repeating: " + 1", count: 5_000) + " == 1"
        #expect(throws: SluiceError.self) { try Query.parse(sum) }
    }

    @Test
    func `times are read in both forms`() throws {
        func time(_ text: String) throws -> String { try String(Query.parse("a == \(text)").canonicalText.dropFirst(5)) }
        #expect(try time("1970-01-01@00:00:00") == "T0:0")
        #expect(try time("2026-11-21@10:30:00:7") == "T1795257000:7")
        #expect(try time("2000-02-29T23:59:59") == "T951868799:0")
        #expect(try time("1969-12-31@23:59:59:1") == "T-1:-1")
        #expect(try time("1900-01-01@00:00:00") == "T-2208988800:0")
        #expect(try time("T5:2000000001") == "T7:1")
    }
}
