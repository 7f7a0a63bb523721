/// Texts of about a size that are as costly as we know how to make them, one for each thing that could take more than linear time.
/// `make fuzz` times them, the tests count.
enum WorstCases {
    static func texts(bytes: Int) -> [(name: String, text: String)] {
        /// A piece written so often that the text gets its size, between a beginning and an end.
        func filled(_ start: String, _ piece: String, _ end: String = "") -> String {
            start + String(repeating: piece, count: max(0, (bytes - start.utf8.count - end.utf8.count) / piece.utf8.count)) + end
        }
        return literals(filled) + structures(filled) + broken(filled)
    }

    private typealias Filled = (String, String, String) -> String

    private static func literals(_ filled: Filled) -> [(name: String, text: String)] {
        [
            ("long name", filled("", "n", " == 1")),
            ("long name of two-byte letters", filled("", "é", " == 1")),
            ("name of escaped blanks", filled("n", "\\ ", " == 1")),
            ("name of combining marks", filled("e", "\u{301}", " == 1")),
            ("name of marks out of order", filled("e", "\u{301}\u{316}", " == 1")),
            ("long path", filled("a", ".a", " == 1")),
            ("path of indices", filled("a", "[0]", " == 1")),
            ("path of keys", filled("a", "[' ']", " == 1")),
            ("long string", filled("name == '", "x", "'")),
            ("string of escapes", filled("name == '", "\\n", "'")),
            ("string of combining marks", filled("name == 'e", "\u{301}", "'")),
            ("long base64", filled("name == B64\"", "YQo0", "\"")),
            ("long number", filled("number == ", "7", "")),
            ("long fraction", filled("price == 0.", "7", "")),
            ("long exponent", filled("price == 1e", "7", "")),
            ("long hexadecimal", filled("number == 0x", "7", "")),
            ("long date", filled("at == 2026-1-1@1:1:1:", "7", "")),
            ("dates that are none", filled("number IN {1", "-1-1-1", "}")),
            ("long argument", filled("number == $", "7", "")),
        ]
    }

    private static func structures(_ filled: Filled) -> [(name: String, text: String)] {
        let deep = String(repeating: "!(", count: 90)
        let inner = filled("number == 1", " or number == 1", String(repeating: " ", count: 4 * 90))
        let levels = (0..<45).map { "(number == \($0) or (flag == true and " }.joined()
        return [
            ("list of ones", filled("number IN {1", ",1", "}")),
            ("list of different numbers", filled("number IN {1", ",18,27,36,45,54,63", "}")),
            ("list of fractions for decimals", filled("price IN {1.", ",.1", "}")),
            ("list of the least decimals", filled("price IN {1E-999999", ",1E-999999", "}")),
            ("list of strings", filled("name IN {''", ",''", "}")),
            ("unequal list", filled("number != {1", ",1", "}")),
            ("ORs", filled("number=1", "||number=1", "")),
            ("ANDs", filled("number=1", "&&number=1", "")),
            ("different ORs", filled("number=1", "||other<9&&flag=true", "")),
            ("negations", filled("!number=1", "||!number=1", "")),
            ("LIKE of stars", filled("name LIKE '", "*a", "'")),
            ("deep, then wide", deep + inner + String(repeating: ")", count: 90)),
            (
                "deep and wide",
                levels + filled("number=1", "||other=1", String(repeating: " ", count: 1_800)) + String(repeating: "))", count: 45)
            ),
            ("keys times conditions", filled("(store='a'&&number=1", "||store='b'&&other=2", ")&&flag=true&&ratio>1")),
            ("many sums", filled("number+1=1", "||number+1=1", "")),
            ("sort keys", filled("TRUEPREDICATE SORT(a ASC", ",a ASC", ")")),
            ("limits", filled("TRUEPREDICATE", " LIMIT(1)", "")),
            ("polygon", filled("place GEOWITHIN geoPolygon({[0,0]", ",[0,0]", "})")),
            ("subqueries", filled("tags.@count=0", "||SUBQUERY(a,$x,b=1).@count>0", "")),
        ]
    }

    /// Texts that are refused at their end, or at their beginning for what stands at the end.
    private static func broken(_ filled: Filled) -> [(name: String, text: String)] {
        [
            ("parentheses", filled("", "(", "")),
            ("negation signs", filled("", "!", "")),
            ("objects as keys", filled("number == ", "obj('',", "")),
            ("braces", filled("number IN ", "{", "")),
            ("sum", filled("a", " + a", " == 1")),
            ("blanks", filled("", " ", "")),
            ("lines", filled("", "\n", "")),
            ("lines of conditions", filled("number=1", "\n&&number=1", "\n)")),
            ("one line and an error at its end", filled("number=1", "||number=1", "||")),
            ("string without end", filled("name == '", "x", "")),
            ("base64 without end", filled("name == B64\"", "YQo0", "")),
            ("unknown long name", filled("", "nam", " == 1")),
            ("IN with a long right side", filled("number IN name", "\\ ", "")),
            ("binary data as text", filled("", "\u{1}", "")),
        ]
    }
}
