package import SluiceCore

/// A query of the whole language, bound to a class of a schema: names resolved, and constants converted to the types that they compare
/// with.
///
/// It is evaluated over an `ObjectGraph`. If the condition reads only scalars and lists of scalars of the row itself, `predicate` is the
/// same condition for callers with a single row.
package struct BoundQuery: Hashable, Sendable {
    package let type: ObjectType
    package let schema: Schema
    package let condition: BoundCondition
    /// SORT, DISTINCT and LIMIT, in the order of their application.
    package let suffixes: [BoundSuffix]
    let tree: SyntaxTree
    let arguments: [QueryArgument]

    init(
        type: ObjectType, schema: Schema, condition: BoundCondition, suffixes: [BoundSuffix], tree: SyntaxTree, arguments: [QueryArgument]
    ) {
        self.type = type
        self.schema = schema
        self.condition = condition
        self.suffixes = suffixes
        self.tree = tree
        self.arguments = arguments
    }

    /// The query with its arguments substituted. It binds without arguments to the same query, unless an argument has no literal, as a
    /// dictionary. Printed at each access.
    package var canonicalText: String { CanonicalPrinter.print(tree.substituting(arguments)) }

    /// The whole condition lowered to one row, or nil if it needs more. O(size of the condition).
    package var predicate: Predicate? { condition.predicate(on: type).map { Predicate(type: type, bound: $0) } }

    /// `true` if both queries have the same meaning, regardless of their spelling.
    package static func == (lhs: BoundQuery, rhs: BoundQuery) -> Bool {
        lhs.condition == rhs.condition && lhs.suffixes == rhs.suffixes && lhs.type == rhs.type && lhs.schema == rhs.schema
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(type.name)
        hasher.combine(condition)
        hasher.combine(suffixes)
    }
}

/// A value for `$0`, `$1`, …
package enum QueryArgument: Hashable, Sendable {
    /// A list is permitted if the query expects one. A string replaces `$K0`, or is the text of a shape for GEOWITHIN.
    case value(Value)
    case shape(GeoShape)
}

/// One of SORT, DISTINCT and LIMIT.
package enum BoundSuffix: Hashable, Sendable {
    case sort([Key])
    case distinct([BoundPath])
    case limit(Int)

    package struct Key: Hashable, Sendable {
        package var path: BoundPath
        package var ascending: Bool
    }
}

extension Query {
    /// Resolves names and types over links, collections and embedded objects, and applies all checks of the language.
    ///
    /// - Parameters:
    ///   - type: The class of the selected rows, a class of the schema.
    ///   - aliases: Other names for classes and properties. The canonical text keeps them.
    /// - Throws: `queryUnknownProperty`, `queryTypeMismatch`, `queryArgument`, `queryShape` or `queryUnsupported`, with the place.
    package func bind(
        to type: ObjectType, in schema: Schema, arguments: [QueryArgument] = [], aliases: QueryAliases = QueryAliases()
    ) throws(SluiceError) -> BoundQuery {
        let binder = QueryBinder(
            schema: schema, type: type, arguments: arguments, aliases: aliases, diagnostic: QueryDiagnostic(source: source))
        let condition = try binder.bind(tree.root)
        return BoundQuery(
            type: type, schema: schema, condition: condition, suffixes: try binder.suffixes(tree.suffixes),
            tree: tree, arguments: arguments)
    }
}
