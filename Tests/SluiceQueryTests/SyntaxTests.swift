import SluiceCore
import SluiceQuery
import TestSupport
import Testing

/// What is a query and what is none, without a type.
struct SyntaxTests {
    @Test(arguments: ValidTexts.groups)
    func `valid texts parse, and their canonical texts parse to the same query`(_ group: (name: String, texts: [String])) throws {
        for text in group.texts {
            let query = try #require(try? Query.parse(text), "\(group.name): \(text)")
            let again = try #require(try? Query.parse(query.canonicalText), "\(group.name): \(text)")
            #expect(again == query, "\(text): \(query.canonicalText)")
            #expect(again.hashValue == query.hashValue)
            #expect(again.canonicalText == query.canonicalText)
        }
    }

    @Test(arguments: InvalidTexts.groups)
    func `invalid texts are refused with line, column, caret and what was expected`(
        _ group: (name: String, cases: [InvalidTexts.Case])
    ) {
        for invalid in group.cases {
            do throws(SluiceError) {
                let query = try Query.parse(invalid.text)
                Issue.record("\(group.name): '\(invalid.text)' parsed to \(query.canonicalText)")
            } catch {
                let start = "line \(invalid.line), column \(invalid.column): \(invalid.sentence)"
                #expect(error.code == .querySyntax)
                #expect(error.message.hasPrefix(start), "\(group.name): '\(invalid.text)': \(error)")
                let lines = error.message.split(separator: "\n", omittingEmptySubsequences: false)
                #expect(lines.contains { $0.drop { $0 == " " } == "^" && $0.count == invalid.column + 4 }, "\(error)")
            }
        }
    }

    @Test
    func `the tables are as large as the original's`() {
        let valid = ValidTexts.groups.flatMap(\.texts)
        let invalid = InvalidTexts.groups.flatMap(\.cases).map(\.text)
        #expect(Set(valid).count == valid.count && valid.count >= 300)
        #expect(Set(invalid).count == invalid.count && invalid.count >= 300)
        #expect(Set(valid).isDisjoint(with: invalid))
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
        func bind(_ text: String, _ arguments: [Value] = []) throws -> Predicate {
            try Query.parse(text).predicate(on: Samples.type, in: Samples.schema, arguments: arguments)
        }
        for byte in UInt8.min...UInt8.max {
            let predicate = try bind("data == $0", [.binary([byte, 0x41])])
            #expect(try bind(predicate.canonicalText) == predicate)
        }
        for scalar in (0..<0x250).compactMap({ Unicode.Scalar($0) }) {
            let predicate = try bind("name == $0", [.string("a\(scalar)")])
            #expect(try bind(predicate.canonicalText) == predicate)
        }
    }

    @Test(arguments: ["(", "NOT ", "!"])
    func `deep nesting is refused instead of exhausting the stack`(_ opening: String) {
        let text = String(repeating: opening, count: 100_000) + "a == 1"
        let error = #expect(throws: SluiceError.self) { try Query.parse(text) }
        #expect(error?.message.contains("nested deeper") == true)
    }

    @Test(arguments: ["number == obj('',", "number == {obj('',", "obj('',", "SUBQUERY(a,$x,b == obj('',"])
    func `an object's key is no object, however many there are`(_ opening: String) {
        let rest = String(repeating: "obj('',", count: Limits.queryBytes / 7)
        let error = #expect(throws: SluiceError.self) { try Query.parse(opening + rest) }
        #expect(error?.message.contains("expected a primary key") == true)
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
        #expect(try time("T-9223372036854775808:-1") == "T-9223372036854775808:-1")
        #expect(try time("T9223372036854775807:999999999") == "T9223372036854775807:999999999")
    }

    @Test
    func `texts are equal when their bytes are, not when they look alike`() throws {
        for form in [
            "a == '#'", "a# == 1", "a['#'] == 1", "a == obj('#', 1)", "a.@max.b# == 1", "SUBQUERY(a, $x#, $x#.b == 1).@count == 0",
        ] {
            let one = try Query.parse(form.replacing("#", with: "\u{e9}"))
            let two = try Query.parse(form.replacing("#", with: "e\u{301}"))
            #expect(one != two, "\(form)")
            #expect(!one.canonicalText.utf8.elementsEqual(two.canonicalText.utf8), "\(form)")
        }
    }

