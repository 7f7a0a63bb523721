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

    /// Returns the predicate for rows with one of these values in a property, or in an element of a list or set.
    package static func any(of values: [Value], in property: Int, of type: ObjectType) -> Predicate {
        let (kind, collection) = (type.properties[property].type, type.properties[property].collection)
        let subject = collection == .none ? Subject.property(property) : .elements(property, .any)
        return Predicate(type: type, bound: .membership(of: subject, kind, in: values))
    }

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
    /// Binds the query and lowers it to a condition on one row of a class.
    ///
    /// SORT, DISTINCT and LIMIT are not part of a predicate. The caller applies them from `tree.suffixes`.
    /// - Parameters:
    ///   - type: A class of the schema.
    ///   - arguments: The values of `$0`, `$1`, … A list is permitted if the query expects one.
    /// - Throws: `queryUnknownProperty`, `queryTypeMismatch`, `queryArgument` or `queryShape` for a query without a meaning. Otherwise
    ///   `queryUnsupported` for the first construct that needs more than one row. Each has its place.
    package func predicate(on type: ObjectType, in schema: Schema, arguments: [Value] = []) throws(SluiceError) -> Predicate {
        let binder = QueryBinder(
            schema: schema, type: type, arguments: arguments.map { .value($0) }, aliases: QueryAliases(),
            diagnostic: QueryDiagnostic(source: source))
        let condition = try binder.bind(tree.root)
        do throws(QueryError) {
            return Predicate(type: type, bound: try RowLowering(type: type, variable: 0).lower(condition))
        } catch {
            throw binder.unsupported(error.text, at: error.position)
        }
    }
}
