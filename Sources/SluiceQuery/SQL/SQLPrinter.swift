package import SluiceCore

extension Predicate {
    /// The condition in SQL, with exactly the rows that `matches` accepts.
    ///
    /// What the columns must hold: in PostgreSQL `bigint`, `timestamptz` and so on, ObjectId as its 24 hexadecimal digits, arrays for
    /// lists; in SQLite each type in one storage class whose own order is the type's order (ids and times as sortable blobs or text).
    /// - Parameters:
    ///   - firstParameter: the number of the first placeholder, `$1` or `?1`.
    ///   - column: the expression of a property by its index; the quoted name when nil.
    /// - Throws: `queryUnsupported` for what the dialect cannot say exactly: mixed properties, text operators on binary data (`[c]`, and
    ///   LIKE) and, in SQLite, decimals other than null tests, lists, and conditions too large for its limits. Such a condition is
    ///   evaluated on rows instead.
    package func sql(
        _ dialect: SQLDialect, firstParameter: Int = 1, column: ((Int) -> String)? = nil
    ) throws(SluiceError) -> SQLCondition {
        if dialect == .sqlite, bound.leafCount > SQLPrinter.sqliteLeaves || bound.depth > SQLPrinter.sqliteDepth {
            throw SluiceError(
                .queryUnsupported, "a condition of \(bound.leafCount) comparisons and \(bound.depth) levels is too large for SQLite.")
        }
        var printer = SQLPrinter(
            dialect: dialect, type: type, firstParameter: firstParameter,
            column: column ?? { [type] in SQLDialect.quoted(type.properties[$0].name) })
        try printer.print(bound, isNegated: false)
        if dialect == .sqlite, firstParameter + printer.parameters.count > SQLPrinter.sqliteParameters {
            throw SluiceError(.queryUnsupported, "a condition with \(printer.parameters.count) constants is too large for SQLite.")
        }
        return SQLCondition(text: printer.text, parameters: printer.parameters)
    }
}

/// Prints two-valued logic into three-valued SQL: a leaf that may be NULL is as good as false where it stands positively, and negations
/// are pushed down to the leaves, where `IS NOT TRUE` takes NULL in. So indexes stay usable for positive conditions.
struct SQLPrinter {
    /// SQLite allows expressions 1,000 levels deep (each AND is one), 100 symbols waiting in its parser, and 32,766 parameters.
    fileprivate static let sqliteLeaves = 800
    fileprivate static let sqliteDepth = 20
    fileprivate static let sqliteParameters = 32_766

    let dialect: SQLDialect
    let type: ObjectType
    let firstParameter: Int
    let column: (Int) -> String
    var text = ""
    var parameters: [SQLParameter] = []

    init(dialect: SQLDialect, type: ObjectType, firstParameter: Int, column: @escaping (Int) -> String) {
        self.dialect = dialect
        self.type = type
        self.firstParameter = firstParameter
        self.column = column
    }

    mutating func print(_ predicate: BoundPredicate, isNegated: Bool) throws(SluiceError) {
        switch predicate {
        case .constant(let value): text += constant(value != isNegated)
        case .and(let parts): try joined(parts, isNegated ? " OR " : " AND ", isNegated)
        case .or(let parts): try joined(parts, isNegated ? " AND " : " OR ", isNegated)
        case .not(let inner): try print(inner, isNegated: !isNegated)
        case .test, .properties:
            let leaf = try leaf(predicate)
            text += isNegated ? "(\(leaf)) IS NOT TRUE" : leaf
        }
    }

    private mutating func joined(_ parts: [BoundPredicate], _ separator: String, _ isNegated: Bool) throws(SluiceError) {
        text += "("
        for (index, part) in parts.enumerated() {
            if index > 0 { text += separator }
            try print(part, isNegated: isNegated)
        }
        text += ")"
    }

    /// A condition that is true where the leaf holds, and false or NULL elsewhere.
    private mutating func leaf(_ predicate: BoundPredicate) throws(SluiceError) -> String {
        switch predicate {
        case .test(.property(let index), let test):
            return try self.test(column(index), type.properties[index].type, test)
        case .test(.elements(let index, let quantifier), let test): return try elements(index, quantifier, test)
        case .test(.count(let index), let test):
            guard dialect == .postgres else { throw unsupported("lists", index) }
            return try self.test("coalesce(cardinality(\(column(index))), 0)", .int, test)
        case .properties(let left, let comparison, let right, let foldsCase):
            return try properties(left, comparison, right, foldsCase)
        case .constant, .and, .or, .not: return constant(true)
        }
    }

    func constant(_ value: Bool) -> String { value ? "TRUE" : "FALSE" }

    func unsupported(_ what: String, _ property: Int) -> SluiceError {
        SluiceError(
            .queryUnsupported, "\(what) of '\(type.properties[property].name)' have no exact form in this database.",
            fix: "Evaluate the condition on rows.")
    }

    private mutating func elements(_ index: Int, _ quantifier: Quantifier, _ test: Test) throws(SluiceError) -> String {
        guard dialect == .postgres else { throw unsupported("lists", index) }
        let condition = try self.test("e.v", type.properties[index].type, test)
        let source = "SELECT FROM unnest(\(column(index))) AS e(v) WHERE "
        return switch quantifier {
        case .any: "EXISTS (\(source)\(condition))"
        case .none: "NOT EXISTS (\(source)\(condition))"
        case .all: "NOT EXISTS (\(source)(\(condition)) IS NOT TRUE)"
        }
    }

    /// Adds a parameter and gives its placeholder, cast so that its type never depends on the context.
    mutating func parameter(_ value: Value, _ type: PropertyType) -> String {
        parameters.append(SQLParameter(value: value, type: type))
        let placeholder = dialect.placeholder(firstParameter + parameters.count - 1)
        guard dialect == .postgres else { return placeholder }
        if case .list(let members) = value {
            return "\(placeholder)::\(SQLPrinter.castType(type, members.first { !$0.isNull }))[]"
        }
        return "\(placeholder)::\(SQLPrinter.castType(type, value))"
    }

    private static func castType(_ type: PropertyType, _ value: Value?) -> String {
        switch type {
        case .bool: return "boolean"
        case .int: return "bigint"
        case .float: return "real"
        case .double: return "double precision"
        case .decimal: return "numeric"
        case .string, .objectId: return "text"
        case .binary: return "bytea"
        case .timestamp: return "timestamptz"
        case .uuid: return "uuid"
        case .mixed, .embedded: return "jsonb"
        case .link: break
        }
        return switch value {
        case .int: "bigint"
        case .uuid: "uuid"
        default: "text"
        }
    }
}
