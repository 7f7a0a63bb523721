import SluiceValues

/// Writes the condition of a function as a filter of a role on the partition key.
struct PartitionFilter {
    /// The most alternatives of a filter.
    private static let mostClauses = 64

    /// The partition key.
    let field: String

    private struct Literal: Hashable {
        var atom: FunctionCondition
        var isNegated: Bool
    }

    /// - Throws: `FunctionProblem` if no role can compare in this way.
    func json(_ condition: FunctionCondition) throws(FunctionProblem) -> JSON {
        var filters: [JSON] = []
        for clause in try clauses(condition, isNegated: false) {
            guard let filter = try json(clause) else { continue }
            if filter == true { return true }
            if !filters.contains(filter) { filters.append(filter) }
        }
        return filters.isEmpty ? false : filters.count == 1 ? filters[0] : ["$or": .array(filters)]
    }

    // MARK: Alternatives

    /// Returns the condition as alternatives of literals that hold together.
    private func clauses(_ condition: FunctionCondition, isNegated: Bool) throws(FunctionProblem) -> [[Literal]] {
        switch condition {
        case .constant(let value): return value != isNegated ? [[]] : []
        case .not(let inner): return try clauses(inner, isNegated: !isNegated)
        case .all(let parts) where !isNegated: return try product(parts, isNegated)
        case .any(let parts) where isNegated: return try product(parts, isNegated)
        case .all(let parts), .any(let parts):
            var all: [[Literal]] = []
            for part in parts { all += try clauses(part, isNegated: isNegated) }
            return try bounded(all)
        case .equal, .contains, .truth: return [[Literal(atom: condition, isNegated: isNegated)]]
        }
    }

    private func product(_ parts: [FunctionCondition], _ isNegated: Bool) throws(FunctionProblem) -> [[Literal]] {
        var all: [[Literal]] = [[]]
        for part in parts {
            let others = try clauses(part, isNegated: isNegated)
            all = try bounded(all.flatMap { left in others.map { left + $0 } })
        }
        return all
    }

    private func bounded(_ clauses: [[Literal]]) throws(FunctionProblem) -> [[Literal]] {
        guard clauses.count <= Self.mostClauses else { throw FunctionProblem("it has too many alternatives") }
        return clauses
    }

    // MARK: One alternative

    /// Returns a filter; nil if the literals exclude each other.
    private func json(_ clause: [Literal]) throws(FunctionProblem) -> JSON? {
        guard let whole = try withoutPieces(clause) else { return nil }
        var filters: [JSON] = []
        for literal in whole where !isImplied(literal, by: whole) {
            let filter = try json(literal)
            if filter == false { return nil }
            if filter != true, !filters.contains(filter) { filters.append(filter) }
        }
        return Self.all(filters)
    }

    /// Returns `true` if a value of the user is not empty because another comparison with it holds.
    private func isImplied(_ literal: Literal, by clause: [Literal]) -> Bool {
        guard !literal.isNegated, case .truth(let value) = literal.atom else { return false }
        return clause.contains { other in
            guard !other.isNegated else { return false }
            switch other.atom {
            case .contains(value, _), .contains(.list, value): return true
            case .contains(.joined(let parts), _): return parts.contains(value)
            case .equal(value, let right): return right != .absent && right != .string("")
            case .equal(let left, value): return left != .absent && left != .string("")
            case .equal(.partition, .joined(let parts)): return parts.contains(value)
            default: return false
            }
        }
    }

    /// Joins filters that hold together.
    static func all(_ filters: [JSON]) -> JSON {
        let members = filters.flatMap { $0.members ?? [] }
        if Set(members.map(\.key)).count == members.count { return members.isEmpty ? true : .object(members) }
        return ["$and": .array(filters)]
    }

