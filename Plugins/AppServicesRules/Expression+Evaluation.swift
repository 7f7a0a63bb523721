import SluicePluginKit

// Evaluation in a session. Besides true and false the result can be unknown (nil): a comparison with an expansion without a value, such as
// a missing custom data member. Unknown propagates as in three-valued logic, so that neither a comparison nor its negation permits access.

extension Expression {
    /// `true` if the expression certainly holds. Its fields are those of the session's document.
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

/// The document of an expression's fields. A comparison has the result that it has as a query, or is unknown.
struct RuleDocument {
    var value: PluginRow
    var type: PluginObjectType

    /// `true` if the document has a value for the field. An empty list counts as none.
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
        var right = right.fitted(to: property.comparedType)
        if case .list(let elements) = right.value {
            let known = elements.filter(fits)
            right = Resolved(value: .list(known), isComplete: right.isComplete && known.count == elements.count)
        } else if !fits(right.value) {
            return nil
        }
        let left = RuleValue(value[name] ?? .null)
        if property.type == "mixed", left.order(of: right.value) == .unordered, comparison == .less || comparison == .lessOrEqual {
            // Among values of all types, queries order NaN below the numbers.
            return true
        }
        guard property.type == "float" else { return comparison.holds(left, right) }
        return comparison.holds(left.asFloat, Resolved(value: right.value.asFloat, isComplete: right.isComplete))
    }
}

/// The value of an operand in a session.
struct Resolved {
    var value: RuleValue
    /// `false` for a list with elements without a value, which are omitted.
    var isComplete = true
}

extension Expression.Comparison {
    /// Returns nil if the result is unknown, or if the two cannot be compared in this way.
    func holds(_ left: RuleValue, _ right: Resolved) -> Bool? {
        switch self {
        case .equal: return right.isComplete ? left.matches(right.value) : nil
        case .notEqual: return right.isComplete ? !left.matches(right.value) : nil
        case .among, .notAmong:
            guard case .list(let elements) = right.value else { return nil }
            if elements.contains(where: { left.matches($0) }) { return self == .among }
            return right.isComplete ? self == .notAmong : nil
        case .every:
            guard case .list(let elements) = right.value else { return nil }
            // As in MongoDB, no value has every element of an empty list.
            if elements.contains(where: { !left.matches($0) }) { return false }
            return right.isComplete ? !elements.isEmpty : nil
        case .less, .greater, .lessOrEqual, .greaterOrEqual:
            guard case .list(let elements) = left else { return isInOrder(left, right.value) }
            // As with equality, one matching element is enough.
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
    /// Returns nil if an expansion is null or has no value, or if a conversion does not apply.
    func resolve(in session: SessionContext) -> Resolved? {
        switch self {
        case .value(let value): return Resolved(value: value)
        case .expansion(.document(let image, let path)):
            // An absent field of a document is null and known, so it is no reason to deny a write that leaves it absent.
            return Expansion.document(image, path: path).resolve(in: session).map { Resolved(value: RuleValue($0)) }
        case .expansion(let call) where call.isFunction:
            // A function that returns nothing has answered.
            return call.resolve(in: session).map { Resolved(value: RuleValue($0)) }
        case .expansion(let expansion):
            guard let value = expansion.resolve(in: session), !value.isNull else { return nil }
            guard case .list(let elements) = RuleValue(value) else { return Resolved(value: RuleValue(value)) }
            let known = elements.filter { $0 != .null }
            return Resolved(value: .list(known), isComplete: known.count == elements.count)
        case .converted(let conversion, let operand):
            return operand.resolve(in: session).flatMap { conversion.apply(to: $0.value) }.map { Resolved(value: $0) }
        case .joined(let operands): return Self.join(operands.map { $0.resolve(in: session) })
        case .list(let operands):
            let values = operands.map { $0.resolve(in: session) }
            let known = values.compactMap { $0 }
            return Resolved(value: .list(known.map(\.value)), isComplete: known.count == values.count && known.allSatisfy(\.isComplete))
        }
    }
}

extension Expression.Operand {
    /// Joins texts. Returns nil if a part has no value, is of another type, or is a second list.
    private static func join(_ parts: [Resolved?]) -> Resolved? {
        var texts = [""]
        var (isList, isComplete) = (false, true)
        for part in parts {
            switch part?.value {
            case .string(let text): texts = texts.map { $0 + text }
            case .list(let elements) where !isList:
                let found = elements.compactMap { element -> String? in if case .string(let text) = element { text } else { nil } }
                isList = true
                isComplete = part?.isComplete == true && found.count == elements.count
                let start = texts[0]
                texts = found.map { start + $0 }
            default: return nil
            }
        }
        return Resolved(value: isList ? .list(texts.map { .string($0) }) : .string(texts[0]), isComplete: isComplete)
    }
}

extension Expression.Conversion {
    /// Returns nil if the value does not have the form.
    func apply(to value: RuleValue) -> RuleValue? {
        switch (self, value) {
        case (.stringToOid, .string(let text)): RuleValue(objectIdText: text)
        case (.stringToUuid, .string(let text)): RuleValue(uuidText: text)
        case (.oidToString, .objectId(let text)), (.uuidToString, .uuid(let text)): .string(text)
        default: nil
        }
    }
}
