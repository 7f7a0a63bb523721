import Foundation
import SluiceCore
import SluiceQuery

/// A condition on the elements of a collection, in the query language as far as possible.
indirect enum ElementCondition {
    case query(SyntaxQuery)
    /// A text comparison that ignores accents, which the language does not offer.
    /// The query is the same comparison with accents; it has the same names and types.
    case accentBlind(SyntaxComparison, SyntaxQuery)
    case block((Any?) -> Bool)
    case and([ElementCondition])
    case or([ElementCondition])
    case not(ElementCondition)

    /// Parses a predicate format.
    /// - Throws: `queryArgument`, `querySyntax` or `queryUnsupported`.
    static func parse(_ format: String, _ arguments: [Any], _ model: ElementModel) throws(SluiceError) -> ElementCondition {
        let translation = try PredicateFormat.translate(format, arguments)
        let tree = try SluiceQuery.Query.parse(translation.text).tree
        guard tree.suffixes.isEmpty else {
            throw SluiceError(.querySyntax, "A predicate has no SORT, DISTINCT or LIMIT.", fix: "Use sorted(by:) and distinct(by:).")
        }
        return ElementCondition.of(tree.root, PredicateNames(model), translation.accentBlind)
    }

    private static func of(_ query: SyntaxQuery, _ names: PredicateNames, _ accentBlind: Set<Int>) -> ElementCondition {
        guard !accentBlind.isEmpty else { return .query(names.query(query)) }
        switch query.kind {
        case .constant: return .query(query)
        case .and(let parts): return .and(parts.map { of($0, names, accentBlind) })
        case .or(let parts): return .or(parts.map { of($0, names, accentBlind) })
        case .not(let inner): return .not(of(inner, names, accentBlind))
        case .compare(let comparison):
            guard accentBlind.contains(comparison.position.offset) else { return .query(names.query(query)) }
            AccentBlind.require(comparison.comparison)
            // The class's names are kept: this comparison reads through accessors.
            return .accentBlind(comparison, names.query(query))
        }
    }

    /// The whole condition in the language; nil if a part needs evaluation in memory.
    var query: SyntaxQuery? {
        switch self {
        case .query(let query): return query
        case .accentBlind, .block: return nil
        case .and(let parts): return ElementCondition.all(parts).map { SyntaxQuery(.and($0)) }
        case .or(let parts): return ElementCondition.all(parts).map { SyntaxQuery(.or($0)) }
        case .not(let inner): return inner.query.map { SyntaxQuery(.not($0)) }
        }
    }

    private static func all(_ parts: [ElementCondition]) -> [SyntaxQuery]? {
        let queries = parts.compactMap(\.query)
        return queries.count == parts.count ? queries : nil
    }

    /// The part in the language that every matching element satisfies, and the remaining condition. Nil: no such part.
    var split: (query: SyntaxQuery?, rest: ElementCondition?) {
        // Only the parts of an `and` narrow the result: under `or` and `not` a partial query could drop matches.
        if let query { return (query, nil) }
        guard case .and(let parts) = self else { return (nil, self) }
        let queries = parts.compactMap(\.query)
        let rest = parts.filter { $0.query == nil }
        return (
            queries.isEmpty ? nil : queries.count == 1 ? queries[0] : SyntaxQuery(.and(queries)), rest.count == 1 ? rest[0] : .and(rest)
        )
    }

    /// All parts that have a form in the language. An error in one of them is an error of the condition.
    var queries: [SyntaxQuery] {
        switch self {
        case .query(let query), .accentBlind(_, let query): [query]
        case .block: []
        case .and(let parts), .or(let parts): parts.flatMap(\.queries)
        case .not(let inner): inner.queries
        }
    }

    /// `true` if an element satisfies the condition.
    /// - Parameters:
    ///   - element: the element as the app sees it.
    ///   - holds: evaluates the parts in the language.
    func holds(for element: Any?, _ holds: (SyntaxQuery) -> Bool) -> Bool {
        switch self {
        case .query(let query): holds(query)
        case .accentBlind(let comparison, _): AccentBlind.holds(comparison, for: element)
        case .block(let block): block(element)
        case .and(let parts): parts.allSatisfy { $0.holds(for: element, holds) }
        case .or(let parts): parts.contains { $0.holds(for: element, holds) }
        case .not(let inner): !inner.holds(for: element, holds)
        }
    }
}

/// Evaluates text comparisons that ignore accents, in memory.
private enum AccentBlind {
    static func holds(_ comparison: SyntaxComparison, for element: Any?) -> Bool {
        let (left, right) = (values(comparison.left, element), values(comparison.right, element))
        let holds = { (l: String?, r: String?) -> Bool in
            compare(l, comparison.comparison, r, comparison.foldsCase ? [.diacriticInsensitive, .caseInsensitive] : .diacriticInsensitive)
        }
        // Without a quantifier one matching pair of values is enough.
        switch quantifier(comparison.left) ?? quantifier(comparison.right) ?? .any {
        case .any: return left.contains { l in right.contains { holds(l, $0) } }
        case .all: return left.allSatisfy { l in right.allSatisfy { holds(l, $0) } }
        case .none: return !left.contains { l in right.contains { holds(l, $0) } }
        }
    }

    private static func quantifier(_ operand: SyntaxOperand) -> Quantifier? {
        if case .path(let path) = operand.kind { path.quantifier } else { nil }
    }

    private static func values(_ operand: SyntaxOperand, _ element: Any?) -> [String?] {
        switch operand.kind {
        case .literal(.string(let text)): return [text]
        case .literal(.null): return [nil]
        case .list(let members, _): return members.flatMap { values($0, element) }
        case .path(let path):
            var names: [String] = []
            for step in path.steps {
                guard case .name(let name) = step.kind else {
                    throwRealmException("Diacritic insensitive comparisons are supported for properties only.")
                }
                if name != ElementModel.selfName { names.append(name) }
            }
            return texts(DynamicAccess.value(of: element, at: names.isEmpty ? nil : names.joined(separator: ".")))
        default: throwRealmException("Diacritic insensitive comparisons are supported between properties and texts only.")
        }
    }

    private static func texts(_ value: Any?) -> [String?] {
        guard let value, !isNil(value) else { return [nil] }
        if let text = value as? String { return [text] }
        guard let sequence = value as? any Sequence else { return [nil] }
        return elements(sequence).flatMap { texts($0) }
    }

    private static func elements(_ sequence: some Sequence) -> [Any?] { sequence.map { $0 as Any? } }

    private static func compare(
        _ left: String?, _ operation: ComparisonOperator, _ right: String?, _ options: String.CompareOptions
    ) -> Bool {
        guard let left, let right else {
            switch operation {
            case .equal, .isIn: return left == nil && right == nil
            case .notEqual: return !(left == nil && right == nil)
            default: return false
            }
        }
        let (l, r) = (left.folding(options: options, locale: nil), right.folding(options: options, locale: nil))
        switch operation {
        case .equal, .isIn: return l == r
        case .notEqual: return l != r
        case .contains: return r.isEmpty || l.contains(r)
        case .beginsWith: return l.hasPrefix(r)
        case .endsWith: return l.hasSuffix(r)
        default: return false
        }
    }

    static func require(_ operation: ComparisonOperator) {
        switch operation {
        case .equal, .isIn, .notEqual, .contains, .beginsWith, .endsWith: break
        default: throwRealmException("Operator '\(operation.rawValue)' is not supported with [d].")
        }
    }
}