    /// Writes comparisons of pieces of the partition value as comparisons of the whole value.
    private func withoutPieces(_ clause: [Literal]) throws(FunctionProblem) -> [Literal]? {
        guard let separator = clause.lazy.compactMap({ PieceTerms.separator($0.atom) }).first else { return clause }
        let pieces = PieceTerms(
            separator: separator, equal: Self.equal(to: .partition, clause), head: Self.equal(to: .piece(separator, 0), clause))
        var whole: [Literal] = []
        for literal in clause {
            let atom = try pieces.whole(literal.atom)
            switch atom {
            case .constant(let value): if value == literal.isNegated { return nil }
            default: whole.append(Literal(atom: atom, isNegated: literal.isNegated))
            }
        }
        // Without a comparison of the whole value, any partition that begins in this way would be permitted.
        let isFixed = whole.contains { literal in
            switch literal.atom {
            case .equal(.partition, _), .equal(_, .partition), .contains(_, .partition): !literal.isNegated
            default: false
            }
        }
        guard isFixed else { throw PieceTerms.partial }
        return whole
    }

    /// Returns what a term is equal to in a clause; nil if the clause does not say.
    private static func equal(to term: FunctionTerm, _ clause: [Literal]) -> FunctionTerm? {
        for literal in clause where !literal.isNegated {
            guard case .equal(let left, let right) = literal.atom else { continue }
            if left == term { return right }
            if right == term { return left }
        }
        return nil
    }

    // MARK: Literals

    private func json(_ literal: Literal) throws(FunctionProblem) -> JSON {
        switch literal.atom {
        case .equal(.partition, .absent), .equal(.absent, .partition): return .bool(literal.isNegated)
        case .truth(.partition): return .bool(!literal.isNegated)
        case .equal(.partition, let other), .equal(let other, .partition):
            return test(field, try operand(other), literal.isNegated)
        case .equal(.user(let path), .absent), .equal(.absent, .user(let path)):
            return .object([.init(try name(path), ["$exists": .bool(literal.isNegated)])])
        case .equal(.user(let path), let other), .equal(let other, .user(let path)):
            return test(try name(path), try operand(other), literal.isNegated)
        case .contains(let list, .partition): return .object([.init(field, [literal.isNegated ? "$nin" : "$in": try self.list(list)])])
        case .contains(.user(let path), let other): return test(try name(path), try operand(other), literal.isNegated)
        case .contains(let list, .user(let path)):
            return .object([.init(try name(path), [literal.isNegated ? "$nin" : "$in": try self.list(list)])])
        case .truth(.user(let path)):
            guard !literal.isNegated else { throw FunctionProblem("it asks whether '\(try name(path))' is empty") }
            return .object([.init(try name(path), true)])
        default: throw FunctionProblem("a comparison of it is none of the partition or the user")
        }
    }

    private func test(_ name: String, _ operand: JSON, _ isNegated: Bool) -> JSON {
        .object([.init(name, isNegated ? ["$ne": operand] : operand)])
    }

    private func list(_ term: FunctionTerm) throws(FunctionProblem) -> JSON {
        guard case .list(let elements) = term else { return try operand(term) }
        var operands: [JSON] = []
        for element in elements { operands.append(try operand(element)) }
        return .array(operands)
    }

    private func operand(_ term: FunctionTerm) throws(FunctionProblem) -> JSON {
        switch term {
        case .string(let text):
            guard !text.hasPrefix("%%") else { throw FunctionProblem("a text of it begins like an expansion") }
            return .string(text)
        case .number(let number): return Int64(exactly: number).map { .int($0) } ?? .double(number)
        case .condition(.constant(let value)): return .bool(value)
        case .user(let path): return .string(try name(path))
        case .joined(let parts):
            var operands: [JSON] = []
            for part in parts { operands.append(try operand(part)) }
            return ["%concat": .array(operands)]
        case .unknown(let what): throw FunctionProblem("it uses \(what)")
        default: throw FunctionProblem("it compares with a value that no role has")
        }
    }

    private func name(_ path: [String]) throws(FunctionProblem) -> String {
        guard let member = path.first, ["id", "type", "data", "custom_data"].contains(member) else {
            throw FunctionProblem("it reads context.user.\(path.joined(separator: ".")), which roles do not have")
        }
        return (["%%user"] + path).joined(separator: ".")
    }
}
