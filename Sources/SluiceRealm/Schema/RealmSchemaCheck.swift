package import SluiceCore
import SluiceValues

/// The check of a client's declarations against the app's schema. A client may use a part of the classes and properties.
package struct RealmSchemaCheck {
    private let schema: Schema

    package init(_ schema: Schema) { self.schema = schema }

    /// Checks a declaration. Accepts every other instruction.
    /// - Throws: `invalidSchemaChange` with the class, the property and both types if the app lacks the class or property, or declares it
    ///   otherwise. Also for a deletion of a class or property, which no client may request.
    package func check(_ instruction: RealmInstruction) throws(SluiceError) {
        switch instruction {
        case .addTable(let table): try check(table)
        case .addColumn(let column): try check(column)
        case .eraseTable(let name):
            throw SluiceError(
                .invalidSchemaChange, "A client cannot delete class '\(name.excerpt)'.", fix: "Delete it in the app's schema.")
        case .eraseColumn(let table, let name):
            throw SluiceError(
                .invalidSchemaChange, "A client cannot delete property '\(table.excerpt).\(name.excerpt)'.",
                fix: "Delete it in the app's schema.")
        default: break
        }
    }

    // MARK: Classes

    private func check(_ table: RealmTable) throws(SluiceError) {
        let known = try type(table.name).realmTable
        guard table.kind == known.kind else {
            throw SluiceError(
                .invalidSchemaChange, "Class '\(known.name)' is \(table.kind.word) on the client and \(known.kind.word) in the app.")
        }
        guard table.key != known.key else { return }
        throw SluiceError(
            .invalidSchemaChange,
            "Class '\(known.name)' has the primary key \(Self.text(table.key)) on the client and \(Self.text(known.key)) in the app.")
    }

    private func type(_ name: String) throws(SluiceError) -> ObjectType {
        guard let type = schema[name] else {
            let hint = Suggestion.question(for: name, in: schema.types.map(\.name))
            throw SluiceError(.invalidSchemaChange, "The app has no class '\(name.excerpt)'.\(hint)", fix: Self.declare)
        }
        return type
    }

    private static func text(_ key: RealmTable.Key?) -> String {
        guard let key else { return "none" }
        return "'\(key.name.excerpt)' of type \(key.type.name)\(key.isNullable ? " or null" : "")"
    }

    // MARK: Properties

    private func check(_ column: RealmColumn) throws(SluiceError) {
        let type = try type(column.table)
        guard let index = type.index(of: column.name) else {
            let hint = Suggestion.question(for: column.name, in: type.properties.map(\.name))
            throw SluiceError(
                .invalidSchemaChange,
                "Class '\(type.name)' has no property '\(column.name.excerpt)', which is \(Self.text(column)) on the client.\(hint)",
                fix: Self.declare)
        }
        let known = type.realmColumn(index)
        guard !Self.agree(column, known) else { return }
        throw SluiceError(
            .invalidSchemaChange,
            "Property '\(type.name).\(known.name)' is \(Self.text(column)) on the client and \(type.properties[index].typeText) in the app."
        )
    }

    /// The flag for null of a mixed value or link says nothing, as there is no choice.
    private static func agree(_ column: RealmColumn, _ known: RealmColumn) -> Bool {
        guard column.collection == known.collection else { return false }
        switch (column.type, known.type) {
        case (.mixed, .mixed): return true
        case (.link(let target), .link(let other)): return target.hasSameBytes(as: other)
        default: return column.type == known.type && column.isNullable == known.isNullable
        }
    }

    private static func text(_ column: RealmColumn) -> String {
        var isOptional = column.isNullable
        if case .link = column.type { isOptional = false }
        return Property(id: 0, name: column.name, type: column.type, collection: column.collection, isOptional: isOptional).typeText
    }

    private static let declare = "Declare it in the app's schema, or remove it from the client's model."
}
