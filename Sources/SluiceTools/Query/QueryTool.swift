package import SluiceCore
import SluiceGateway
package import SluiceQuery
package import SluiceValues

/// The operations of `sluice query` on one class of a schema, without the output.
package struct QueryTool: Sendable {
    package let schema: Schema
    package let type: ObjectType
    package let arguments: [Value]
    /// The queryable fields of the app directory; nil if the schema is a file.
    private let declared: QueryableFields?

    /// - Throws: `unknownType`.
    package init(
        schema: Schema, declared: QueryableFields? = nil, type name: String, arguments: [Value] = []
    ) throws(SluiceError) {
        (self.schema, self.type, self.arguments) = (schema, try schema.requireType(name), arguments)
        self.declared = declared
    }

    /// Returns the canonical text of a query. Names and types are not checked.
    ///
    /// - Throws: `querySyntax`.
    package static func canonicalText(_ text: String) throws(SluiceError) -> String { try Query.parse(text).canonicalText }

    /// Parses a query and binds it to the class.
    ///
    /// - Throws: The errors of the query language.
    package func bind(_ text: String) throws(SluiceError) -> BoundQuery {
        try Query.parse(text).bind(to: type, in: schema, arguments: arguments.map { .value($0) })
    }

    /// Returns the primary keys of the selected rows, in the order of the query or else of the graph.
    package func run(_ text: String, over graph: MemoryGraph) throws(SluiceError) -> [Value] { try bind(text).run(over: graph) }

    /// Checks a query as the gateway does for a subscription.
    ///
    /// - Throws: The errors of `bind`, and those that reject a subscription.
    package func check(_ text: String, _ fields: QueryableFields) throws(SluiceError) -> Predicate {
        try Subscription.checkSize(ofSet: [text])
        return try Subscription.check(type: type, query: try Query.parse(text), arguments: arguments, in: schema, fields: fields)
    }

    /// Returns the queryable fields that the command line names.
    ///
    /// - Parameter queryable: The names. Without these and `indexed`, the fields are those of the app directory. Of a schema file, every
    ///   eligible field is queryable, as in development mode.
    /// - Throws: `configInvalid` for an unknown or reserved name, and for an indexed field of an unfit type.
    package func fields(queryable: [String]?, indexed: String?) throws(SluiceError) -> QueryableFields {
        if let declared, queryable == nil, indexed == nil { return declared }
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

extension SluiceError {
    /// The error as a line of batch mode: `{"ok": false, "code": …, "name": …, "message": …, "line": …, "column": …, "fix": …}`. An error
    /// of the whole query has line 1 and column 1.
    package var answer: JSON {
        let parts = QueryErrorParts(self)
        return [
            "ok": false, "code": .int(Int64(code.rawValue)), "name": .string(code.name), "message": .string(parts?.sentence ?? message),
            "line": .int(Int64(parts?.line ?? 1)), "column": .int(Int64(parts?.column ?? 1)), "fix": .string(fix ?? code.fix),
        ]
    }

    /// The error for standard error: code, message with its position, causes, and fix.
    package var shown: String {
        let text = operatorText
        return "sluice: \(code.name) (\(code.rawValue)): \(text)\(text.hasSuffix("\n") ? "" : "\n")    \(fix ?? code.fix)\n"
    }

    /// Returns the exit code of `sluice query`. It is 3 for a query that is no valid subscription, 2 for an invalid query or unknown
    /// class, and 1 for any other error.
    ///
    /// - Parameter isCheck: `true` for `sluice query check`. Only then is the code 3.
    package func exitCode(isCheck: Bool) -> Int32 {
        switch code.rawValue {
        case 310..<350 where isCheck: 3
        case 300..<400: 2
        default: code == .unknownType ? 2 : 1
        }
    }
}
