package import SluiceCore

/// A query bound to a class, with names resolved and constants typed. It reads rows of that class only.
package struct Predicate: Hashable, Sendable {
    package let type: ObjectType
    package let bound: BoundPredicate

    package init(type: ObjectType, bound: BoundPredicate) {
        self.type = type
        self.bound = bound
    }

    /// Returns the predicate that holds for every row.
    package static func `true`(_ type: ObjectType) -> Predicate { Predicate(type: type, bound: .constant(true)) }
    /// Returns the predicate that holds for no row.
    package static func `false`(_ type: ObjectType) -> Predicate { Predicate(type: type, bound: .constant(false)) }

    /// - Precondition: Both are bound to the same class.
    package static func and(_ left: Predicate, _ right: Predicate) -> Predicate {
        precondition(left.type.name == right.type.name, "predicates of \(left.type.name) and \(right.type.name) cannot be joined")
        return Predicate(type: left.type, bound: .conjunction([left.bound, right.bound]))
    }

    /// - Precondition: Both are bound to the same class.
    package static func or(_ left: Predicate, _ right: Predicate) -> Predicate {
        precondition(left.type.name == right.type.name, "predicates of \(left.type.name) and \(right.type.name) cannot be joined")
        return Predicate(type: left.type, bound: .disjunction([left.bound, right.bound]))
    }

    package static prefix func ! (predicate: Predicate) -> Predicate {
        Predicate(type: predicate.type, bound: .negation(predicate.bound))
    }

    /// The indices of the properties that the predicate reads.
    package var properties: Set<Int> {
        var set: Set<Int> = []
        bound.collectProperties(into: &set)
        return set
    }

    /// A query text that binds to this predicate.
    package var canonicalText: String { CanonicalPrinter.print(bound.syntax(in: type)) }

    package static func == (lhs: Predicate, rhs: Predicate) -> Bool {
        lhs.bound == rhs.bound && lhs.type.name == rhs.type.name
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(bound)
        hasher.combine(type.name)
    }
}

extension Query {
    /// Resolves the query's names and types.
    ///
    /// - Parameter arguments: The values of `$0`, `$1`, … A list is permitted if the query expects one.
    /// - Throws: `queryUnknownProperty`, `queryTypeMismatch`, `queryArgument`, `queryShape`, or `queryUnsupported` for constructs that need
    ///   more than one row. Each has its place.
    ///
    /// SORT, DISTINCT and LIMIT are not part of a predicate. The caller applies them from `tree.suffixes`.
    package func bind(to type: ObjectType, arguments: [Value] = []) throws(SluiceError) -> Predicate {
        let binder = Binder(type: type, arguments: arguments, diagnostic: QueryDiagnostic(source: source))
        return Predicate(type: type, bound: try binder.bind(tree.root))
    }
}
