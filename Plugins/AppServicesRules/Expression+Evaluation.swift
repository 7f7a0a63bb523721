import SluicePluginKit

// Evaluation in a session. Besides true and false there is "not known" (nil): a comparison with an expansion that has no
// value, such as a custom data member that this user lacks, or that nothing here can tell. It propagates as in three-valued logic, so that neither the
// comparison nor its negation lets anybody in.

extension Expression {
    /// Whether the expression certainly holds, with the session's document for the fields that it names.
    func isTrue(in session: SessionContext) -> Bool { truth(in: session) == true }

    func truth(in session: SessionContext) -> Bool? {
        switch self {
        case .constant(let value): return value
        case .all(let parts):
            let truths = parts.map { $0.truth(in: session) }
            return truths.contains(false) ? false : truths.contains(nil) ? nil : true
        case .any(let parts):
            let truths = parts.map { $0.truth(in: session) }
            return truths.contains(true) ? true : truths.contains(nil) ? nil : false
        case .not(let part): return part.truth(in: session).map { !$0 }
        case .exists(.expansion(let expansion), _) where !expansion.isKnown(in: session): return nil
        case .test(.expansion(let expansion), _, _) where !expansion.isKnown(in: session): return nil
        case .exists(.expansion(let expansion), let flag):
            return (expansion.resolve(in: session).map { !$0.isNull } ?? false) == flag
        case .test(.expansion(let expansion), let comparison, let operand):
            let left = expansion.resolve(in: session).map { RuleValue($0) } ?? .null
            return operand.resolve(in: session).flatMap { comparison.holds(left, expansion.isDocument ? $0.fitted(to: left) : $0) }
        case .exists(.field(let name), let flag): return session.document.map { $0.has(name) == flag }
        case .test(.field(let name), let comparison, let operand):
            guard let document = session.document, let right = operand.resolve(in: session) else { return nil }
            return document.holds(name, comparison, right)
        }
    }
}

/// A document that an expression's fields are of. Comparisons come to what the same ones come to as a query, or to not known.
struct RuleDocument {
    var value: PluginRow
    var type: PluginObjectType

    /// An empty list is as good as none.
    func has(_ name: String) -> Bool {
        switch value[name] ?? .null {
        case .null: false
        case .array(let elements): !elements.isEmpty
        default: true
        }
    }

    func holds(_ name: String, _ comparison: Expression.Comparison, _ right: Resolved) -> Bool? {
        guard let property = type.property(named: name) else { return nil }
        let fits = { QueryLiteral.text($0, for: property) != nil }
        var right = right.fitted(to: property.type)
        if case .list(let elements) = right.value {
            let known = elements.filter(fits)
            right = Resolved(value: .list(known), isComplete: right.isComplete && known.count == elements.count)
        } else if !fits(right.value) {
            return nil
        }
        let left = RuleValue(value[name] ?? .null)
        if property.type == "mixed", left.order(of: right.value) == .unordered, comparison == .less || comparison == .lessOrEqual {
            // Among values of all types queries have a place for NaN, before the numbers.
            return true
        }
        guard property.type == "float" else { return comparison.holds(left, right) }
        return comparison.holds(left.asFloat, Resolved(value: right.value.asFloat, isComplete: right.isComplete))
    }
}

/// What an operand comes to in a session.
struct Resolved {
    var value: RuleValue
    /// False for a list with elements that have no value; those are left out.
    var isComplete = true
}

extension Expression.Comparison {
    /// Nil when that is not known, or the two cannot be compared in this way.
    func holds(_ left: RuleValue, _ right: Resolved) -> Bool? {
        switch self {
        case .equal: return right.isComplete ? left.matches(right.value) : nil
        case .notEqual: return right.isComplete ? !left.matches(right.value) : nil
        case .among, .notAmong:
            guard case .list(let elements) = right.value else { return nil }
            if elements.contains(where: { left.matches($0) }) { return self == .among }
            return right.isComplete ? self == .notAmong : nil
        case .less, .greater, .lessOrEqual, .greaterOrEqual:
            guard case .list(let elements) = left else { return isInOrder(left, right.value) }
            // As with equality, one element is enough.
            let truths = elements.map { isInOrder($0, right.value) }
            return truths.contains(true) ? true : truths.contains(nil) ? nil : false
        }
    }

    /// Returns nil if the two have no order.
    private func isInOrder(_ left: RuleValue, _ right: RuleValue) -> Bool? {
        let orEqual = self == .lessOrEqual || self == .greaterOrEqual
        let isLess = self == .less || self == .lessOrEqual
        return isLess ? left.isLess(than: right, orEqual: orEqual) : right.isLess(than: left, orEqual: orEqual)
    }
}

extension Expression.Operand {
    /// Nil when an expansion has no value, or null, or a conversion does not fit.
    func resolve(in session: SessionContext) -> Resolved? {
        switch self {
        case .value(let value): return Resolved(value: value)
        case .expansion(.document(let image, let path)):
            // What a document lacks is null, which is known: it is no reason to refuse a write that leaves it so.
            return Expansion.document(image, path: path).resolve(in: session).map { Resolved(value: RuleValue($0)) }
        case .expansion(let expansion):
            guard let value = expansion.resolve(in: session), !value.isNull else { return nil }
            guard case .list(let elements) = RuleValue(value) else { return Resolved(value: RuleValue(value)) }
            let known = elements.filter { $0 != .null }
            return Resolved(value: .list(known), isComplete: known.count == elements.count)
        case .converted(let conversion, let operand):
            return operand.resolve(in: session).flatMap { conversion.apply(to: $0.value) }.map { Resolved(value: $0) }
        case .list(let operands):
            let values = operands.map { $0.resolve(in: session) }
            let known = values.compactMap { $0 }
            return Resolved(value: .list(known.map(\.value)), isComplete: known.count == values.count && known.allSatisfy(\.isComplete))
        }
    }
}

extension Expression.Conversion {
    /// Nil when the value does not have the form.
    func apply(to value: RuleValue) -> RuleValue? {
        switch (self, value) {
        case (.stringToOid, .string(let text)): RuleValue(objectIdText: text)
        case (.stringToUuid, .string(let text)): RuleValue(uuidText: text)
        case (.oidToString, .objectId(let text)), (.uuidToString, .uuid(let text)): .string(text)
        default: nil
        }
    }
}
