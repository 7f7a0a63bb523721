package import SluiceCore

package enum SQLDialect: Hashable, Sendable { case postgres, sqlite }

/// A condition for a WHERE clause: text of ours only, every constant a parameter.
package struct SQLCondition: Hashable, Sendable {
    package var text: String
    /// In order of their numbers.
    package var parameters: [SQLParameter]

    package init(text: String, parameters: [SQLParameter]) {
        self.text = text
        self.parameters = parameters
    }
}

/// A value to bind, as the property that it is compared with is stored.
package struct SQLParameter: Hashable, Sendable {
    /// A list for PostgreSQL's `= ANY`, bound as an array.
    package var value: Value
    /// The type of the property, or of an array's elements.
    package var type: PropertyType

    package init(value: Value, type: PropertyType) {
        self.value = value
        self.type = type
    }
}

extension SQLDialect {
    /// A name in double quotes.
    package static func quoted(_ name: String) -> String {
        "\"" + name.replacing("\"", with: "\"\"") + "\""
    }

    func placeholder(_ number: Int) -> String {
        switch self {
        case .postgres: "$\(number)"
        case .sqlite: "?\(number)"
        }
    }
}
