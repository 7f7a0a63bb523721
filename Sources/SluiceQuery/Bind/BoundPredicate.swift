package import SluiceCore

/// A condition on one row, its names resolved to property indices and its constants to the properties' types.
///
/// `and` and `or` hold two or more parts and none of their own kind. Constants fit their property: an int property meets only
/// int constants, no NaN is left, -0 is 0, decimals are normalised; a mixed property meets any value.
package indirect enum BoundPredicate: Hashable, Sendable {
    case constant(Bool)
    case and([BoundPredicate])
    case or([BoundPredicate])
    case not(BoundPredicate)
    /// Something of the row against constants.
    case test(Subject, Test)
    /// One scalar property against another.
    case properties(Int, TestOperator, Int, foldsCase: Bool)
    /// The embedded object of a property is a point that lies in the shape; false for null and for what is no point.
    case within(Int, Geometry)
}

/// What of a row is tested.
package enum Subject: Hashable, Sendable {
    case property(Int)
    /// The elements of a list or set of scalars; a null list has none. Of no elements ANY is false, ALL and NONE are true.
    case elements(Int, Quantifier)
    /// The number of elements of a list or set, an int; a null list has 0.
    case count(Int)

    package var property: Int {
        switch self {
        case .property(let index), .elements(let index, _), .count(let index): index
        }
    }
}

/// The condition on a value. Null is only equal to null; every other operator but `notEqual` is false for a null value.
package struct Test: Hashable, Sendable {
    package var comparison: TestOperator
    /// For `isIn` a list: sorted, without duplicates, two values or more.
    package var value: Value
    /// `[c]`; the value is folded already.
    package var foldsCase: Bool

    package init(_ comparison: TestOperator, _ value: Value, foldsCase: Bool = false) {
        self.comparison = comparison
        self.value = value
        self.foldsCase = foldsCase
    }
}

package enum TestOperator: UInt8, Hashable, Sendable {
    case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual, isIn, beginsWith, endsWith, contains, like

    /// The operator with its sides exchanged; nil for those that have no mirror image.
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

    /// Comparisons in it.
    package var leafCount: Int {
        switch self {
        case .constant: 0
        case .and(let parts), .or(let parts): parts.reduce(0) { $0 + $1.leafCount }
        case .not(let inner): inner.leafCount
        case .test, .properties, .within: 1
        }
    }

    /// Levels of AND, OR and NOT.
    package var depth: Int {
        switch self {
        case .constant, .test, .properties, .within: 0
        case .and(let parts), .or(let parts): 1 + (parts.map(\.depth).max() ?? 0)
        case .not(let inner): 1 + inner.depth
        }
    }

    /// Adds the indices of all properties that it reads.
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
