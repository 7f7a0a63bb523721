package import SluiceCore

/// A condition of the whole language. `and` and `or` keep their written structure; nothing is folded.
///
/// `RowLowering` turns it into a `BoundPredicate` if one row decides it. Equality ignores positions.
package indirect enum BoundCondition: Hashable, Sendable {
    case constant(Bool)
    case and([BoundCondition])
    case or([BoundCondition])
    case not(BoundCondition)
    case compare(BoundComparison)
    /// `true` if any of the values contains the words. The position is that of TEXT.
    case fullText(BoundSide, TextSearch, SourcePosition)
    /// `true` if any of the points is in the shape.
    case within(BoundSide, Geometry)
}

package struct BoundComparison: Hashable, Sendable {
    package var left: BoundSide
    /// Never `isIn`, which is equality with any value of the right side.
    package var test: TestOperator
    package var foldsCase: Bool
    package var right: BoundSide
    package var meaning: Meaning
    /// The position of the operator.
    package var position: SourcePosition

    package enum Meaning: Hashable, Sendable {
        /// Compares every value of the left side with every value of the right one, by the sides' quantifiers.
        case values(nanIsLowest: Bool)
        /// Compares the types of values with names of types. Both are masks, see `TypeMask`.
        case types
        /// Compares a list literal with a list without a quantifier, pair by pair. A set is in `SortOrder`, as its literal is.
        case pairs(nanIsLowest: Bool, isSet: Bool)
    }
}

/// One side of a comparison: the source of its values, and the number of them that must hold.
package struct BoundSide: Hashable, Sendable {
    package var operand: BoundOperand
    /// The written quantifier, or ANY without one. ANY for a side with exactly one value.
    package var quantifier: Quantifier
    /// `true` if the text has a quantifier.
    package var isQuantified: Bool
    package var type: BoundType
    /// `true` if the side may have any number of values. Otherwise it has exactly one.
    package var isMany: Bool
    /// The position of the first token.
    package var position: SourcePosition
}

package indirect enum BoundOperand: Hashable, Sendable {
    /// A constant of the other side's type. A link is always `Value.link`.
    case constant(Value)
    case constants([Value])
    case path(BoundPath)
    case aggregate(BoundAggregate)
    case arithmetic(BoundOperand, Arithmetic, BoundOperand)
    /// The number of objects at the path that satisfy the condition. They are variable `depth` in it.
    case subqueryCount(BoundPath, depth: Int, BoundCondition)
}

package struct BoundAggregate: Hashable, Sendable {
    /// The path of the collections or objects. If it has a property, the path includes the value within each.
    package var collection: BoundPath
    package var function: Aggregate
    /// The property of the collected objects, or nil for values.
    package var element: BoundPath?
    /// The type of the aggregated values.
    package var type: PropertyType
}

/// The type of an operand.
package enum BoundType: Hashable, Sendable {
    case null
    case value(PropertyType)
    /// The name of a type, from `@type`.
    case typeName

    var name: String {
        switch self {
        case .null: "null"
        case .value(let type): type.name
        case .typeName: "@type"
        }
    }
}
