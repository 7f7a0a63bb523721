package import SluiceCore

/// A condition on one row, with names resolved to property indices and constants of the properties' types.
///
/// A conjunction or disjunction holds two or more parts, and none of its own kind. Constants fit their property. An int property compares
/// only with int constants. NaN does not occur, -0 is 0, and decimals are normalised. A mixed property compares with any value.
package indirect enum BoundPredicate: Hashable, Sendable {
    case constant(Bool)
    case and([BoundPredicate])
    case or([BoundPredicate])
    case not(BoundPredicate)
    /// A test of a part of the row against constants.
    case test(Subject, Test)
    /// A comparison of two scalar properties.
    case properties(Int, TestOperator, Int, foldsCase: Bool)
    /// `true` if the property's embedded object is a point in the shape. `false` for null and for other objects.
    case within(Int, Geometry)
}

/// The tested part of a row.
package enum Subject: Hashable, Sendable {
    case property(Int)
    /// The elements of a list or set of scalars. A null list has none. For no elements ANY is false, ALL and NONE are true.
    case elements(Int, Quantifier)
    /// The number of elements of a list or set, an int. A null list has 0.
    case count(Int)

    package var property: Int {
        switch self {
        case .property(let index), .elements(let index, _), .count(let index): index
        }
    }
}

/// The condition on a value. Null equals only null. Every operator except `notEqual` is false for a null value otherwise.
package struct Test: Hashable, Sendable {
    package var comparison: TestOperator
    /// For `isIn` a sorted list of two or more distinct values.
    package var value: Value
    /// `true` for `[c]`. The value is already folded.
    package var foldsCase: Bool

    package init(_ comparison: TestOperator, _ value: Value, foldsCase: Bool = false) {
        self.comparison = comparison
        self.value = value
        self.foldsCase = foldsCase
    }
}

package enum TestOperator: UInt8, Hashable, Sendable {
    case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual, isIn, beginsWith, endsWith, contains, like

    /// The operator for exchanged sides, or nil if it has none.
    var mirrored: TestOperator? {
        switch self {
        case .equal, .notEqual: self
        case .less: .greater
        case .lessOrEqual: .greaterOrEqual
        case .greater: .less
        case .greaterOrEqual: .lessOrEqual
        case .isIn, .beginsWith, .endsWith, .contains, .like: nil
        }
    }

    var isOrdering: Bool {
        switch self {
        case .less, .lessOrEqual, .greater, .greaterOrEqual: true
        case .equal, .notEqual, .isIn, .beginsWith, .endsWith, .contains, .like: false
        }
    }

    var isText: Bool {
        switch self {
        case .beginsWith, .endsWith, .contains, .like: true
        case .equal, .notEqual, .isIn, .less, .lessOrEqual, .greater, .greaterOrEqual: false
        }
    }

    var syntax: ComparisonOperator {
        switch self {
        case .equal: .equal
        case .notEqual: .notEqual
        case .less: .less
        case .lessOrEqual: .lessOrEqual
        case .greater: .greater
        case .greaterOrEqual: .greaterOrEqual
        case .isIn: .isIn
        case .beginsWith: .beginsWith
        case .endsWith: .endsWith
        case .contains: .contains
        case .like: .like
        }
    }
}

extension BoundPredicate {
    package static func conjunction(_ parts: [BoundPredicate]) -> BoundPredicate {
        var flat: [BoundPredicate] = []
        for part in parts {
            switch part {
            case .constant(true): break
            case .constant(false): return .constant(false)
            case .and(let inner): flat.append(contentsOf: inner)
            case .or, .not, .test, .properties, .within: flat.append(part)
            }
        }
        return flat.isEmpty ? .constant(true) : flat.count == 1 ? flat[0] : .and(flat)
    }

    package static func disjunction(_ parts: [BoundPredicate]) -> BoundPredicate {
        var flat: [BoundPredicate] = []
        for part in parts {
            switch part {
            case .constant(false): break
            case .constant(true): return .constant(true)
            case .or(let inner): flat.append(contentsOf: inner)
            case .and, .not, .test, .properties, .within: flat.append(part)
            }
        }
        return flat.isEmpty ? .constant(false) : flat.count == 1 ? flat[0] : .or(flat)
    }

    package static func negation(_ part: BoundPredicate) -> BoundPredicate {
        switch part {
        case .constant(let value): .constant(!value)
        case .not(let inner): inner
        case .and, .or, .test, .properties, .within: .not(part)
        }
    }

    /// The number of comparisons.
    package var leafCount: Int {
        switch self {
        case .constant: 0
        case .and(let parts), .or(let parts): parts.reduce(0) { $0 + $1.leafCount }
        case .not(let inner): inner.leafCount
        case .test, .properties, .within: 1
        }
    }

    /// The number of levels of AND, OR and NOT.
    package var depth: Int {
        switch self {
        case .constant, .test, .properties, .within: 0
        case .and(let parts), .or(let parts): 1 + (parts.map(\.depth).max() ?? 0)
        case .not(let inner): 1 + inner.depth
        }
    }

    /// Adds the indices of all properties that the condition reads.
    package func collectProperties(into set: inout Set<Int>) {
        switch self {
        case .constant: break
        case .and(let parts), .or(let parts): for part in parts { part.collectProperties(into: &set) }
        case .not(let inner): inner.collectProperties(into: &set)
        case .test(let subject, _): set.insert(subject.property)
        case .properties(let left, _, let right, _): set.formUnion([left, right])
        case .within(let property, _): set.insert(property)
        }
    }
}
