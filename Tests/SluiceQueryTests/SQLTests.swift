import SluiceCore
import SluiceQuery
import TestSupport
import Testing

/// The generated SQL: its text, and what a real database makes of it.
struct SQLTests {
    private func sql(_ text: String, _ dialect: SQLDialect, _ arguments: [Value] = [], first: Int = 1) throws -> SQLCondition {
        try Query.parse(text).predicate(on: Samples.type, in: Samples.schema, arguments: arguments).sql(dialect, firstParameter: first)
    }

    private func split(_ text: String, _ dialect: SQLDialect) throws -> SQLSplit {
        try Query.parse(text).predicate(on: Samples.type, in: Samples.schema).split(dialect)
    }

    @Test(arguments: [
        ("TRUEPREDICATE", "TRUE"), ("number == 1", "\"number\" = $1::bigint"), ("number != 1", "\"number\" IS DISTINCT FROM $1::bigint"),
        ("name > 'a'", "\"name\" COLLATE \"C\" > $1::text"), ("name == null", "\"name\" IS NULL"),
        ("NOT number > 1", "(\"number\" > $1::bigint) IS NOT TRUE"),
        ("number IN {1, 2}", "\"number\" = ANY($1::bigint[])"),
        ("number IN {null, 2, 3}", "(\"number\" = ANY($1::bigint[]) OR \"number\" IS NULL)"),
        ("NOT (number == 1 AND flag == true)", "((\"number\" = $1::bigint) IS NOT TRUE OR (\"flag\" = $2::boolean) IS NOT TRUE)"),
        ("name BEGINSWITH 'a'", "starts_with(\"name\", $1::text)"), ("name ENDSWITH 'né'", "right(\"name\", 2) = $1::text"),
        ("name CONTAINS 'a'", "strpos(\"name\", $1::text) > 0"), ("name LIKE 'a*_?'", "\"name\" LIKE $1::text"),
        ("name LIKE 'a*'", "starts_with(\"name\", $1::text)"), ("name LIKE '*a*'", "strpos(\"name\", $1::text) > 0"),
        ("ANY tags == 'x'", "\"tags\"::text[] @> $1::text[]"),
        ("NONE scores IN {1, 2}", "(\"scores\"::bigint[] && $1::bigint[]) IS NOT TRUE"),
        ("ANY tags CONTAINS 'x'", "EXISTS (SELECT FROM unnest(\"tags\") AS e(v) WHERE strpos(e.v, $1::text) > 0)"),
        ("ALL scores > 1", "NOT EXISTS (SELECT FROM unnest(\"scores\") AS e(v) WHERE (e.v > $1::bigint) IS NOT TRUE)"),
        ("tags.@count > 1", "coalesce(cardinality(\"tags\"), 0) > $1::bigint"),
        ("ratio > 1", "(\"ratio\" > $1::double precision AND \"ratio\" <> 'NaN'::double precision)"),
        ("price < 1.5", "\"price\" < $1::numeric"),
        ("at == T1:500", "FALSE"), ("at < T1:500", "\"at\" <= $1::timestamptz"),
        ("_id == oid(0123456789abcdef01234567)", "\"_id\" = $1::text"),
        ("friend == obj('Sample', oid(0123456789abcdef01234567))", "\"friend\" = $1::text"),
        ("number == other", "\"number\" IS NOT DISTINCT FROM \"other\""),
        ("number <= other", "(\"number\" <= \"other\" OR (\"number\" IS NULL AND \"other\" IS NULL))"),
    ])
    func `PostgreSQL's text`(_ query: String, _ expected: String) throws {
        #expect(try sql(query, .postgres).text == expected)
    }

    @Test
    func `parameters are numbered from where the caller says and carry their property's type`() throws {
        let condition = try sql(
            "number > 1 AND name IN {'a', 'b'} AND owner == uuid(00000000-0000-0000-0000-000000000001)", .postgres, first: 4)
        #expect(condition.text == "(\"number\" > $4::bigint AND \"name\" = ANY($5::text[]) AND \"owner\" = $6::uuid)")
        #expect(condition.parameters.map(\.type) == [.int, .string, .uuid])
        #expect(condition.parameters[1].value == .list([.string("a"), .string("b")]))
        let lite = try sql("number > 1 AND name IN {'a', 'b'}", .sqlite, first: 4)
        #expect(lite.text == "(\"number\" > ?4 AND \"name\" IN (?5, ?6))")
    }

    @Test
    func `no byte of a query's constants gets into the text`() throws {
        let hostile = "'; DROP TABLE x; -- \" $1 %"
        for comparison in ["==", "!=", "<", "CONTAINS", "BEGINSWITH", "ENDSWITH", "LIKE", "==[c]", "LIKE[c]"] {
            for dialect in [SQLDialect.postgres, .sqlite] {
                let text = try sql("name \(comparison) $0", dialect, [.string(hostile)]).text
                #expect(!text.contains("DROP"))
            }
        }
        let type = ObjectType(name: "T", properties: [Property(id: 1, name: "odd\"name", type: .int)])
        let predicate = Predicate(type: type, bound: .test(.property(0), Test(.equal, .int(1))))
        #expect(try predicate.sql(.sqlite).text == "\"odd\"\"name\" = ?1")
    }

    @Test
    func `the patterns of LIKE are translated and escaped`() throws {
        #expect(try sql("name LIKE 'a*_?%'", .postgres).parameters.map(\.value) == [.string("a%\\__\\%")])
        #expect(try split("name LIKE 'a*[?'", .sqlite).condition.parameters.map(\.value) == [.string("a*[[]?")])
    }

