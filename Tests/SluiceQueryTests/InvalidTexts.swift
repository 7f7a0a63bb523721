/// Texts that are no queries: where each one fails, and the beginning of what the error says there.
enum InvalidTexts {
    struct Case: Sendable {
        let text: String
        let line: Int
        let column: Int
        let sentence: String

        init(_ text: String, _ column: Int, _ sentence: String, line: Int = 1) {
            self.text = text
            self.line = line
            self.column = column
            self.sentence = sentence
        }
    }

    static let groups = words + forms

    static let end = "expected AND, OR, SORT, DISTINCT, LIMIT or the end of the query"
    static let comparison = "expected a comparison operator (a property alone is no condition; write '== true')"
    static let value = "expected a property or a value"

    private static let words: [(name: String, cases: [Case])] = [
        (
            "strings",
            [
                Case("a == 'x", 6, "this string has no closing quote"),
                Case("a == \"x", 6, "this string has no closing quote"),
                Case("a == 'x\"", 6, "this string has no closing quote"),
                Case(
                    "a == '\\x'", 7, "there is no such escape in a string; these exist: \\\" \\' \\/ \\b \\f \\n \\r \\t \\0 \\\\ \\uHHHH"),
                Case("a == '\\'", 6, "this string has no closing quote"),
                Case("a == '\\u12'", 7, "\\u takes four hexadecimal digits"),
                Case("a == '\\u12G4'", 7, "\\u takes four hexadecimal digits"),
                Case("a == '\\", 6, "this string has no closing quote"),
                Case(
                    "a == '\\ '", 7, "there is no such escape in a string; these exist: \\\" \\' \\/ \\b \\f \\n \\r \\t \\0 \\\\ \\uHHHH"),
                Case("a == B64\"?\"", 6, "what stands between the quotes is not base64"),
                Case("a == B64\"YQ\"", 6, "what stands between the quotes is not base64"),
                Case("a == B64\"YQ", 6, "this string has no closing quote"),
                Case("a == B64'YQ=='", 9, end + ", found ''YQ==''"),
                Case("a == '\nb\n", 6, "this string has no closing quote"),
                Case("a == ''x", 8, end + ", found 'x'"),
            ]
        ),
        (
            "names and numbers",
            [
                Case("1a == 1", 2, comparison + ", found 'a'"),
                Case("a b == 1", 3, comparison + ", found 'b'"),
                Case("a == 1.2.3", 9, end + ", found '.3'"),
                Case("a == 1e", 7, end + ", found 'e'"),
                Case("a == 1e+", 7, end + ", found 'e'"),
                Case("a == --1", 6, value + ", found '-'"),
                Case("a == +-1", 6, value + ", found '+'"),
                Case("a == 0x", 7, end + ", found 'x'"),
                Case("a == 0xG", 7, end + ", found 'xG'"),
                Case("a == 0x1FFFFFFFFFFFFFFFF", 6, "this number has more than 64 bits"),
                Case("a == -0x1", 8, end + ", found 'x1'"),
                Case("`a == 1", 1, "this name has no closing backquote"), Case("`` == 1", 1, "a name between backquotes has characters"),
                Case("a == 1.5ff", 10, end + ", found 'f'"),
                Case("a == .", 6, value + ", found '.'"),
                Case("a..b == 1", 3, "expected a property's name after '.', found '.'"),
                Case(".a == 1", 1, value + ", found '.'"),
                Case("a.b. == 1", 6, "expected a property's name after '.', found '=='"),
                Case("a.1 == 1", 2, comparison + ", found '.1'"),
                Case("\\ a == 1", 1, "the character '\\' has no meaning here"),
                Case("a\\xb == 1", 2, "the character '\\' has no meaning here"),
                Case("-a == 1", 1, value + ", found '-'"),
                Case("a == $99999999999", 6, "there cannot be so many arguments"),
                Case("a == 12_3", 8, end + ", found '_3'"),
                Case("null.a == 1", 5, comparison + ", found '.'"),
                Case("nan.a == 1", 4, comparison + ", found '.'"),
                Case("a == tRue1 b", 12, end + ", found 'b'"),
            ]
        ),
        (
            "operators",
            [
                Case("a === 1", 5, value + ", found '='"),
                Case("a == == 1", 6, value + ", found '=='"),
                Case("a ! = 1", 3, comparison + ", found '!'"),
                Case("a < = 1", 5, value + ", found '='"),
                Case("a =! 1", 4, value + ", found '!'"),
                Case("a >> 1", 4, value + ", found '>'"),
                Case("a << 1", 4, value + ", found '<'"),
                Case("a ~ 1", 3, "the character '~' has no meaning here"),
                Case("a % 2 == 0", 3, "the character '%' has no meaning here"),
                Case("a == 1; b == 2", 7, "the character ';' has no meaning here"),
                Case("a == #1", 6, "the character '#' has no meaning here"),
                Case("a ** 2 == 1", 4, value + ", found '*'"),
                Case("a + + b == 1", 5, value + ", found '+'"),
                Case("a ==", 5, value + ", the query ends"),
                Case("== 1", 1, value + ", found '=='"),
                Case("a == 1 ==", 8, end + ", found '=='"),
                Case("a == 1 == 1", 8, end + ", found '=='"),
                Case("a < 1 < 2", 7, end + ", found '<'"),
                Case("a", 2, comparison + ", the query ends"),
                Case("a && b", 3, comparison + ", found '&&'"),
                Case("true", 5, comparison + ", the query ends"),
                Case("null", 5, comparison + ", the query ends"),
                Case("$0", 3, comparison + ", the query ends"),
                Case("'a'", 4, comparison + ", the query ends"),
                Case("a + 1", 6, comparison + ", the query ends"),
                Case("{1, 2}", 7, comparison + ", the query ends"),
            ]
        ),
        (
            "groups",
            [
                Case("()", 2, value + ", found ')'"),
                Case("(", 2, value + ", the query ends"),
                Case("a == 1)", 7, end + ", found ')'"),
                Case("(a == 1", 8, "expected AND, OR or ')', the query ends"),
                Case("((a == 1)", 10, "expected AND, OR or ')', the query ends"),
                Case("(a == 1))", 9, end + ", found ')'"),
                Case("(a == 1) (b == 2)", 10, end + ", found '('"),
                Case("(a == 1) + 2 == 3", 1, "expected a value, found a condition"),
                Case("(a == 1) == true", 1, "expected a value, found a condition"),
                Case("a == (b == 1)", 6, "expected a value, found a condition"),
                Case("a == (1", 8, "expected a comparison operator or ')', the query ends"),
                Case("a + (b == 1) == 2", 5, "expected a value, found a condition"),
                Case("NOT", 4, value + ", the query ends"),
                Case("not", 4, value + ", the query ends"),
                Case("NOT (a + 1)", 12, comparison + ", the query ends"),
                Case("(a", 3, "expected a comparison operator or ')', the query ends"),
                Case("(a == 1 OR) b == 2", 11, value + ", found ')'"),
                Case("(a == 1 SORT(b ASC))", 9, "expected AND, OR or ')', found 'SORT'"),
            ]
        ),
        (
            "compounds",
            [
                Case("a & b == 1", 3, "the character '&' has no meaning here"),
                Case("a | b == 1", 3, "the character '|' has no meaning here"),
                Case("a == 1 & b == 2", 8, "the character '&' has no meaning here"),
                Case("a == 1 | b == 2", 8, "the character '|' has no meaning here"),
                Case("a == 1 &&& b == 2", 10, "the character '&' has no meaning here"),
                Case("a == 1 ||| b == 2", 10, "the character '|' has no meaning here"),
                Case("a == 1 AND", 11, value + ", the query ends"),
                Case("AND a == 1", 1, value + ", found 'AND'"),
                Case("a == 1 AND AND b == 2", 12, value + ", found 'AND'"),
                Case("a == 1 OR AND b == 2", 11, value + ", found 'AND'"),
                Case("|| a == 1", 1, value + ", found '||'"),
                Case("a == 1 NOT b == 2", 8, end + ", found 'NOT'"),
                Case("a == 1 aNd", 11, value + ", the query ends"),
            ]
        ),
        (
            "missing blanks",
            [
                Case("a==aORa==a", 8, end + ", found '=='"),
                Case("a == 1OR b == 2OR", 18, value + ", the query ends"),
                Case("a==1ANDb==2", 5, end + ", found 'ANDb'"),
                Case("a==aAND b==2", 9, end + ", found 'b'"),
                Case("NOTa==1 b", 9, end + ", found 'b'"),
                Case("a -1 == 2", 3, comparison + ", found '-1'"),
                Case("1-0 == 1", 2, comparison + ", found '-0'"),
                Case("a == 1 b == 2", 8, end + ", found 'b'"),
                Case("a == 'x'AND", 12, value + ", the query ends"),
                Case("aBEGINSWITH 'x'", 13, comparison + ", found ''x''"),
                Case("a BEGINSWITHb", 3, comparison + ", found 'BEGINSWITHb'"),
                Case("a IN{1}{2}", 8, end + ", found '{'"),
                Case("a == 1 TRUEPREDICATE", 8, end + ", found 'TRUEPREDICATE'"),
                Case("TRUEPREDICATE FALSEPREDICATE", 15, end + ", found 'FALSEPREDICATE'"),
                Case("TRUEPREDICATE == 1", 15, end + ", found '=='"),
            ]
        ),
        (
            "case flags",
            [
                Case("a < [c] 1", 5, "'<' does not take [c]"),
                Case("a <[c] 'x'", 4, "'<' does not take [c]"),
                Case("a >=[c] 'x'", 5, "'>=' does not take [c]"),
                Case("a BETWEEN[c] {1, 2}", 10, "'BETWEEN' does not take [c]"),
                Case("a == [C] 'x'", 6, value + ", found '['"),
                Case("a ==[d] 'x'", 5, value + ", found '['"),
                Case("a ==[cd] 'x'", 5, value + ", found '['"),
                Case("a ==[ c ] 'x'", 5, value + ", found '['"),
                Case("a [c] == 'x'", 3, comparison + ", found '[c]'"),
                Case("a TEXT[c] 'x'", 7, "'TEXT' does not take [c]"),
                Case("a ==[c][c] 'x'", 8, value + ", found '[c]'"),
            ]
        ),
        (
            "IN and lists",
            [
                Case("a IN (1, 2)", 8, "expected a comparison operator or ')', found ','"),
                Case("a IN [1, 2]", 6, value + ", found '['"),
                Case("a IN {1 2}", 9, "expected ',' or '}', found '2'"),
                Case("a IN {1,}", 9, "expected a constant in the list, found '}'"),
                Case("a IN {,}", 7, "expected a constant in the list, found ','"),
                Case("a IN {b}", 7, "expected a constant in the list, found 'b'"),
                Case("a IN {1, b}", 10, "expected a constant in the list, found 'b'"),
                Case("a IN {1, b.c}", 10, "expected a constant in the list, found 'b'"),
                Case("a IN {{1}}", 7, "expected a constant in the list, found '{'"),
                Case("a IN {1, {2}}", 10, "expected a constant in the list, found '{'"),
                Case("a IN", 5, value + ", the query ends"),
                Case("IN {1}", 4, comparison + ", found '{'"),
                Case("a IN {1", 8, "expected ',' or '}', the query ends"),
                Case("a IN 1, 2", 7, end + ", found ','"),
                Case("a NOT IN {1}", 3, comparison + ", found 'NOT'"),
                Case("a IN {ANY b}", 11, "expected an argument after ANY, found 'b'"),
                Case("a IN {1 + 1}", 9, "expected ',' or '}', found '+'"),
                Case("a == {1, 2", 11, "expected ',' or '}', the query ends"),
                Case("a == }", 6, value + ", found '}'"),
                Case("ANY {1} {2} == a", 9, comparison + ", found '{'"),
            ]
        ),
    ]
}
