/// The comparisons of an alternative, which hold together.
struct ClauseFacts {
    /// A comparison that holds, or does not.
    struct Literal: Hashable {
        var atom: FunctionCondition
        var isNegated: Bool
    }

    private let clause: [Literal]

    init(_ clause: [Literal]) { self.clause = clause }

    /// Returns `true` if a value is not empty or absent because another comparison with it holds.
    func imply(_ literal: Literal) -> Bool {
        guard !literal.isNegated else { return false }
        let others = clause.filter { !$0.isNegated && $0 != literal }.map(\.atom)
        switch literal.atom {
        case .truth(let value): return others.contains { Self.isTrue(value, if: $0) }
        case .exists(.document): return Self.lead(into: ["custom_data"], others)
        case .exists(.user(let path)): return Self.lead(into: path, others)
        case .exists(let value): return others.contains { Self.existing($0).contains(value) }
        default: return false
        }
    }

    private static func isTrue(_ value: FunctionTerm, if atom: FunctionCondition) -> Bool {
        switch atom {
        case .contains(value, _): return true
        case .contains(.list(let elements), value): return elements.allSatisfy(\.isSurelyTrue)
        case .contains(.joined(let parts), let item):
            // The last part is the list.
            return parts.last == value || item == value && FunctionTerm.joined(Array(parts.dropLast())).isSurelyTrue
        case .equal(value, let other), .equal(let other, value): return other.isSurelyTrue
        default: return false
        }
    }

    /// Returns `true` if a role's comparison needs a part of the user, or something in it.
    private static func lead(into path: [String], _ atoms: [FunctionCondition]) -> Bool {
        atoms.flatMap(existing).contains { if case .user(let inner) = $0 { inner.starts(with: path) } else { false } }
    }

    /// Returns the values without which a role's comparison does not hold.
    private static func existing(_ atom: FunctionCondition) -> [FunctionTerm] {
        switch atom {
        case .equal(let left, let right): parts(left) + parts(right)
        case .contains(let list, let item): (list.isList ? [] : parts(list)) + parts(item)
        case .truth(let value), .exists(let value): [value]
        default: []
        }
    }

    private static func parts(_ term: FunctionTerm) -> [FunctionTerm] { if case .joined(let parts) = term { parts } else { [term] } }

    /// Returns a literal with the same effect in the alternative. Whether a value is empty can be seen from the partition that it makes.
    func simplified(_ literal: Literal) -> Literal {
        guard !literal.isNegated, case .truth(let value) = literal.atom else { return literal }
        for other in clause where !other.isNegated {
            guard case .equal(let left, let right) = other.atom, left == .partition || right == .partition else { continue }
            let parts = Self.parts(left == .partition ? right : left)
            guard parts.contains(value) else { continue }
            let empty = FunctionTerm.concatenation(parts.map { $0 == value ? .string("") : $0 })
            return Literal(atom: .equal(.partition, empty), isNegated: true)
        }
        return literal
    }
}
