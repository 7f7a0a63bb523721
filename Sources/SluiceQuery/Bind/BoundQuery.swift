package import SluiceCore

/// A query of the whole language, bound to an object type of a schema: names resolved, constants brought to the types they meet.
///
/// It is evaluated over an `ObjectGraph`. Where its condition reads nothing but scalars and lists of scalars of the row itself,
/// `predicate` holds the same condition for the places that have one row and nothing else.
package struct BoundQuery: Hashable, Sendable {
    package let type: ObjectType
    package let schema: Schema
    package let condition: BoundCondition
    /// SORT, DISTINCT and LIMIT, in the order in which they are applied.
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

    /// The query with its arguments filled in. It binds back to the same query without them, unless an argument has no literal
    /// (a container, a null among a list's quantified values has one). Printed anew each time.
    package var canonicalText: String { CanonicalPrinter.print(tree.substituting(arguments)) }

    /// The whole condition as a condition on one row; nil when it needs more than that.
    package var predicate: Predicate? { condition.predicate.map { Predicate(type: type, bound: $0) } }

    /// However they were written.
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
    /// A list where the query wants one; a string for `$K0`, and for GEOWITHIN if it holds a shape as a query writes it.
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
    /// Resolves names and types over links, collections and embedded objects, and checks everything that the language checks.
    ///
    /// - Parameters:
    ///   - type: a type of the schema; the rows that the query selects are its.
    ///   - aliases: other names for classes and properties; the canonical text keeps them.
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
