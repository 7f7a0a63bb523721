import SluiceCore
import SluiceValues

/// The catalog's facts about the tables of some classes, for their checks.
///
/// One query of each kind reads them for all tables, when the first check asks. They do not show later changes. On a connection's queue.
final class TableFacts {
    /// The rows about one table in the answer to a query.
    struct Rows {
        let result: PostgresResult
        let indices: [Int]
    }

    private let session: PostgresSession
    private let types: [String]
    private let parameters: [PostgresParameter]
    private var answers: [String: (result: PostgresResult, rows: [String: [Int]])] = [:]

    init(_ tables: [(type: ObjectType, mapping: TableMapping)], _ session: PostgresSession) {
        self.session = session
        types = tables.map(\.type.name)
        let keys = tables.map { table in table.type.primaryKey.map { table.mapping.columns[$0] } ?? "" }
        let columns = tables.map { StoreText.array($0.mapping.columns) }
        parameters = [tables.map(\.mapping.sqlName), keys, columns].map { .text(StoreText.array($0)) }
    }

    /// SQL for the tables: the place of each from 1, the OID, the key's column, and the columns of properties.
    static let wanted = """
        (SELECT number, to_regclass(name)::oid AS id, key, columns::text[] AS columns
            FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS u (name, key, columns, number)) AS wanted
        """

    /// Returns the rows about the table of a class.
    ///
    /// - Parameter sql: A query from `wanted`, whose last column is `wanted.number`.
    func rows(_ sql: String, of type: ObjectType) throws -> Rows {
        let answer = try answers[sql] ?? ask(sql)
        return Rows(result: answer.result, indices: answer.rows[type.name] ?? [])
    }

    private func ask(_ sql: String) throws -> (result: PostgresResult, rows: [String: [Int]]) {
        let result = try session.query(sql, parameters, within: Self.limit)
        var rows: [String: [Int]] = [:]
        for row in 0..<result.count {
            guard let number = result.int(row, result.columnCount - 1), types.indices.contains(Int(number) - 1) else { continue }
            rows[types[Int(number) - 1], default: []].append(row)
        }
        answers[sql] = (result, rows)
        return (result, rows)
    }

    /// The time limit of a query about all tables.
    private static let limit = Duration.seconds(60)
}
