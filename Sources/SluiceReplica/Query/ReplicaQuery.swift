package import SluiceCore
package import SluiceQuery

/// A query of the full language over one class, executed on the device.
///
/// SQLite evaluates the part of the condition that SQL can express, with indexes if available. The rest is evaluated on the selected
/// rows. A value type: narrowing and arranging return new queries.
package struct ReplicaQuery: Hashable, Sendable {
    /// The index of the class in `Replica.schema`.
    package let type: Int
    /// Condition, sorting, DISTINCT and LIMIT, bound to the replica's schema.
    package let bound: BoundQuery

    /// - Parameter bound: `nil` matches every object.
    package init(type: Int, in schema: Schema, bound: BoundQuery? = nil) {
        self.type = type
        self.bound = bound ?? .all(schema.types[type], in: schema)
    }

    /// The canonical text of the condition, with the names as written. `TRUEPREDICATE` for every object.
    package var text: String { bound.conditionText }

    /// `true` without condition, order, DISTINCT and LIMIT.
    package var isWhole: Bool { bound.condition == .constant(true) && bound.suffixes.isEmpty }

    /// Returns a query for the objects that also meet a query text. Its SORT, DISTINCT and LIMIT apply after this query's.
    /// - Throws: the errors of parsing and binding; `queryUnsupported` if this query has a LIMIT.
    package func narrowed(
        by text: String, arguments: [QueryArgument] = [], aliases: QueryAliases = QueryAliases()
    ) throws(SluiceError) -> ReplicaQuery {
        let other = try Query.parse(text).bind(to: bound.type, in: bound.schema, arguments: arguments, aliases: aliases)
        return with(try bound.narrowed(by: other))
    }

    /// Returns the query ordered by the values of key paths, the most significant first. Paths may follow links. Null comes first. The
    /// sort is stable.
    /// - Throws: `queryUnknownProperty`; `queryTypeMismatch` for a path through a collection or to an object.
    package func sorted(
        by keys: [(path: String, ascending: Bool)], aliases: QueryAliases = QueryAliases()
    ) throws(SluiceError) -> ReplicaQuery {
        keys.isEmpty ? self : with(try bound.arranged(.sort(keys), aliases: aliases))
    }

    /// Returns a query that keeps the first of the objects that are equal in all key paths. Throws the errors of `sorted`.
    package func distinct(by paths: [String], aliases: QueryAliases = QueryAliases()) throws(SluiceError) -> ReplicaQuery {
        paths.isEmpty ? self : with(try bound.arranged(.distinct(paths), aliases: aliases))
    }

    /// Returns a query for the first `count` objects.
    package func limited(to count: Int) throws(SluiceError) -> ReplicaQuery { with(try bound.arranged(.limit(count))) }

    /// Returns a query with only the first `count` of its SORTs, DISTINCTs and LIMITs.
    func keepingSuffixes(_ count: Int) -> ReplicaQuery { with(bound.keepingSuffixes(count)) }

    private func with(_ bound: BoundQuery) -> ReplicaQuery { ReplicaQuery(type: type, in: bound.schema, bound: bound) }
}
