import SluiceCore
import SluiceQuery
import Testing

/// Checks the SQL of limits with orders through links. `ChoiceOracleTests` checks the results.
@Suite struct ObjectChoiceTests {
    private static let owner = ObjectType(
        name: "Owner",
        properties: [
            Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "name", type: .string),
            Property(id: 3, name: "extra", type: .mixed), Property(id: 4, name: "wealth", type: .double),
        ])
    private static let dog = ObjectType(
        name: "Dog",
        properties: [
            Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "age", type: .int),
            Property(id: 3, name: "owner", type: .link(to: "Owner"), isOptional: true),
        ])
    private static let tables = [
        "Dog": SQLTable(name: "dog", columns: ["_id", "age", "owner"]),
        "Owner": SQLTable(name: "owner", columns: ["_id", "name", "extra", "wealth"]),
    ]

    private static func link(_ readable: String) throws -> ObjectChoice.Link {
        ObjectChoice.Link(property: 2, target: owner, readable: try Query.parse(readable).predicate(on: owner, in: Schema([owner])))
    }

    @Test func `own properties need no join, and numbers have NaN before them`() throws {
        let condition = SQLCondition(text: "t0.age > $1::bigint", parameters: [SQLParameter(value: .int(1), type: .int)])
        let plain = ObjectChoice(limit: 5, order: [.init(path: .init(property: 1), isDescending: true)])
        let sql = try plain.sql(of: Self.dog, where: condition, tables: Self.tables)
        #expect(sql.joins.isEmpty && sql.condition == condition && sql.limit == 5)
        #expect(sql.order == "t0.age DESC NULLS LAST, t0._id")
        let wealth = ObjectChoice.Path(links: [try Self.link("TRUEPREDICATE")], property: 3)
        let rich = ObjectChoice(limit: 5, order: [.init(path: wealth, isDescending: false)])
        let order = try rich.sql(of: Self.dog, where: condition, tables: Self.tables).order
        #expect(order == "(j1.wealth <> 'NaN') ASC NULLS FIRST, j1.wealth ASC NULLS FIRST, t0._id")
    }

    @Test func `paths through the same links share a join, which the rules of the class narrow`() throws {
        let link = try Self.link("name != 'x'")
        let (name, wealth) = (ObjectChoice.Path(links: [link], property: 1), ObjectChoice.Path(links: [link], property: 3))
        let condition = SQLCondition(text: "t0.age > $1::bigint", parameters: [SQLParameter(value: .int(1), type: .int)])
        let choice = ObjectChoice(
            limit: 5, order: [.init(path: name, isDescending: false), .init(path: wealth, isDescending: false)],
            distinct: [.init(paths: [name], order: [.init(path: .init(property: 1), isDescending: true)])])
        let sql = try choice.sql(of: Self.dog, where: condition, tables: Self.tables)
        let join =
            " LEFT JOIN owner AS j1 ON j1._id COLLATE \"C\" = t0.owner COLLATE \"C\" AND (j1.name IS DISTINCT FROM $2::text)"
        #expect(sql.joins == join)
        #expect(sql.condition.parameters.map(\.value) == [.int(1), .string("x")])
        #expect(
            sql.condition.text == """
                t0._id IN (SELECT DISTINCT ON (c.v1) c.k FROM (SELECT t0._id AS k, j1.name COLLATE "C" AS v1, t0.age AS v2 \
                FROM dog AS t0\(join) WHERE (t0.age > $1::bigint)) AS c ORDER BY c.v1, c.v2 DESC NULLS LAST, c.k)
                """)
    }

    @Test func `rules that PostgreSQL cannot apply are refused without their text`() throws {
        let path = ObjectChoice.Path(links: [try Self.link("extra == 'secret'")], property: 1)
        let choice = ObjectChoice(limit: 5, order: [.init(path: path, isDescending: false)])
        let error = #expect(throws: SluiceError.self) {
            try choice.sql(of: Self.dog, where: SQLCondition(text: "TRUE", parameters: []), tables: Self.tables)
        }
        #expect(error?.code == .queryUnsupported && error?.message.contains("Owner") == true)
        #expect(error?.message.contains("secret") == false && error?.value?.contains("secret") == true)
    }
}
