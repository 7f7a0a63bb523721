import SluiceCore

extension Predicate {
    /// Returns the condition for a user without access to these properties. They count as null, as on the device. The selection of rows
    /// then reveals nothing of their values. O(size).
    package func hiding(_ hidden: Set<Int>) -> Predicate {
        hidden.isDisjoint(with: properties) ? self : Predicate(type: type, bound: bound.hiding(hidden, of: type))
    }
}

extension BoundPredicate {
    fileprivate func hiding(_ hidden: Set<Int>, of type: ObjectType) -> BoundPredicate {
        switch self {
        case .constant: return self
        case .and(let parts): return .conjunction(parts.map { $0.hiding(hidden, of: type) })
        case .or(let parts): return .disjunction(parts.map { $0.hiding(hidden, of: type) })
        case .not(let inner): return .negation(inner.hiding(hidden, of: type))
        case .test(let subject, _):
            return hidden.contains(subject.property) ? .constant(isTrueOfNulls(type)) : self
        case .within(let property, _): return hidden.contains(property) ? .constant(false) : self
        case .properties(let left, let comparison, let right, _):
            guard hidden.contains(left) || hidden.contains(right) else { return self }
            let whereNull = isTrueOfNulls(type)
            if hidden.isSuperset(of: [left, right]) { return .constant(whereNull) }
            // Null and a value are not equal, and have no order.
            let elsewhere = comparison == .notEqual
            if whereNull == elsewhere { return .constant(whereNull) }
            return .test(.property(hidden.contains(left) ? right : left), Test(whereNull ? .equal : .notEqual, .null))
        }
    }

    private func isTrueOfNulls(_ type: ObjectType) -> Bool { Predicate(type: type, bound: self).matches([:]) }
}
