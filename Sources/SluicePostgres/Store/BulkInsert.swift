import SluiceCore

/// Many rows of one type in one statement: one array of texts for each column, cast to the column's type by PostgreSQL.
struct BulkInsert: Sendable {
    private let shape: TableShape
    private let rows: [Row]

    init(_ shape: TableShape, _ rows: [Row]) {
        self.shape = shape
        self.rows = rows
    }

    /// Writes the rows; keys that are there already are passed over. When PostgreSQL refuses the statement, the rows go one by
    /// one, and those at fault join `refused`.
    /// - Returns: how many rows were new.
    func run(_ session: PostgresSession, refused: inout [RefusedRecord]) throws -> Int {
        guard !rows.isEmpty else { return 0 }
        let sql = self.sql
        do {
            return try guarded(session) { try session.execute(sql, parameters(rows[...]), cached: true) }
        } catch let failure as PostgresFailure where Self.isRefusal(failure) {
            return try oneByOne(sql, session, refused: &refused)
        }
    }

    private func oneByOne(_ sql: String, _ session: PostgresSession, refused: inout [RefusedRecord]) throws -> Int {
        var written = 0
        for index in rows.indices {
            do {
                written += try guarded(session) { try session.execute(sql, parameters(rows[index...index]), cached: true) }
            } catch let failure as PostgresFailure where Self.isRefusal(failure) {
                refused.append(
                    RefusedRecord(type: shape.type.name, code: .ingestRejected, reason: failure.message, object: text(of: rows[index])))
            }
        }
        return written
    }

    /// Runs the body so that its failure does not end the transaction.
    private func guarded<R>(_ session: PostgresSession, _ body: () throws -> R) throws -> R {
        try session.script("SAVEPOINT bulk")
        do {
            let result = try body()
            try session.script("RELEASE SAVEPOINT bulk")
            return result
        } catch let failure as PostgresFailure where Self.isRefusal(failure) {
            try session.script("ROLLBACK TO SAVEPOINT bulk")
            throw failure
        }
    }

    private static func isRefusal(_ failure: PostgresFailure) -> Bool {
        failure.isRefusedValue || PostgresRowTransaction.isRaised(failure)
    }

    private var sql: String {
        let numbers = shape.columns.indices
        let casts = numbers.map { "u.c\($0)::\(shape.forms[$0].columnType)" }
        let arrays = numbers.map { "$\($0 + 1)::text[]" }
        let names = numbers.map { "c\($0)" }
        return """
            INSERT INTO \(shape.table) (\(shape.columnList)) SELECT \(casts.joined(separator: ", ")) \
            FROM unnest(\(arrays.joined(separator: ", "))) AS u(\(names.joined(separator: ", "))) \
            ON CONFLICT (\(shape.keyColumn)) DO NOTHING
            """
    }

    private func parameters(_ rows: ArraySlice<Row>) -> [PostgresParameter] {
        shape.forms.indices.map { index in
            let form = shape.forms[index]
            let isCollection = form.property.collection != .none
            return .text(
                StoreText.array(
                    rows.map { row in
                        let value = row[index] ?? form.property.emptyValue
                        return form.text(isCollection && value.isNull ? form.property.emptyValue : value)
                    }))
        }
    }

    private func text(of row: Row) -> String {
        var values: [String: Value] = [:]
        for (index, property) in shape.type.properties.enumerated() { values[property.name] = row[index] }
        return ExtendedJSON.json(values).text
    }
}
