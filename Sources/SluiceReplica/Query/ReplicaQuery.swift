package import SluiceCore
package import SluiceQuery

/// A query of the whole language over one class, as the device runs it.
///
/// What SQLite can say of the condition it says, by indexes where there are some; the rest is decided here on the rows that it selects. A
/// value: narrowing and arranging make new ones.
package struct ReplicaQuery: Hashable, Sendable {
    /// Index of the class in `Replica.schema`.
    package let type: Int
    /// Condition, sorting, DISTINCT and LIMIT; bound to the replica's schema.
    package let bound: BoundQuery

    /// - Parameter bound: nil: every object.
    package init(type: Int, in schema: Schema, bound: BoundQuery? = nil) {
        self.type = type
        self.bound = bound ?? .all(schema.types[type], in: schema)
    }

    /// The condition's canonical text; `TRUEPREDICATE` for every object. It keeps the names that were written.
    package var text: String { bound.conditionText }

    /// Whether there is no condition, order, DISTINCT or LIMIT.
    package var isWhole: Bool { bound.condition == .constant(true) && bound.suffixes.isEmpty }

    /// Those that meet a query text too; its SORT, DISTINCT and LIMIT come after those of this query.
    /// - Throws: what parsing and binding throw; `queryUnsupported` when this query has a LIMIT.
    package func narrowed(
        by text: String, arguments: [QueryArgument] = [], aliases: QueryAliases = QueryAliases()
    ) throws(SluiceError) -> ReplicaQuery {
        let other = try Query.parse(text).bind(to: bound.type, in: bound.schema, arguments: arguments, aliases: aliases)
        return with(try bound.narrowed(by: other))
    }

    /// Ordered by the values of key paths, which may go through links, the most significant first; null comes first, and what is equal in
    /// all keeps the order that it had.
    /// - Throws: `queryUnknownProperty`; `queryTypeMismatch` for a path through a collection or to an object.
    package func sorted(
        by keys: [(path: String, ascending: Bool)], aliases: QueryAliases = QueryAliases()
    ) throws(SluiceError) -> ReplicaQuery {
        keys.isEmpty ? self : with(try bound.arranged(.sort(keys), aliases: aliases))
    }

    /// Of those that are equal in all key paths the first. The same errors.
    package func distinct(by paths: [String], aliases: QueryAliases = QueryAliases()) throws(SluiceError) -> ReplicaQuery {
        paths.isEmpty ? self : with(try bound.arranged(.distinct(paths), aliases: aliases))
    }

    /// No more than the first `count`.
    package func limited(to count: Int) throws(SluiceError) -> ReplicaQuery { with(try bound.arranged(.limit(count))) }

    /// Arranged by the first so many of its SORTs, DISTINCTs and LIMITs only.
    func keepingSuffixes(_ count: Int) -> ReplicaQuery { with(bound.keepingSuffixes(count)) }

    private func with(_ bound: BoundQuery) -> ReplicaQuery { ReplicaQuery(type: type, in: bound.schema, bound: bound) }
}
