package import SluiceCore

extension BoundQuery {
    /// Returns the query for every object of a class.
    package static func all(_ type: ObjectType, in schema: Schema) -> BoundQuery {
        BoundQuery(
            type: type, schema: schema, condition: .constant(true), suffixes: [],
            tree: SyntaxTree(root: SyntaxQuery(.constant(true)), suffixes: []), arguments: [])
    }

    /// Returns the query for objects that both select, arranged by this query's suffixes and then by the other's.
    /// - Precondition: Both are bound to the same class of the same schema.
    /// - Throws: `queryUnsupported` if this query has a LIMIT, because a further condition would change its result.
    package func narrowed(by other: BoundQuery) throws(SluiceError) -> BoundQuery {
        precondition(type.name == other.type.name, "queries of \(type.name) and \(other.type.name) cannot be joined")
        if suffixes.contains(where: { if case .limit = $0 { true } else { false } }) {
            throw SluiceError(.queryUnsupported, "A query with a LIMIT cannot be narrowed.", fix: "Put the LIMIT last.")
        }
        // Both queries number their arguments from 0, so they are substituted before the trees are joined.
        let (mine, others) = (tree.substituting(arguments), other.tree.substituting(other.arguments))
        return BoundQuery(
            type: type, schema: schema, condition: BoundQuery.both(condition, other.condition), suffixes: suffixes + other.suffixes,
            tree: SyntaxTree(root: BoundQuery.both(mine.root, others.root), suffixes: mine.suffixes + others.suffixes), arguments: [])
    }

    private static func both(_ left: BoundCondition, _ right: BoundCondition) -> BoundCondition {
        switch (left, right) {
        case (.constant(true), let other), (let other, .constant(true)): other
        case (.and(let l), .and(let r)): .and(l + r)
        case (.and(let l), _): .and(l + [right])
        case (_, .and(let r)): .and([left] + r)
        default: .and([left, right])
        }
    }

    private static func both(_ left: SyntaxQuery, _ right: SyntaxQuery) -> SyntaxQuery {
        switch (left.kind, right.kind) {
        case (.constant(true), _): right
        case (_, .constant(true)): left
        case (.and(let l), .and(let r)): SyntaxQuery(.and(l + r))
        case (.and(let l), _): SyntaxQuery(.and(l + [right]))
        case (_, .and(let r)): SyntaxQuery(.and([left] + r))
        default: SyntaxQuery(.and([left, right]))
        }
    }

    /// A suffix from an API instead of a query's text, with names of properties in place of paths.
    package enum NamedSuffix: Hashable, Sendable {
        /// The most significant key first.
        case sort([(path: String, ascending: Bool)])
        case distinct([String])
        case limit(Int)

        package static func == (lhs: NamedSuffix, rhs: NamedSuffix) -> Bool { lhs.syntax == rhs.syntax }
        package func hash(into hasher: inout Hasher) { hasher.combine(syntax) }

        fileprivate var syntax: QuerySuffix {
            switch self {
            case .sort(let keys):
                QuerySuffix(.sort(keys.map { QuerySuffix.SortKey(path: NamedSuffix.path($0.path), ascending: $0.ascending) }))
            case .distinct(let paths): QuerySuffix(.distinct(paths.map { NamedSuffix.path($0) }))
            case .limit(let count): QuerySuffix(.limit(Int64(count)))
            }
        }

        /// Returns the path of names separated by dots.
        private static func path(_ text: String) -> SyntaxPath { SyntaxPath(steps: SyntaxPath.steps(of: text, at: .unknown).steps) }
    }

    /// Returns the query with one more suffix.
    /// - Throws: `queryUnknownProperty`, or `queryTypeMismatch` for a path without exactly one ordered value.
    package func arranged(
        _ arrangement: NamedSuffix, aliases: QueryAliases = QueryAliases()
    ) throws(SluiceError) -> BoundQuery {
        let suffix = arrangement.syntax
        let binder = QueryBinder(
            schema: schema, type: type, arguments: [], aliases: aliases,
            diagnostic: QueryDiagnostic(source: CanonicalPrinter.print(SyntaxTree(root: SyntaxQuery(.constant(true)), suffixes: [suffix]))))
        let mine = tree.substituting(arguments)
        return BoundQuery(
            type: type, schema: schema, condition: condition, suffixes: suffixes + (try binder.suffixes([suffix])),
            tree: SyntaxTree(root: mine.root, suffixes: mine.suffixes + [suffix]), arguments: [])
    }

    /// The text of the condition alone, with its arguments substituted.
    package var conditionText: String { tree.substituting(arguments).root.canonicalText }
}
