package import SluiceCore

/// A condition of the whole language. `and` and `or` are kept as they were written; nothing is folded.
package indirect enum BoundCondition: Hashable, Sendable {
    case constant(Bool)
    case and([BoundCondition])
    case or([BoundCondition])
    case not(BoundCondition)
    /// The second part is the same comparison on one row's own values, where there is one.
    case compare(BoundComparison, scalar: BoundPredicate?)
    /// Any of the values contains the words.
    case fullText(BoundSide, TextSearch)
    /// Any of the points lies in the shape. The last part is the same of one row's own point, where it is one.
    case within(BoundSide, Geometry, scalar: BoundPredicate?)

    /// The whole condition on one row's own values; nil when a part of it needs more.
    var predicate: BoundPredicate? {
        switch self {
        case .constant(let value): return .constant(value)
        case .and(let parts): return BoundCondition.predicates(parts).map { .conjunction($0) }
        case .or(let parts): return BoundCondition.predicates(parts).map { .disjunction($0) }
        case .not(let inner): return inner.predicate.map { .negation($0) }
        case .compare(_, let scalar), .within(_, _, let scalar): return scalar
        case .fullText: return nil
        }
    }

    private static func predicates(_ parts: [BoundCondition]) -> [BoundPredicate]? {
        var predicates: [BoundPredicate] = []
        for part in parts {
            guard let predicate = part.predicate else { return nil }
            predicates.append(predicate)
        }
        return predicates
    }
}

package struct BoundComparison: Hashable, Sendable {
    package var left: BoundSide
    /// Never `isIn`, which is equality with any of the right side.
    package var test: TestOperator
    package var foldsCase: Bool
    package var right: BoundSide
    package var meaning: Meaning

    package enum Meaning: Hashable, Sendable {
        /// Every value of the left side against every value of the right one, by the sides' quantifiers.
        case values(nanIsLowest: Bool)
        /// Values against names of types; both are masks, see `TypeMask`.
        case types
        /// A list literal against a list without any quantifier: pair by pair; a set in the order of `SortOrder`, as its literal is.
        case pairs(nanIsLowest: Bool, isSet: Bool)
    }
}

/// One side of a comparison: what gives its values, and how many of them must hold.
package struct BoundSide: Hashable, Sendable {
    package var operand: BoundOperand
    /// ANY where none was written.
    package var quantifier: Quantifier
    /// Whether a quantifier was written.
    package var isQuantified: Bool
    package var type: BoundType
    /// Whether it may give any number of values; otherwise exactly one.
    package var isMany: Bool
}

package indirect enum BoundOperand: Hashable, Sendable {
    /// Brought to the type of the other side. A link is `Value.link`, whatever it is compared with.
    case constant(Value)
    case constants([Value])
    case path(BoundPath)
    case aggregate(BoundAggregate)
    case arithmetic(BoundOperand, Arithmetic, BoundOperand)
    /// How many objects that the path reaches satisfy the condition, in which they are variable `depth`.
    case subqueryCount(BoundPath, depth: Int, BoundCondition)
}

package struct BoundAggregate: Hashable, Sendable {
    /// The path of the collections or objects, and of the value within each when it has a property.
    package var collection: BoundPath
    package var function: Aggregate
    /// The property of the collected objects; nil for values.
    package var element: BoundPath?
    /// The type of the values that are aggregated.
    package var type: PropertyType
}

/// The type of an operand.
package enum BoundType: Hashable, Sendable {
    case null
    case value(PropertyType)
    /// Names of types, `@type`.
    case typeName

    var name: String {
        switch self {
        case .null: "null"
        case .value(let type): type.name
        case .typeName: "@type"
        }
    }
}
