import SluiceCore
import SluicePorts

/// Checks a client's schema against the server's.
enum SchemaCheck {
    /// Returns the schema for the session.
    /// A client may use a subset of classes and properties. In development mode, unknown ones are added.
    /// A class without properties stands for all properties of the server's class.
    /// - Throws: `invalidSchemaChange` for unknown ones outside development mode and for a property of another type; `unknownType` for an
    ///   unknown class without properties; `badChangeset` for a class of another kind.
    static func accept(_ client: [ObjectType], authority: any SchemaAuthority) async throws -> AppSchema {
        let current = authority.current()
        var isMissing = false
        for type in client {
            guard let known = current.schema[type.name] else {
                // Not even development mode can add it.
                guard !type.properties.isEmpty else { throw unknown(type, in: current.schema) }
                isMissing = true
                continue
            }
            try compare(type, with: known)
            isMissing = isMissing || type.properties.contains { known[$0.name] == nil }
        }
        return isMissing ? try await authority.extend(by: client) : current
    }

    private static func unknown(_ type: ObjectType, in schema: Schema) -> SluiceError {
        let near = Suggestion.nearest(to: type.name, in: schema.types.map(\.name))
        return SluiceError(
            .unknownType, "The app has no class '\(type.name)'.",
            fix: near.map { "Did you mean '\($0)'?" } ?? "Check the name of the class.")
    }

    private static let otherType = """
        Give the property the server's type, or change the column and the server's schema (docs/operations.md, "Changing the schema"). With \
        `sluice dev` begin with another data folder, or drop the column: development adds what is new and changes nothing.
        """

    private static func compare(_ client: ObjectType, with server: ObjectType) throws(SluiceError) {
        guard client.kind == server.kind else {
            throw SluiceError(.badChangeset, "Class \(client.name) is \(client.kind) in the app and \(server.kind) on the server.")
        }
        // A client that uses a part of a class need not name its key.
        if let key = client.primaryKey.map({ client.properties[$0].name }), key != server.primaryKey.map({ server.properties[$0].name }) {
            throw SluiceError(.invalidSchemaChange, "Class \(client.name) has the primary key \(key) in the app and another on the server.")
        }
        for property in client.properties {
            guard let known = server[property.name] else { continue }
            guard known.type == property.type, known.collection == property.collection, known.isOptional == property.isOptional else {
                throw SluiceError(
                    .invalidSchemaChange,
                    "Property \(client.name).\(property.name) is \(property.typeText) in the app and \(known.typeText) on the server.",
                    fix: otherType)
            }
        }
    }
}
