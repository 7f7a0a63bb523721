package import SluiceCore
package import SluiceQuery

/// What `sluice query` does with the text of a query, but for printing.
package struct QueryTool: Sendable {
    package let schema: Schema
    package let type: ObjectType
    package let arguments: [Value]

    /// - Throws: `unknownType`.
    package init(schema: Schema, type name: String, arguments: [Value] = []) throws(SluiceError) {
        guard let type = schema[name] else {
            let near = Suggestion.nearest(to: name, in: schema.types.map(\.name))
            throw SluiceError(
                .unknownType, "The schema has no class '\(name)'.",
                fix: near.map { "Did you mean '\($0)'?" } ?? "It has \(schema.types.map(\.name).joined(separator: ", ")).")
        }
        (self.schema, self.type, self.arguments) = (schema, type, arguments)
    }

    /// - Throws: `querySyntax`.
    package static func canonicalText(_ text: String) throws(SluiceError) -> String { try Query.parse(text).canonicalText }

    /// - Throws: the errors of the query language.
    package func bind(_ text: String) throws(SluiceError) -> BoundQuery {
        try Query.parse(text).bind(to: type, in: schema, arguments: arguments.map { .value($0) })
    }

    /// The primary keys of the rows that a query selects, in its order or the graph's.
    package func run(_ text: String, over graph: MemoryGraph) throws(SluiceError) -> [Value] { try bind(text).run(over: graph) }

    /// Checks a query as the gateway does when a client subscribes.
    /// - Throws: like `bind`, and the refusals.
    package func check(_ text: String, _ fields: QueryableFields) throws(SluiceError) -> Predicate {
        try Subscription.checkSize(ofSet: [text])
        return try Subscription.check(type: type, query: try Query.parse(text), arguments: arguments, in: schema, fields: fields)
    }

    /// The queryable fields that the command line names.
    /// - Parameter queryable: nil for every field that can be, as in development mode.
    /// - Throws: `configInvalid` for a name that the class does not have or that no queryable field may have, and for an indexed field of
    ///   an unfit type.
    package func fields(queryable: [String]?, indexed: String?) throws(SluiceError) -> QueryableFields {
        let named = (queryable ?? []) + [indexed].compactMap(\.self)
        if let word = named.first(where: QueryableFields.isReserved) {
            throw SluiceError(.configInvalid, "'\(word)' is a word of the query language.", fix: "Rename the field.")
        }
        for name in named where type[name] == nil {
            let near = Suggestion.nearest(to: name, in: type.properties.map(\.name))
            throw SluiceError(
                .configInvalid, "\(type.name) has no property '\(name)' to be queryable.", fix: near.map { "Did you mean '\($0)'?" })
        }
        if let indexed, let property = type[indexed],
            ![.int, .string, .objectId, .uuid].contains(property.type) || property.collection != .none
        {
            throw SluiceError(
                .configInvalid, "The indexed queryable field '\(indexed)' is a \(property.typeText).",
                fix: "It must be long, string, objectId or uuid.")
        }
        let all = type.properties.filter { $0.isEligible || schema.isPoint($0) }.map(\.name).filter { !QueryableFields.isReserved($0) }
        return QueryableFields(byType: [type.name: Set(queryable ?? all)], indexed: indexed)
    }
}

/// A value as `sluice query run` prints a key: strings as they are, integers in decimal, ObjectIds and UUIDs in small hexadecimal digits.
extension Value {
    package var keyText: String {
        switch self {
        case .string(let text): text
        case .int(let number): "\(number)"
        case .objectId(let id): id.description
        case .uuid(let id): id.description
        default: ExtendedJSON.json(self).text
        }
    }
}

extension SluiceError {
    /// As one line of batch mode: `{"ok": false, "code": …, "name": …, "message": …, "line": …, "column": …, "fix": …}`. What is wrong with
    /// the query as a whole is at its beginning.
    package var answer: JSON {
        let parts = QueryErrorParts(self)
        return [
            "ok": false, "code": .int(Int64(code.rawValue)), "name": .string(code.name), "message": .string(parts?.sentence ?? message),
            "line": .int(Int64(parts?.line ?? 1)), "column": .int(Int64(parts?.column ?? 1)), "fix": .string(fix ?? code.fix),
        ]
    }

    /// As standard error shows it: code, message with the place below it, and what to do.
    package var shown: String {
        "sluice: \(code.name) (\(code.rawValue)): \(message)\(message.hasSuffix("\n") ? "" : "\n")    \(fix ?? code.fix)\n"
    }

    /// How `sluice query` ends with it: 3 for a query that is no subscription, 2 for one that is wrong (or names a class that is not
    /// there), 1 for anything else.
    /// - Parameter isCheck: whether it was asked for a subscription.
    package func exitCode(isCheck: Bool) -> Int32 {
        switch code.rawValue {
        case 310..<350 where isCheck: 3
        case 300..<400: 2
        default: code == .unknownType ? 2 : 1
        }
    }
}
