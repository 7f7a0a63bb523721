package import SluiceCore

/// The parts of an `ObjectChoice` in SQL: `SELECT … FROM table AS t0 joins WHERE condition ORDER BY order LIMIT limit`.
package struct SQLChoice: Hashable, Sendable {
    /// LEFT JOINs to the objects that the order passes through, or empty.
    package var joins: String
    /// The condition, with the parameters of the joins.
    package var condition: SQLCondition
    /// The terms of ORDER BY. The order is total, since it ends with the primary key.
    package var order: String
    package var limit: Int
}

extension ObjectChoice {
    /// Returns the choice in PostgreSQL's SQL.
    /// - Parameters:
    ///   - type: The class of the objects, with a primary key.
    ///   - condition: The condition on rows with the alias `SQLLayout.row`. Its placeholders begin with `$1`.
    ///   - tables: The tables of `type` and of the targets of `links`, by class.
    /// - Throws: `queryUnsupported` if a class has no table, or if SQL cannot express its rules exactly.
    package func sql(
        of type: ObjectType, where condition: SQLCondition, tables: [String: SQLTable]
    ) throws(SluiceError) -> SQLChoice {
        var printer = try ChoicePrinter(type: type, tables: tables, parameters: condition.parameters)
        var text = condition.text
        for distinct in distinct { text = try printer.keeping(distinct, of: text) }
        var joins = ChoiceJoins()
        var terms: [String] = []
        for key in order {
            let value = try printer.value(key.path, &joins)
            terms += value.terms(isDescending: key.isDescending)
        }
        terms.append(printer.key)
        return SQLChoice(
            joins: joins.text, condition: SQLCondition(text: text, parameters: printer.parameters),
            order: terms.joined(separator: ", "), limit: limit)
    }
}

/// The joins of one SELECT. Paths that begin with the same links share them.
private struct ChoiceJoins {
    var names: [[Int]: String] = [:]
    var text = ""
}

/// An expression of one value.
private struct ChoiceValue {
    var sql: String
    var type: PropertyType

    /// Returns the terms of ORDER BY in the language's order: null, NaN, then all others. PostgreSQL sorts NaN above all numbers.
    func terms(isDescending: Bool) -> [String] {
        let direction = isDescending ? "DESC NULLS LAST" : "ASC NULLS FIRST"
        switch type {
        case .float, .double, .decimal: return ["(\(sql) <> 'NaN') \(direction)", "\(sql) \(direction)"]
        default: return ["\(sql) \(direction)"]
        }
    }
}

private struct ChoicePrinter {
    let type: ObjectType
    let tables: [String: SQLTable]
    var parameters: [SQLParameter]
    /// The column of the primary key.
    let key: String
    private let table: String
    /// The number of the first parameter of each class's condition. All joins to a class share its parameters.
    private var firstParameters: [String: Int] = [:]

    init(type: ObjectType, tables: [String: SQLTable], parameters: [SQLParameter]) throws(SluiceError) {
        self.type = type
        self.tables = tables
        self.parameters = parameters
        let place = try Self.table(of: type, tables)
        table = place.table.name
        key = Self.column(SQLLayout.row, place.table, type, place.key)
    }

    /// Returns the condition, restricted to the first object of each group of equal ones.
    mutating func keeping(_ distinct: ObjectChoice.Distinct, of condition: String) throws(SluiceError) -> String {
        var joins = ChoiceJoins()
        var columns = ["\(key) AS k"]
        var groups: [String] = []
        var terms: [String] = []
        for path in distinct.paths {
            let name = "v\(columns.count)"
            columns.append("\(try value(path, &joins).sql) AS \(name)")
            groups.append("c.\(name)")
        }
        for key in distinct.order {
            let value = try value(key.path, &joins)
            let name = "v\(columns.count)"
            columns.append("\(value.sql) AS \(name)")
            terms += ChoiceValue(sql: "c.\(name)", type: value.type).terms(isDescending: key.isDescending)
        }
        let first = groups.isEmpty ? "" : "DISTINCT ON (\(groups.joined(separator: ", "))) "
        let order = (groups + terms + ["c.k"]).joined(separator: ", ")
        return """
            \(key) IN (SELECT \(first)c.k FROM (SELECT \(columns.joined(separator: ", ")) \
            FROM \(table) AS \(SQLLayout.row)\(joins.text) WHERE (\(condition))) AS c \
            ORDER BY \(order)\(groups.isEmpty ? " LIMIT 1" : ""))
            """
    }

    mutating func value(_ path: ObjectChoice.Path, _ joins: inout ChoiceJoins) throws(SluiceError) -> ChoiceValue {
        var (object, type) = (SQLLayout.row, self.type)
        var way: [Int] = []
        for link in path.links {
            way.append(link.property)
            if let name = joins.names[way] {
                object = name
            } else {
                let name = "j\(joins.names.count + 1)"
                joins.text += try join(link, as: name, from: object, type)
                joins.names[way] = name
                object = name
            }
            type = link.target
        }
        let place = try Self.table(of: type, tables)
        return ChoiceValue(sql: Self.column(object, place.table, type, path.property), type: type.properties[path.property].type)
    }

    private mutating func join(
        _ link: ObjectChoice.Link, as name: String, from object: String, _ type: ObjectType
    ) throws(SluiceError) -> String {
        let (source, target) = (try Self.table(of: type, tables), try Self.table(of: link.target, tables))
        let first = firstParameters[link.target.name] ?? parameters.count + 1
        let split = link.readable.split(.postgres, firstParameter: first) { "\(name).\(target.table.columns[$0])" }
        guard split.residual == nil else {
            throw SluiceError(
                .queryUnsupported, "A limit cannot count in an order through class \(link.target.name): PostgreSQL cannot apply its rules.",
                value: String(link.readable.canonicalText.prefix(200)), fix: "Order by other properties.")
        }
        if firstParameters.updateValue(first, forKey: link.target.name) == nil { parameters += split.condition.parameters }
        let key = Self.column(name, target.table, link.target, target.key)
        // PostgreSQL rejects a comparison of columns with different collations unless the expression names one.
        let value = "\(object).\(source.table.columns[link.property])\(Self.collation(link.target.properties[target.key].type))"
        return " LEFT JOIN \(target.table.name) AS \(name) ON \(key) = \(value) AND (\(split.condition.text))"
    }

    private static func table(of type: ObjectType, _ tables: [String: SQLTable]) throws(SluiceError) -> (table: SQLTable, key: Int) {
        guard let table = tables[type.name], let key = type.primaryKey else {
            throw SluiceError(.queryUnsupported, "A limit cannot count in an order through class \(type.name): it has no table.")
        }
        return (table, key)
    }

    private static func column(_ object: String, _ table: SQLTable, _ type: ObjectType, _ property: Int) -> String {
        "\(object).\(table.columns[property])\(collation(type.properties[property].type))"
    }

    /// Returns the collation that orders texts and ObjectIds by bytes.
    private static func collation(_ type: PropertyType) -> String {
        switch type {
        case .string, .objectId: " COLLATE \"C\""
        default: ""
        }
    }
}
