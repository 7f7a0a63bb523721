package import SluiceCore

extension PostgresError {
    /// `true` if another transaction has inserted a row of the same key into a partition, whose index is the only one on the key.
    func isKeyCollision(_ mapping: TableMapping) -> Bool {
        guard sqlState == "23505", let schema, let constraint else { return false }
        return mapping.partitionKeys.contains(SQLName(schema: schema, name: constraint))
    }

    /// Returns the rejection of a write: a fixed text for the client, PostgreSQL's message for operators.
    ///
    /// The server's message quotes rows, including fields that the client's role hides. The client's text contains at most the name
    /// of a constraint, and only of one on a table that the client writes.
    /// - Parameter tables: The tables of the classes that the transaction writes.
    package func refusal(of tables: [TableMapping]) -> SluiceError {
        let name = constraintName(on: tables).map { " (constraint \($0))" } ?? ""
        return SluiceError(
            .writeNotAllowed, "The database rejected the write: \(reason)\(name).",
            fix: "Write values that satisfy the constraints of the class, or ask the operator for the reason.", cause: .error(asSluiceError)
        )
    }

    /// The kind of rejection, without a value.
    private var reason: String {
        switch sqlState {
        case "23502"?: "a required value is missing"
        case "23503"?: "a reference has no target, or another object refers to the object"
        case "23505"?: "a value that must be unique is in use"
        case "23514"?, "44000"?: "a check does not hold"
        case "23P01"?: "it excludes another object"
        case "428C9"?: "a column takes only values that the database gives"
        case let state? where state.hasPrefix("23"): "a constraint does not hold"
        case let state? where state.hasPrefix("22"): "a value cannot be stored"
        case let state? where state.hasPrefix("54"): "it is too large"
        default: "a trigger raised an error"
        }
    }

    /// The number of bytes of a name that a default constraint name keeps at least, however long the table's and column's names
    /// are.
    private static let keptBytes = 24

    /// Returns the constraint's name; nil if it belongs to another table or may contain names that the client does not know.
    ///
    /// PostgreSQL's default names consist of the table's name and names of columns.
    private func constraintName(on tables: [TableMapping]) -> String? {
        guard let constraint, let own = tables.first(where: { $0.table == table && $0.schema == schema }) else { return nil }
        let hidden = [own.table] + own.columns.filter { !own.properties.contains($0) }
        let isTelling = hidden.contains { name in
            guard name != own.type else { return false }
            return constraint.contains(String(decoding: name.utf8.prefix(Self.keptBytes), as: UTF8.self))
        }
        return isTelling ? nil : constraint
    }
}
