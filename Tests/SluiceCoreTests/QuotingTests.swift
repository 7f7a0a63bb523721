import SluiceCore
import TestSupport
import Testing

/// Names and texts in SQL, read back as the databases' scanners read them: byte by byte.
@Suite struct `Quoting for SQL` {
    /// What a scanner takes out of quotes in which a doubled byte is one; nil if the text ends before or behind them.
    private static func read(_ text: String, in quote: Character, doubled: Set<Character> = []) -> [UInt8]? {
        guard let quote = quote.asciiValue else { return nil }
        let doubled = Set(doubled.compactMap(\.asciiValue)).union([quote])
        let bytes = Array(text.utf8)
        guard bytes.count >= 2, bytes.first == quote, bytes.last == quote else { return nil }
        var (inside, index) = ([UInt8](), 1)
        while index < bytes.count - 1 {
            let byte = bytes[index]
            if doubled.contains(byte) {
                index += 1
                guard index < bytes.count - 1, bytes[index] == byte else { return nil }
            }
            inside.append(byte)
            index += 1
        }
        return inside
    }

    /// Texts that a comparison of characters would not see the quote in, too.
    private static func text(_ generator: inout SplitMix64) -> String {
        let scalars: [Unicode.Scalar] = ["'", "\"", "\\", "\u{301}", "a", " ", ";", "-", "\n", "水", "$", "\u{200D}"]
        return String(String.UnicodeScalarView((0..<generator.below(12)).map { _ in generator.pick(scalars) }))
    }

    @Test(arguments: seeds(10)) func `reads back to the same bytes, whatever the text`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<500 {
            let text = Self.text(&generator)
            let bytes = Array(text.utf8)
            #expect(Self.read(SQLQuote.identifier(text), in: "\"") == bytes, "seed \(seed): \(text)")
            #expect(Self.read(SQLQuote.sqliteLiteral(text), in: "'") == bytes, "seed \(seed): \(text)")
            let literal = SQLQuote.postgresLiteral(text)
            // A backslash doubles only in PostgreSQL's own form of a constant, which the letter in front selects.
            let hasEscapes = literal.utf8.first == UInt8(ascii: "E")
            #expect(hasEscapes == text.utf8.contains(UInt8(ascii: "\\")), "seed \(seed): \(text)")
            let quoted = hasEscapes ? String(decoding: literal.utf8.dropFirst(), as: UTF8.self) : literal
            #expect(Self.read(quoted, in: "'", doubled: hasEscapes ? ["\\"] : []) == bytes, "seed \(seed): \(text)")
        }
    }

    @Test func `is as the databases' manuals write it`() {
        #expect(SQLQuote.identifier("a\"b") == "\"a\"\"b\"")
        #expect(SQLQuote.postgresLiteral("it's") == "'it''s'")
        #expect(SQLQuote.postgresLiteral("C:\\new") == "E'C:\\\\new'")
        #expect(SQLQuote.sqliteLiteral("C:\\new") == "'C:\\new'")
        #expect(SQLQuote.connectionValue("it's a \\") == "'it\\'s a \\\\'")
        #expect(SQLQuote.connectionValue("") == "''")
    }

    @Test func `escapes a quote that a combining mark makes part of another character`() {
        #expect(Array(SQLQuote.sqliteLiteral("'\u{301}").utf8) == Array("'''\u{301}'".utf8))
        #expect(Array(SQLQuote.identifier("\"\u{301}").utf8) == Array("\"\"\"\u{301}\"".utf8))
    }
}
