/// Texts that are queries, by what they show; nothing is said about types.
enum ValidTexts {
    static let groups: [(name: String, texts: [String])] = [
        (
            "constants and predicates",
            [
                "TRUEPREDICATE", "truePredicate", "FALSEPREDICATE", "falsepredicate", "(TRUEPREDICATE)", "!TRUEPREDICATE",
                "TRUEPREDICATE and FALSEPREDICATE",
            ]
        ),
        (
            "spellings of operators",
            [
                "a == 1", "a = 1", "a != 1", "a <> 1", "a < 1", "a <= 1", "a =< 1", "a > 1", "a >= 1", "a => 1", "1 == a", "1 < a", "a=1",
                "a<1&&b>2", "a ==1", "a== 1", "\ta\r\n==\n1 ",
            ]
        ),
        (
            "numbers",
            [
                "a == 0", "a == 007", "a == -1", "a == +1", "a == 9223372036854775807", "a == -9223372036854775808",
                "a == 99999999999999999999", "a == 0xFF", "a == 0Xff", "a == 0xFFFFFFFFFFFFFFFF", "a == 1.5", "a == 10.", "a == .5",
                "a == -.034", "a == +.5", "a == 1e5", "a == 1E-5", "a == .5e+3", "a == 1.e3", "a == 1.5f", "a == 10.f", "a == 1e2f",
                "a == 5f", "a == -1f", "a == +7f",
                "a == -2.5E-3f", "a == inf", "a == -Infinity", "a == +INF", "a == nan", "a == NaN", "a == -nan", "a == +NAN",
            ]
        ),
        (
            "strings and binary",
            [
                "a == ''", "a == \"\"", "a == 'x'", "a == \"x\"", "a == 'say \"hi\"'", "a == \"it's\"", "a == 'it\\'s'",
                "a == '\\\"\\'\\/\\b\\f\\n\\r\\t\\0\\\\'", "a == '\\u00e9\\uABCD'", "a == 'two\nlines'", "a == 'tab\there'",
                "a == '日本語 🦄'", "a == '[c]'", "a == B64\"\"", "a == B64\"YQ==\"", "a == B64\"/w==\"", "a == binary('x')",
                "a == BIN(\"x\")", "a == Binary(B64\"/w==\")", "a == bin('')",
            ]
        ),
        (
            "times, identifiers and links",
            [
                "a == T12:34", "a == T0:0", "a == T-12:-34", "a == T+5:+6", "a == 2026-11-21@10:00:00", "a == 2026-11-21T10:00:00:5",
                "a == 2026-1-2@3:4:5:006", "a == 1969-12-31@23:59:59:1", "a == oid(0123456789abcdef01234567)",
                "a == oid(0123456789ABCDEF01234567)", "a == uuid(01234567-89AB-cdef-0123-456789abcdef)", "a == obj('B', 1)",
                "a == obj(\"class_B\", oid(0123456789abcdef01234567))", "a == OBJ('B', 'key')",
                "a == obj('B', uuid(01234567-89ab-cdef-0123-456789abcdef))", "obj('B', $0) IN a", "a == L1:2", "a == L-1:+2",
                "a IN {O1, O-2}", "a == O1",
            ]
        ),
        (
            "words that are constants",
            [
                "a == true", "a == TRUE", "a == false", "a == FALSE", "a == null", "a == NULL", "a == NIL", "a == Nil", "null == a",
            ]
        ),
        (
            "arguments",
            [
                "a == $0", "a == $1", "a == $002", "a IN $1", "a == ANY $0", "a == ALL $0", "NONE $0 == a", "a IN {$0, 1}",
                "a IN {ANY $0}", "a BETWEEN {$0, $1}", "a.b[$0] == 1", "$K0 == 1", "$K1.b == 1", "ANY $K0 == 1", "a GEOWITHIN $0",
            ]
        ),
        (
            "names",
            [
                "_a == 1", "$a == 1", "$ == 1", "$-1 == 1", "a-1 == 2", "a_b$c == 1", "é == 1", "日本 == '語'", "🦄 == 1",
                "first\\ name == 'x'", "a\\nb\\r\\tc == 1", "NOT0=0", "Not == 1", "Any == 1", "True == 1", "T2017-12-04 == 1", "B64 == 1",
                "uuid == 1", "oid == 1", "infinite == 1", "nullable == 1", "order == 1", "L1 == 1", "ANDy == 1",
            ]
        ),
        (
            "keywords as names",
            [
                "sort == 1", "distinct == 1", "limit == 1", "in == 1", "in IN {1}", "contains == 1", "contains CONTAINS 'x'",
                "beginswith BEGINSWITH 'a'", "endswith == 1", "like LIKE 'x'", "between BETWEEN {1, 2}", "text == 'x'", "text TEXT 'x'",
                "binary == 1", "bin == 1", "size == 1", "first == 1", "last == 1", "asc == desc", "a.sort.limit == 1",
                "a.first[FIRST] == 1", "@keys == 1", "@links.B.c == 1",
            ]
        ),
        (
            "paths",
            [
                "a.b == 1", "a.b.c.d.e == 1", "a . b == 1", "a[0] == 1", "a[0][1].b == 1", "a[FIRST] == 1", "a[last].b == 1", "a[*] == 1",
                "a['k'] == 1", "a[\"it's\"]['x'].y == 1", "a[SIZE] == 1", "a[size] > 2", "a.b[SIZE] == 0", "a.@count == 1", "a.@size > 1",
                "a.@type == 'int'", "a.@keys == 'x'", "ANY a.@values > 1", "a.@links.B.c == 1", "@links.B.c.@count == 0",
                "@links.@count == 0", "ALL a.b.@values[0] == 1",
            ]
        ),
        (
            "quantifiers",
            [
                "ANY a == 1", "any a == 1", "SOME a > 1", "some a > 1", "ALL a IN {1}", "all a.b == 1", "NONE a == $0", "none a.b < 2",
                "a == ANY {1, 2}", "ANY {1, 2} == ANY a", "ALL {} != a", "NONE {1} == NONE a", "ALL a BETWEEN {1, 2}",
                "ANY a CONTAINS 'x'",
            ]
        ),
        (
            "lists",
            [
                "a IN {}", "a IN {1}", "a in {1,2,3}", "a IN[c] {'x', \"y\"}", "a == {1, 2}", "{1, 2} == a",
                "{1, 'x', null, true, 1.5, T0:0} == a", "1 IN a", "{1} IN a", "a < {1, 2}", "a IN {-1, +2, 0x3, nan, inf}",
                "a IN {obj('B', 1), binary('x')}",
            ]
        ),
        (
            "text operators",
            [
                "a BEGINSWITH 'x'", "a beginsWith 'x'", "a ENDSWITH[c] 'x'", "a contains [c] 'x'", "a LIKE 'x*?'", "a like[c] b",
                "a ==[c] 'x'", "a = [c] 'x'", "a !=[c] 'x'", "a <>[c] 'x'", "'x' CONTAINS a", "null LIKE a", "a CONTAINS $0",
                "a CONTAINS {'x', 'y'}", "a TEXT 'x -y z*'", "a CONTAINS binary('x')",
            ]
        ),
        (
            "between",
            [
                "a BETWEEN {1, 2}", "a between {-1.5, 2e3}", "a BETWEEN {'a', 'b'}", "a BETWEEN ANY {1, 2}", "a BETWEEN {1}",
                "a BETWEEN {}",
            ]
        ),
        (
            "aggregates and subqueries",
            [
                "a.@min == 1", "a.@max.b == 1", "a.@avg > 0.5", "a.@sum.b == 1", "a.b.@sum.c < a.@max.c", "a.@avg.sort > 1",
                "SUBQUERY(a, $x, $x.b == 1).@count > 0", "subquery(a.b, $xy, $xy.c == 1 and $xy.d == 2).@size == 1",
                "SUBQUERY(@links.B.c, $x, TRUEPREDICATE).@count == 0",
                "SUBQUERY(a, $x, SUBQUERY($x.b, $y, $y.c == $x.d).@count > 1).@count > 0",
                "SUBQUERY(a[0], $x, $x == 1).@count == SUBQUERY(b, $x, $x == 1).@count",
            ]
        ),
        (
            "calculations",
            [
                "a + 1 == 2", "a - 1 == 2", "(a + 1) * 2 == 4", "a + b - c == d", "a / 2 > 1 and b == 1", "1 + 2 * 3 == a", "(a) == (1)",
                "((a)) < ((b))", "a * (b + c) / 2 == -1", "(a + b) IN {1, 2}", "a.@count + 1 > b.@max.c * 2", "(1 - 0) == a",
            ]
        ),
        (
            "AND, OR, NOT",
            [
                "a == 1 && b == 2", "a == 1 AND b == 2", "a == 1 and b == 2 And c == 3", "a == 1 || b == 2", "a == 1 OR b == 2 oR c == 3",
                "a=1AND b=2", "a=1||b=2&&c=3", "NOT a == 1", "not a == 1", "!a == 1", "!(a == 1)", "not not a == 1", "!!a=1",
                "NOT(a == 1 OR b == 2)", "not -1 = a", "NOT TRUEPREDICATE OR a == 1",
            ]
        ),
        (
            "groups",
            [
                "(a == 1)", "((a == 1))", "(((a == 1)))", "(a == 1 OR b == 2) AND c == 3", "(a==1)and(b==2)", "( a == 1 ) || ( b == 2 )",
                "((a == 1 AND (b == 2)) OR ((c == 3)))", "(!(a == 1))",
            ]
        ),
        (
            "shapes",
            [
                "a GEOWITHIN geoBox([1.0, 2], [3, 4])", "a geowithin GEOBOX([-1.5, .5], [$0, $1])", "a GEOWITHIN geoCircle([1, 2], 0.1)",
                "a GEOWITHIN geocircle([1, 2, 3.5], $0)", "a GEOWITHIN geoPolygon({[0, 0], [1, 0], [1, 1], [0, 0]})",
                "a.b GEOWITHIN geoPolygon({[0, 0], [4, 0], [4, 4], [0, 0]}, {[1., 1.], [2., 1.], [2., 2.], [1., 1.]})",
                "ANY a GEOWITHIN geoCircle([-0.0, 1e1], 1.5f)",
            ]
        ),
        (
            "SORT, DISTINCT, LIMIT",
            [
                "a == 1 SORT(b ASC)", "a == 1 sort(b ascending)", "a == 1 SORT(b.c DESCENDING, d asc)", "a == 1 SORT(b[0] desc)",
                "a == 1 SORT(b.@keys ASC)", "TRUEPREDICATE SORT(a ASC) SORT(b DESC)", "a == 1 DISTINCT(b)", "a == 1 distinct(b, c.d)",
                "TRUEPREDICATE LIMIT(0)", "TRUEPREDICATE limit(5) LIMIT(3)", "a == 1 SORT(b ASC) DISTINCT(c) LIMIT(5)",
                "a == 1 LIMIT(5) DISTINCT(c) SORT(b ASC)", "(a == 1)SORT(b ASC)", "a == 1 SORT(sort DESC)", "a == 1 LIMIT(0012)",
                "a == 1 SORT($K0 ASC)",
            ]
        ),
    ]
}
