import SluiceCore
import SluicePostgres
import SluiceQuery
import Testing

/// That the conditions that are meant to use an index can.
struct SQLIndexUseTests {
    private static let type = ObjectType(
        name: "Item",
        properties: [
            Property(id: 1, name: "_id", type: .uuid), Property(id: 2, name: "name", type: .string, isOptional: true),
            Property(id: 3, name: "number", type: .int), Property(id: 4, name: "tags", type: .string, collection: .set),
            Property(id: 5, name: "owner", type: .link(to: "Owner"), isOptional: true),
            Property(id: 6, name: "at", type: .timestamp),
        ])
    private static let owner = ObjectType(
        name: "Owner", properties: [Property(id: 1, name: "_id", type: .objectId), Property(id: 2, name: "name", type: .string)])
    private static let schema = Schema([type, owner])

    @Test
    func `ranges, lists, beginnings, elements of arrays and links use indexes`() async throws {
        let queries = [
            "number == 1", "number IN {1, 2, 3}", "number > 5 AND number <= 8", "name == 'a'", "name IN {'a', 'b'}", "name >= 'a'",
            "name BEGINSWITH 'ab'", "name LIKE 'ab*'", "ANY tags == 'x'", "'x' IN tags", "ANY tags IN {'x', 'y'}",
            "at > 2026-01-01@00:00:00", "_id == uuid(00000000-0000-0000-0000-000000000001)",
            "owner == obj('Owner', oid(000000000000000000000001))",
        ]
        let plans = try await TestPostgres.withConnection { connection in
            _ = try await TableCatalog(schema: SQLIndexUseTests.schema, tables: SQLIndexUseTests.schema.types.map { TableMapping($0) })
                .create(
                    connection)
            return try await connection.withSession { session in
                try session.script(
                    """
                    CREATE INDEX ON "Item" (name); CREATE INDEX ON "Item" (number); CREATE INDEX ON "Item" USING gin (tags);
                    CREATE INDEX ON "Item" (owner); CREATE INDEX ON "Item" (at);
                    SET enable_seqscan = off
                    """)
                return try queries.map { text in
                    let query = try Query.parse(text).bind(to: SQLIndexUseTests.type, in: SQLIndexUseTests.schema)
                    let condition = query.sql(SQLIndexUseTests.layout).condition
                    return try session.query(
                        "EXPLAIN SELECT FROM \"Item\" AS t0 WHERE \(condition.text)", condition.parameters.map(\.postgres)
                    ).column(0).joined(separator: "\n")
                }
            }
        }
        for (query, plan) in zip(queries, plans) { #expect(plan.contains("Index Cond"), "\(query):\n\(plan)") }
    }

    private static var layout: SQLLayout {
        SQLLayout(
            .postgres, schema: schema,
            tables: Dictionary(
                uniqueKeysWithValues: schema.types.map { type in
                    (
                        type.name,
                        SQLTable(name: SQLQuote.identifier(type.name), columns: type.properties.map { SQLQuote.identifier($0.name) })
                    )
                }))
    }
}

extension SQLParameter {
    /// As the gateway binds it.
    var postgres: PostgresParameter {
        let isList = if case .list = value { true } else { false }
        let property = Property(id: 0, name: "", type: type, collection: isList ? .list : .none, isOptional: true)
        return ColumnForm(property, in: Schema([])).parameter(value)
    }
}
