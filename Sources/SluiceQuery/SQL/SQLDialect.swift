package import SluiceCore

package enum SQLDialect: Hashable, Sendable { case postgres, sqlite }

/// A condition for a WHERE clause. Its text has no input of a client: every constant is a parameter.
package struct SQLCondition: Hashable, Sendable {
    package var text: String
    /// The parameters in the order of their numbers.
    package var parameters: [SQLParameter]

    package init(text: String, parameters: [SQLParameter]) {
        self.text = text
        self.parameters = parameters
    }
}

/// A value to bind, in the stored form of the property that it is compared with.
package struct SQLParameter: Hashable, Sendable {
    /// The value. A list for PostgreSQL's `= ANY` is bound as an array.
    package var value: Value
    /// The type of the property, or of an array's elements.
    package var type: PropertyType

    package init(value: Value, type: PropertyType) {
        self.value = value
        self.type = type
    }
}

extension SQLDialect {
    func placeholder(_ number: Int, _ parameter: SQLParameter) -> String {
        guard self == .postgres else { return "?\(number)" }
        if case .list(let members) = parameter.value {
            return "$\(number)::\(SQLDialect.typeName(parameter.type, members.first { !$0.isNull }))[]"
        }
        return "$\(number)::\(SQLDialect.typeName(parameter.type, parameter.value))"
    }

    /// Returns PostgreSQL's type of a property's values. The type of a link is that of the key.
    static func typeName(_ type: PropertyType, _ value: Value?) -> String {
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

    /// The bounds of a condition. SQLite permits expressions 1,000 levels deep (each AND is one), 100 pending symbols in its parser, and
    /// 32,766 parameters. PostgreSQL permits 65,535 parameters, and its stack exceeds the language's own limits.
    var mostLeaves: Int { self == .sqlite ? 800 : 20_000 }
    var mostLevels: Int { self == .sqlite ? 20 : 250 }
    var mostParameters: Int { self == .sqlite ? 32_000 : 65_000 }
}
