import SluiceCore

/// The form of an existing column that differs from the one that the gateway would create for its property.
package enum ColumnStorage: Hashable, Sendable {
    case plain
    /// `character(n)`: trailing blanks are padding.
    case character
    /// An enum, or an array of one.
    ///
    /// - name: The quoted name of the type.
    /// - labels: Its values when the table was read. Further ones may have been added since.
    case enumeration(name: String, labels: [String])
    /// `date`: a time at midnight in UTC.
    case date
    /// `timestamp without time zone`: a time in UTC.
    case localTime
    /// `time without time zone`: a text such as `12:30:00.25`.
    case time
    /// `time with time zone`: a text such as `12:30:00.25+02`.
    case zonedTime
    /// `interval`: a text such as `P1DT2H`.
    case interval
    /// `json`, which PostgreSQL keeps as a text.
    case jsonText
}

/// The way in which PostgreSQL computes a generated column: an immutable expression of other columns of its row.
package struct ColumnGeneration: Hashable, Sendable {
    package struct Input: Hashable, Sendable {
        package var column: String
        /// The column's type, as SQL names it.
        package var type: String

        package init(column: String, type: String) {
            self.column = column
            self.type = type
        }
    }

    package var expression: String
    /// The columns that the expression names.
    package var inputs: [Input]

    package init(expression: String, inputs: [Input]) {
        self.expression = expression
        self.inputs = inputs
    }
}

/// The facts of an existing column that its property does not tell.
package struct ColumnFacts: Hashable, Sendable {
    package var storage = ColumnStorage.plain
    /// nil for a column that is written.
    package var generation: ColumnGeneration?
    /// `true` if only a sequence gives the column's values (GENERATED ALWAYS AS IDENTITY).
    package var isIdentity: Bool

    package init(storage: ColumnStorage = .plain, generation: ColumnGeneration? = nil, isIdentity: Bool = false) {
        self.storage = storage
        self.generation = generation
        self.isIdentity = isIdentity
    }

    package var isGenerated: Bool { generation != nil }

    /// The facts that decide how values are read. An enum's values and an identity are none of them.
    fileprivate var reading: ColumnFacts {
        guard case .enumeration(let name, _) = storage else { return ColumnFacts(storage: storage, generation: generation) }
        return ColumnFacts(storage: .enumeration(name: name, labels: []), generation: generation)
    }
}

extension TableMapping {
    /// Returns `true` if both are the same table, and a column that both have is computed or written in another way.
    package func isReadDifferently(from other: TableMapping) -> Bool {
        guard type == other.type, sqlName == other.sqlName else { return false }
        return zip(columns, facts).contains { column, facts in
            other.columns.firstIndex(of: column).map { other.facts[$0].reading != facts.reading } ?? false
        }
    }
}

extension ColumnStorage {
    /// Returns the kind of a text in such a column, for a property of the kind `code`.
    func code(_ code: ColumnForm.Code) -> ColumnForm.Code {
        switch self {
        case .plain, .enumeration, .jsonText: code
        case .character: .character
        case .date: .date
        case .localTime: .localTime
        case .time: .time
        case .zonedTime: .zonedTime
        case .interval: .interval
        }
    }

    /// Returns the type to which a parameter for the column is cast.
    func castType(_ code: ColumnForm.Code) -> String {
        switch self {
        case .plain: code.typeName
        // The name `character` alone would cut a text to one character.
        case .character: "bpchar"
        case .enumeration(let name, _): name
        case .date: "date"
        case .localTime: "timestamp without time zone"
        case .time: "time without time zone"
        case .zonedTime: "time with time zone"
        case .interval: "interval"
        case .jsonText: "json"
        }
    }

    /// Returns the type that conditions compare the column by; nil for its own.
    ///
    /// PostgreSQL compares dates and local times with times in UTC, the time zone of each session, and uses their indexes.
    func comparedType(isArray: Bool) -> String? {
        switch self {
        case .plain, .date, .localTime: nil
        case .character, .enumeration, .time, .zonedTime, .interval: isArray ? "text[]" : "text"
        case .jsonText: "jsonb"
        }
    }

    /// The type that keys are looked up by; nil for the column's own.
    ///
    /// A client's key may be no value of an enum, and PostgreSQL would reject the statement. A table with such a key has at most one row
    /// for each value, and needs no index.
    var lookupType: String? { if case .enumeration = self { "text" } else { nil } }
}