    @Test
    func `text with NUL, which PostgreSQL cannot hold, still has its place in the order`() throws {
        func condition(_ comparison: String) throws -> SQLCondition { try sql("name \(comparison) $0", .postgres, [.string("ab\0c")]) }
        #expect(try condition("==").text == "FALSE")
        #expect(try condition("!=").text == "TRUE")
        #expect(try condition("<").text == "\"name\" COLLATE \"C\" <= $1::text")
        #expect(try condition(">=").text == "\"name\" COLLATE \"C\" > $1::text")
        #expect(try condition(">").parameters.map(\.value) == [.string("ab")])
        #expect(
            try sql("name IN $0", .postgres, [.list([.string("a\0"), .string("b"), .string("c")])]).parameters.map(\.value) == [
                .list([.string("b"), .string("c")])
            ])
    }

    @Test(arguments: [
        ("blend == 1", SQLDialect.postgres), ("data LIKE binary('a?')", .postgres), ("name LIKE 'a?'", .sqlite),
        ("data ==[c] binary('a')", .sqlite),
        ("price > 1", .sqlite),
        ("ANY tags == 'x'", .sqlite), ("tags.@count == 1", .sqlite), ("ratio == small", .postgres),
    ])
    func `what has no exact form is refused`(_ query: String, _ dialect: SQLDialect) throws {
        let error = #expect(throws: SluiceError.self) { try sql(query, dialect) }
        #expect(error?.code == .queryUnsupported)
    }

    @Test
    func `conditions beyond SQLite's limits are refused`() throws {
        let leaves = (0..<1_000).map { "number != \($0)" }.joined(separator: " AND ")
        #expect(throws: SluiceError.self) { try sql(leaves, .sqlite) }
        let deep = (0..<30).reduce("number == 0") { "(\($0) \($1.isMultiple(of: 2) ? "AND" : "OR") number == \($1))" }
        #expect(throws: SluiceError.self) { try sql(deep, .sqlite) }
        #expect(throws: SluiceError.self) { try sql("number IN $0", .sqlite, [.list((0..<40_000).map { .int($0) })]) }
    }

    @Test func `SQLite takes the deepest conditions that are printed for it`() throws {
        let database = try SQLiteLibrary()
        try database.run("CREATE TABLE t (number INTEGER, name TEXT)")
        try database.run("INSERT INTO t VALUES (1, 'ÀÉÖþx')")
        let deep = (0..<20).reduce("name LIKE[c] '*àéöÞX'") { "(\($0) \($1.isMultiple(of: 2) ? "AND" : "OR") number == \($1))" }
        let wide = (2..<801).map { "number != \($0)" }.joined(separator: " AND ")
        for text in [deep, wide, "name ==[c] 'àéöÞX'"] {
            let predicate = try Query.parse(text).predicate(on: Samples.type, in: Samples.schema)
            let condition = try predicate.sql(.sqlite)
            let found = try database.run("SELECT number FROM t WHERE \(condition.text)", condition.parameters.map(\.value))
            #expect(found.isEmpty != predicate.matches(["number": .int(1), "name": .string("ÀÉÖþx")]), "\(text)")
        }
    }

    @Test(arguments: seeds(4))
    func `SQLite selects the rows that the tree accepts`(_ seed: UInt64) throws {
        let database = try SQLiteLibrary()
        let names = ["_id", "flag", "number", "ratio", "small", "name", "data", "at", "owner", "store", "other"]
        let indices = try names.map { try #require(Samples.type.index(of: $0)) }
        let declared = zip(names, indices).map { name, index in
            switch Samples.type.properties[index].type {
            case .bool, .int: "\"\(name)\" INTEGER"
            case .float, .double: "\"\(name)\" REAL"
            case .string: "\"\(name)\" TEXT"
            default: "\"\(name)\" BLOB"
            }
        }
        try database.run("CREATE TABLE t (number_of_row INTEGER, \(declared.joined(separator: ", ")))")
        var writer = QueryWriter(random: SplitMix64(seed: seed), names: names)
        var rows: [Row] = []
        for number in 0..<120 {
            var row = Samples.row(&writer.random)
            // SQLite has no NaN: it stores null.
            for index in indices {
                if case .double(let value)? = row[index], value.isNaN { row[index] = .null }
                if case .float(let value)? = row[index], value.isNaN { row[index] = .null }
            }
            let values = [Value.int(Int64(number))] + indices.map { row[$0] ?? .null }
            try database.run("INSERT INTO t VALUES (\(values.indices.map { "?\($0 + 1)" }.joined(separator: ", ")))", values)
            rows.append(row)
        }
        var compared = 0
        for _ in 0..<400 {
            let text = writer.query()
            guard let predicate = try? Query.parse(text).predicate(on: Samples.type, in: Samples.schema),
                let condition = try? predicate.sql(.sqlite)
            else { continue }
            let sql = "SELECT number_of_row FROM t WHERE \(condition.text) ORDER BY 1"
            let found = try database.run(sql, condition.parameters.map(\.value))
            let expected = rows.indices.filter { predicate.matches(rows[$0]) }.map { Int64($0) }
            #expect(found == expected, "seed \(seed): \(text): \(sql)")
            compared += 1
        }
        #expect(compared > 200, "seed \(seed)")
    }
}
