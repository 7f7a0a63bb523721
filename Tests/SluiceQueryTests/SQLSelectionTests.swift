import SluiceCore
import SluiceQuery
import Testing

/// Conditions of the whole language as SQL: what is said, what is left over, and that nothing of the client's becomes text.
struct SQLSelectionTests {
    private static let schema = Schema([
        ObjectType(
            name: "Person",
            properties: [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "name", type: .string),
                Property(id: 3, name: "boss", type: .link(to: "Person"), isOptional: true),
                Property(id: 4, name: "dogs", type: .link(to: "Dog"), collection: .list),
                Property(id: 5, name: "extra", type: .mixed), Property(id: 6, name: "scores", type: .int, collection: .list),
            ]),
        ObjectType(
            name: "Dog",
            properties: [
                Property(id: 1, name: "_id", type: .uuid), Property(id: 2, name: "age", type: .int),
                Property(id: 3, name: "owner", type: .link(to: "Person"), isOptional: true),
            ]),
    ])

    private static func layout(_ dialect: SQLDialect) -> SQLLayout {
        let tables = schema.types.map { type in
            (
                type.name,
                SQLTable(
                    name: type.name.lowercased(), columns: type.properties.map(\.name), ownOrder: dialect == .sqlite ? "rowid" : nil)
            )
        }
        return SQLLayout(dialect, schema: schema, tables: Dictionary(uniqueKeysWithValues: tables))
    }

    private func select(_ text: String, _ dialect: SQLDialect = .postgres, _ arguments: [QueryArgument] = []) throws -> SQLSelection {
        try Query.parse(text).bind(to: SQLSelectionTests.schema.types[0], in: SQLSelectionTests.schema, arguments: arguments).sql(
            SQLSelectionTests.layout(dialect))
    }

    @Test(arguments: [
        ("boss.name == 'x'", "EXISTS (SELECT FROM person AS t1 WHERE t1._id = t0.boss AND t1.name = $1::text)"),
        (
            "boss.name != 'x'",
            "NOT EXISTS (SELECT FROM person AS t1 WHERE t1._id = t0.boss AND (t1.name IS DISTINCT FROM $1::text) IS NOT TRUE)"
        ),
        (
            "ANY dogs.age > 3",
            "EXISTS (SELECT FROM unnest(t0.dogs) AS e1(v), dog AS t2 WHERE t2._id = e1.v AND t2.age > $1::bigint)"
        ),
        (
            "ALL dogs.age > 3",
            "NOT EXISTS (SELECT FROM unnest(t0.dogs) AS e1(v), dog AS t2 WHERE t2._id = e1.v AND (t2.age > $1::bigint) IS NOT TRUE)"
        ),
        ("@links.Dog.owner.@count > 0", "EXISTS (SELECT FROM dog AS t1 WHERE t1.owner = t0._id)"),
        ("@links.Dog.owner.@count == 2", "(SELECT count(*) FROM dog AS t1 WHERE t1.owner = t0._id) = $1::bigint"),
        (
            "SUBQUERY(dogs, $d, $d.age > 3 AND $d.owner.name == 'x').@count == 0",
            "NOT EXISTS (SELECT FROM unnest(t0.dogs) AS e1(v), dog AS t2 WHERE t2._id = e1.v AND (t2.age > $1::bigint AND "
                + "EXISTS (SELECT FROM person AS t3 WHERE t3._id = t2.owner AND t3.name = $2::text)))"
        ),
        ("scores[0] == 1", "(t0.scores)[1] = $1::bigint"), ("{1, 2} == scores", "coalesce(t0.scores::bigint[], '{}') = $1::bigint[]"),
        ("scores[*] == {}", "coalesce(t0.scores::bigint[], '{}') = $1::bigint[]"),
        ("dogs == {}", "coalesce(t0.dogs::uuid[], '{}') = $1::uuid[]"),
    ])
    func `PostgreSQL follows links, lists and links back`(_ query: String, _ expected: String) throws {
        let selection = try select(query)
        #expect(selection.condition.text == expected)
        #expect(selection.isExact)
    }

    @Test(arguments: [
        ("name == 'x' AND extra == 1", "(t0.name = $1::text AND (t0.extra IS NOT NULL AND t0.extra <> 'null'::jsonb))"),
        ("name == 'x' OR extra == 1", "(t0.name = $1::text OR (t0.extra IS NOT NULL AND t0.extra <> 'null'::jsonb))"),
        ("name == 'x' OR scores.@sum > 1", "TRUE"),
        ("NOT (name == 'x' OR scores.@sum > 1)", "(t0.name = $1::text) IS NOT TRUE"),
        ("NOT (name == 'x' AND scores.@sum > 1)", "TRUE"),
        ("ANY dogs.age + 1 > 3", "TRUE"), ("@links.@count == 1", "TRUE"), ("dogs[*].age == {}", "TRUE"), ("{3} == dogs.age", "TRUE"),
        (
            "NONE @links.Dog.owner.age == 3 AND extra.@type == 'int'",
            "NOT EXISTS (SELECT FROM dog AS t1 WHERE t1.owner = t0._id AND t1.age = $1::bigint)"
        ),
        (
            "SUBQUERY(dogs, $d, $d.age > 3 AND $d.age * 2 > 9).@count > 0",
            "EXISTS (SELECT FROM unnest(t0.dogs) AS e1(v), dog AS t2 WHERE t2._id = e1.v AND t2.age > $1::bigint)"
        ),
    ])
    func `what SQL cannot say is left over, and SQL says what is implied`(_ query: String, _ expected: String) throws {
        let selection = try select(query)
        #expect(selection.condition.text == expected)
        #expect(!selection.isExact)
    }

    @Test
    func `order and limit go to SQL when they are the same there`() throws {
        let total = try select("age > 1 SORT(name DESC, _id ASC) LIMIT(3)".replacing("age", with: "_id"))
        #expect(total.order == "t0.name COLLATE \"C\" DESC NULLS LAST, t0._id ASC NULLS FIRST")
        #expect(total.limit == 3 && total.suffixes.isEmpty)
        // PostgreSQL's rows that are equal in all paths have no order.
        let loose = try select("_id > 1 SORT(name DESC) LIMIT(3)")
        #expect(loose.order == nil && loose.limit == nil && loose.suffixes.count == 2)
        let own = try select("_id > 1 SORT(name DESC) LIMIT(3)", .sqlite)
        #expect(own.order == "t0.name DESC, t0.rowid" && own.limit == 3)
        let checked = try select("extra == 1 SORT(name DESC) LIMIT(3)", .sqlite)
        #expect(checked.order == "t0.name DESC, t0.rowid" && checked.limit == nil && checked.suffixes.count == 1)
        #expect(try select("_id > 1 SORT(boss.name ASC)", .sqlite).suffixes.count == 1)
    }

    @Test(arguments: [SQLDialect.postgres, .sqlite])
    func `no byte of a client's values gets into the text`(_ dialect: SQLDialect) throws {
        let hostile = "'; DROP TABLE x; -- \" $1 ?1 %\0"
        let queries = [
            "boss.name == $0", "boss.name LIKE[c] $0", "ANY @links.Dog.owner.owner.name CONTAINS $0", "name IN {$0, 'b'}",
            "SUBQUERY(@links.Dog.owner, $d, $d.owner.name ENDSWITH $0).@count > 1", "extra == $0", "name < $0", "NOT name LIKE $0",
        ]
        for query in queries {
            let text = try select(query, dialect, [.value(.string(hostile))]).condition.text
            #expect(!text.contains("DROP") && !text.contains("\0"), "\(query): \(text)")
        }
    }
}