    @Test
    func `letters that only look like those of keywords make names`() throws {
        for text in ["a LI\u{212a}E 'x'", "a == 1 L\u{130}M\u{130}T(1)", "n\u{131}l == null OR 1 \u{131}n a"] {
            #expect(throws: SluiceError.self) { try Query.parse(text) }
        }
        #expect(try Query.parse("\u{131}nf == 1").canonicalText == "\u{131}nf == 1")
    }

    @Test
    func `every node knows where it stands`() throws {
        let text =
            "NOT a.b[3].@count > 1 AND (SUBQUERY(c, $x, $x.d == {2, $0}).@count == 1 OR e GEOWITHIN geoBox([1, 2], [3, 4])) SORT(f ASC)"
        let tree = try Query.parse(text).tree
        var places: [String] = []
        func note(_ position: SourcePosition) { places.append(String(text.utf8.dropFirst(position.offset).prefix(4)) ?? "") }
        func visit(_ operand: SyntaxOperand) {
            note(operand.position)
            switch operand.kind {
            case .path(let path):
                for step in path.steps { note(step.position) }
                if path.suffix != nil { note(path.suffixPosition) }
            case .list(let members, _): members.forEach(visit)
            case .subqueryCount(let path, let variable, let inner):
                note(path.position)
                note(variable.position)
                visit(inner)
            case .shape(.box(let low, let high)):
                for point in [low, high] {
                    note(point.position)
                    note(point.longitude.position)
                    note(point.latitude.position)
                }
            default: break
            }
        }
        func visit(_ query: SyntaxQuery) {
            note(query.position)
            switch query.kind {
            case .and(let parts), .or(let parts): parts.forEach(visit)
            case .not(let inner): visit(inner)
            case .compare(let comparison):
                visit(comparison.left)
                note(comparison.position)
                visit(comparison.right)
            case .constant: break
            }
        }
        visit(tree.root)
        for suffix in tree.suffixes { note(suffix.position) }
        #expect(
            places == [
                "NOT ", "NOT ", "a.b[", "a.b[", "a.b[", "b[3]", "[3].", "@cou", "> 1 ", "1 AN", "SUBQ", "SUBQ", "SUBQ", "c, $", "$x, ",
                "$x.d", "$x.d", "$x.d", "d ==", "== {", "{2, ", "2, $", "$0})", "== 1", "1 OR", "e GE", "e GE", "e GE", "GEOW", "geoB",
                "[1, ", "1, 2", "2], ", "[3, ", "3, 4", "4]))", "SORT",
            ])
    }

    /// Realm's language has no quoted names, so that its words cannot be names there.
    @Test(arguments: [
        "any", "ANY", "some", "all", "none", "not", "NOT", "and", "Or", "obj", "subquery", "true", "FALSE", "null", "Nil", "inf", "NaN",
        "geoBox", "truepredicate", "in", "text", "sort", "size", "a b", "a.b", "O12", "5f", "größe",
    ])
    func `a name between backquotes is a property's name, whatever word it is`(name: String) throws {
        for text in ["`\(name)` == 1", "x.`\(name)`.y == 1", "ANY `\(name)`.@count == 1", "x.@sum.`\(name)` == 1"] {
            let query = try Query.parse(text)
            let again = try Query.parse(query.canonicalText)
            #expect(again == query && again.canonicalText == query.canonicalText, "\(text): \(query.canonicalText)")
        }
        let type = ObjectType(name: "T", properties: [Property(id: 1, name: "_id", type: .int), Property(id: 2, name: name, type: .int)])
        let predicate = try Query.parse("`\(name)` == 1").predicate(on: type, in: Schema([type]))
        #expect(predicate.matches([name: .int(1)]) && !predicate.matches([name: .int(2)]))
    }
}
