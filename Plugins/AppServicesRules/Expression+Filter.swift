import SluicePluginKit

// Document filters become queries: the session's values replace expansions, and tests of fields remain.

extension Expression {
    /// Returns the filter as a query on objects of the class. The caller has checked its fields (`incompatibilities`).
    func predicate(for type: PluginObjectType, in session: SessionContext) -> Predicate {
        switch self {
        case .constant(let value): return .constant(value)
        case .all(let parts): return .all(parts.map { $0.predicate(for: type, in: session) })
        case .any(let parts): return .any(parts.map { $0.predicate(for: type, in: session) })
        case .not(let part): return .not(part.predicate(for: type, in: session))
        case .exists(.field(let name), let flag):
            return FieldTest(name, of: type).map { $0.exists(flag) } ?? .unknown
        case .test(.field(let name), let comparison, let operand):
            guard let field = FieldTest(name, of: type), let right = operand.resolve(in: session) else { return .unknown }
            return field.predicate(comparison, right)
        case .exists(.expansion, _), .test(.expansion, _, _): return truth(in: session).map { .constant($0) } ?? .unknown
        }
    }
}

/// The tests of one field in the query language.
struct FieldTest {
    private let name: String
    private let property: PluginProperty

    init?(_ name: String, of type: PluginObjectType) {
        guard let property = type.property(named: name), let name = QueryLiteral.name(name) else { return nil }
        self.name = name
        self.property = property
    }

    private var isList: Bool { property.collection != "none" }

    func exists(_ flag: Bool) -> Predicate {
        let symbol = flag ? "!=" : "=="
        return .text(isList ? "\(name).@size \(symbol) 0" : "\(name) \(symbol) NULL")
    }

    func predicate(_ comparison: Expression.Comparison, _ resolved: Resolved) -> Predicate {
        let right = resolved.fitted(to: property.comparedType)
        switch comparison {
        case .equal: return one("==", right)
        case .notEqual: return isList ? .not(one("==", right)) : one("!=", right)
        case .greater: return one(">", right)
        case .greaterOrEqual: return one(">=", right)
        case .less: return one("<", right)
        case .lessOrEqual: return one("<=", right)
        case .among: return among(right)
        case .notAmong: return .not(among(right))
        case .every: return every(right)
        }
    }

    /// Returns a comparison. It holds for a list if it holds for one of its elements.
    private func one(_ symbol: String, _ right: Resolved) -> Predicate {
        guard let literal = QueryLiteral.text(right.value, for: property) else { return .unknown }
        if literal == "NULL", symbol != "==", symbol != "!=" { return .unknown }
        return .text("\(isList ? "ANY " : "")\(name) \(symbol) \(literal)")
    }

    private func every(_ right: Resolved) -> Predicate {
        guard case .list(let elements) = right.value else { return .unknown }
        if elements.isEmpty, right.isComplete { return .constant(false) }
        let parts = elements.map { one("==", Resolved(value: $0)) }
        return .all(right.isComplete ? parts : parts + [.unknown])
    }

    private func among(_ right: Resolved) -> Predicate {
        guard case .list(let elements) = right.value else { return .unknown }
        let literals = elements.map { QueryLiteral.text($0, for: property) }
        let known = literals.compactMap { $0 }
        // A value of another type than the field's occurs in no object. In a negation it is unknown, which denies.
        let isComplete = right.isComplete && known.count == literals.count
        var parts: [Predicate] = isComplete ? [] : [.unknown]
        if isList || LinkKey(property) != nil {
            parts += known.map { .text("\(isList ? "ANY " : "")\(name) == \($0)") }
        } else if known.count == 1 {
            parts.append(.text("\(name) == \(known[0])"))
        } else if !known.isEmpty {
            parts.append(.text("\(name) IN {\(known.joined(separator: ", "))}"))
        }
        return .any(parts)
    }
}
