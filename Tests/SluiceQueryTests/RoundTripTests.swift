import SluiceCore
import TestSupport
import Testing

@testable import SluiceQuery

/// What is printed parses back to what was printed, and nothing else prints like it: subscriptions are kept by their text.
struct RoundTripTests {
    @Test(arguments: seeds(2))
    func `every tree prints to a text that parses back to it`(_ seed: UInt64) throws {
        var writer = TreeWriter(random: SplitMix64(seed: seed))
        for _ in 0..<2_000 {
            let tree = writer.tree()
            let text = CanonicalPrinter.print(tree)
            do throws(SluiceError) {
                let query = try Query.parse(text)
                #expect(query.tree == tree, "seed \(seed): \(text)")
                #expect(query.canonicalText.utf8.elementsEqual(text.utf8), "seed \(seed): \(text)")
            } catch { Issue.record("seed \(seed): \(error) in \(text)") }
        }
    }

    @Test(arguments: seeds(2))
    func `different trees never print alike`(_ seed: UInt64) {
        var writer = TreeWriter(random: SplitMix64(seed: seed), isNarrow: true)
        var printed: [[UInt8]: SyntaxTree] = [:]
        var trees: Set<SyntaxTree> = []
        for _ in 0..<6_000 {
            let tree = writer.tree()
            let text = Array(CanonicalPrinter.print(tree).utf8)
            trees.insert(tree)
            if let other = printed[text] {
                #expect(other == tree, "seed \(seed): \(String(decoding: text, as: UTF8.self))")
            } else {
                printed[text] = tree
            }
        }
        #expect(printed.count == trees.count, "seed \(seed): equal trees print alike")
        #expect(trees.count > 1_000, "seed \(seed): the trees are too much alike to show anything")
    }

    /// Every byte as binary data and as broken text, every code point up to U+02FF, and what is said to break software.
    @Test
    func `all bytes and naughty texts survive wherever a text can stand`() throws {
        func check(_ operand: SyntaxOperand.Kind) throws {
            let comparison = SyntaxComparison(
                left: SyntaxOperand(kind: .path(SyntaxPath(steps: [PathStep(.name("a"))])), position: .unknown), comparison: .equal,
                foldsCase: false, right: SyntaxOperand(kind: operand, position: .unknown), position: .unknown)
            let tree = SyntaxTree(root: SyntaxQuery(.compare(comparison)), suffixes: [])
            let text = CanonicalPrinter.print(tree)
            #expect(try Query.parse(text).tree == tree, "\(text)")
            #expect(text.utf8.allSatisfy { $0 >= 32 && $0 != 127 }, "control characters are never printed")
        }
        for byte in UInt8.min...UInt8.max {
            for bytes in [[byte], [0x41, byte], [byte, 0x22], [byte, 0xFF]] {
                try check(.literal(.binary(bytes)))
                try check(.literal(String(validating: bytes, as: UTF8.self).map { .string($0) } ?? .bytes(bytes)))
            }
        }
        let points = (0..<0x300).compactMap { Unicode.Scalar($0) }.map { "a\($0)b" }
        for text in points + TreeWriter.texts {
            try check(.literal(.string(text)))
            try check(.path(SyntaxPath(steps: [PathStep(.name("d")), PathStep(.key(text))])))
            try check(.object(type: SyntaxName(text), key: SyntaxOperand(kind: .literal(.string(text)), position: .unknown)))
        }
    }

    /// The canonical text has parentheses where precedence did without; a query at the limit must not print to one beyond it.
    @Test(arguments: [
        ("NOT ", "a == 1", ""), ("!", "a == 1 or b == 2", ""), ("(", "a == 1 or b == 2 and c == 3", ")"),
        ("!(", "a == 1 and b == 2 or c == 3", ")"),
        ("(a == 1 or b == 2 and ", "c == 3", ")"), ("(a + b * ", "c", ") == 1"), ("(", "a * b * c + d * e", ")"), ("((", "a + b", "))"),
        ("SUBQUERY(a, $x, b == 1 or c == 1 and ", "d == 1", ").@count == 0"),
    ])
    func `what is nested as deeply as can be prints to a query`(_ parts: (String, String, String)) throws {
        var deepest = 0
        for depth in 1...120 {
            func repeated(_ text: String) -> String { String(repeating: text, count: depth) }
            let isCalculation = parts.1.contains("*") || parts.2.contains("==") || parts.1 == "a + b"
            var text = repeated(parts.0) + parts.1 + repeated(parts.2.replacing(" == 1", with: ""))
            if isCalculation, !parts.0.hasPrefix("SUBQUERY") { text += " == 1" }
            do throws(SluiceError) {
                let query = try Query.parse(text)
                deepest = depth
                #expect(try Query.parse(query.canonicalText) == query, "\(text)")
            } catch { #expect(error.message.contains("nested deeper") || error.message.contains("calculation"), "\(text): \(error)") }
        }
        #expect((30...100).contains(deepest), "\(deepest)")
    }

    @Test
    func `canonical text does not change between releases`() throws {
        let texts = [
            ("a=1&&b<>'x'||!(c IN{1,2})", #"(a == 1 and b != "x") or !(c IN {1, 2})"#),
            ("ANY a.b[0]['k'].@keys CONTAINS[c] \"it's\"", #"ANY a.b[0]["k"].@keys CONTAINS[c] B64"aXQncw==""#),
            ("not a BETWEEN {1.50,+2e3} or truepredicate", "!(a BETWEEN {1.50, 2e3}) or TRUEPREDICATE"),
            ("a + (b - c) * -2 == nil", "a + ((b - c) * -2) == NULL"),
            ("subquery(a,$x,$x.b=obj('class_C',$0)).@size>0x10", #"SUBQUERY(a, $x, $x.b == obj("C", $0)).@count > 16"#),
            ("a.@avg.b <= 1.5F_".replacing("F_", with: "f"), "a.@avg.b <= 1.5f"),
            (
                "a=2026-11-21@10:30:00:7 and b=UUID_".replacing("UUID_", with: "uuid(01234567-89AB-CDEF-0123-456789ABCDEF)"),
                "a == T1795257000:7 and b == uuid(01234567-89ab-cdef-0123-456789abcdef)"
            ),
            ("a geowithin GEOCIRCLE([1,2,3.5],$1)", "a GEOWITHIN geoCircle([1, 2, 3.5], $1)"),
            (
                "my\\ name=bin('x') sort(a asc,b.c DESC)distinct(d)LIMIT(05)",
                #"my\ name == binary(B64"eA==") SORT(a ASC, b.c DESC) DISTINCT(d) LIMIT(5)"#
            ),
            ("a=-INF||a=-nan||a=O1||a IN{O1,L2:3}", "a == -inf or a == nan or a == O1 or a IN {O1, L2:3}"),
        ]
        for (text, canonical) in texts { #expect(try Query.parse(text).canonicalText == canonical) }
    }
}
