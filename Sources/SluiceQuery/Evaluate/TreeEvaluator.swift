package import SluiceCore

/// The reference evaluation of a bound condition. Tests compare the compiled program and SQL with it.
enum TreeEvaluator {
    static func evaluate(_ predicate: BoundPredicate, in type: ObjectType, _ read: (Int) -> Value?) -> Bool {
        switch predicate {
        case .constant(let value): return value
        case .and(let parts): return parts.allSatisfy { evaluate($0, in: type, read) }
        case .or(let parts): return parts.contains { evaluate($0, in: type, read) }
        case .not(let inner): return !evaluate(inner, in: type, read)
        case .test(let subject, let test): return evaluate(subject, test, in: type, read)
        case .properties(let left, let comparison, let right, let foldsCase):
            let isMixed = type.properties[left].type == .mixed || type.properties[right].type == .mixed
            let l = read(left) ?? .null
            let r = read(right) ?? .null
            let test = Test(comparison, foldsCase ? folded(r) : r, foldsCase: foldsCase)
            if r.isNull, comparison.isText {
                let excludesNull = foldsCase && comparison == .contains && type.properties[left].type == .binary
                return comparison == .like ? l.isNull : !(excludesNull && l.isNull)
            }
            return holds(test, l, nan: isMixed ? .lowest : .unordered)
        case .within(let property, let geometry): return read(property)?.place.map { geometry.contains($0) } ?? false
        }
    }

    private static func evaluate(_ subject: Subject, _ test: Test, in type: ObjectType, _ read: (Int) -> Value?) -> Bool {
        let nan: NaNRule = type.properties[subject.property].type == .mixed ? .lowest : .unordered
        let value = read(subject.property) ?? .null
        switch subject {
        case .property: return holds(test, value, nan: nan)
        case .count: return holds(test, .int(Int64(elements(value).count)), nan: nan)
        case .elements(_, .any): return elements(value).contains { holds(test, $0, nan: nan) }
        case .elements(_, .all): return elements(value).allSatisfy { holds(test, $0, nan: nan) }
        case .elements(_, .none): return !elements(value).contains { holds(test, $0, nan: nan) }
        }
    }

    private static func elements(_ value: Value) -> [Value] { if case .list(let elements) = value { elements } else { [] } }

    static func holds(_ test: Test, _ value: Value, nan: NaNRule) -> Bool {
        switch test.comparison {
        case .equal: return isEqual(value, test.value, test.foldsCase, nan)
        case .notEqual: return !isEqual(value, test.value, test.foldsCase, nan)
        case .isIn:
            guard case .list(let members) = test.value else { return false }
            return members.contains { isEqual(value, $0, test.foldsCase, nan) }
        case .less: return order(value, test.value, nan) == .less
        case .greater: return order(value, test.value, nan) == .greater
        case .lessOrEqual: return isAtMost(value, test.value, nan, .less)
        case .greaterOrEqual: return isAtMost(value, test.value, nan, .greater)
        case .beginsWith, .endsWith, .contains, .like: return matchesText(test, value)
        }
    }

    private static func order(_ left: Value, _ right: Value, _ nan: NaNRule) -> Order? {
        left.isNull || right.isNull ? nil : ValueOrder.compare(left, right, nan: nan)
    }

    private static func isAtMost(_ left: Value, _ right: Value, _ nan: NaNRule, _ side: Order) -> Bool {
        if left.isNull || right.isNull { return left.isNull && right.isNull }
        let order = order(left, right, nan)
        return order == side || order == .equal
    }

    private static func isEqual(_ value: Value, _ constant: Value, _ foldsCase: Bool, _ nan: NaNRule) -> Bool {
        if value.isNull || constant.isNull { return value.isNull && constant.isNull }
        return ValueOrder.compare(foldsCase ? folded(value) : value, constant, nan: nan) == .equal
    }

    static func folded(_ value: Value) -> Value {
        switch value {
        case .string(let text): .string(Folding.folded(text))
        case .binary(let bytes): .binary(Folding.folded(bytes))
        default: value
        }
    }

    private static func matchesText(_ test: Test, _ value: Value) -> Bool {
        let text: [UInt8]
        let pattern: [UInt8]
        switch (value, test.value) {
        case (.string(let l), .string(let r)): (text, pattern) = (Array(l.utf8), Array(r.utf8))
        case (.binary(let l), .binary(let r)): (text, pattern) = (l, r)
        default: return false
        }
        return text.withUnsafeBufferPointer { text in
            pattern.withUnsafeBufferPointer { pattern in
                let haystack = Haystack(bytes: text, folds: test.foldsCase)
                return switch test.comparison {
                case .beginsWith: haystack.matches(pattern, at: 0)
                case .endsWith: haystack.matches(pattern, at: text.count - pattern.count)
                case .contains: haystack.contains(pattern)
                default: haystack.isLike(pattern)
                }
            }
        }
    }
}

extension Predicate {
    /// `true` if the condition holds for a row read in place. An absent property counts as null. It allocates; the hot path uses
    /// `compile()`.
    package func matches(_ row: RowView) -> Bool {
        TreeEvaluator.evaluate(bound, in: type) { row.value($0) }
    }

    /// `true` if the condition holds for an owning row.
    package func matches(_ row: Row) -> Bool {
        TreeEvaluator.evaluate(bound, in: type) { row[$0] }
    }

    /// `true` if the condition holds for values by property name. A missing one counts as null.
    package func matches(_ values: [String: Value]) -> Bool {
        TreeEvaluator.evaluate(bound, in: type) { [type] in values[type.properties[$0].name] }
    }
}
