import SluiceValues

/// Writes the condition of a function as a filter of a role on the partition key.
struct PartitionFilter {
    /// The most alternatives of a filter.
    private static let mostClauses = 64
    /// The most alternatives before the needless ones are left out.
    private static let mostPairs = 512
    private static var tooMany: FunctionProblem { FunctionProblem("it has too many alternatives") }

    /// The partition key.
    let field: String
    /// The partition value that is no true value; nil if its type has none.
    let emptyPartition: JSON?
    let compare: FunctionComparison

    typealias Literal = ClauseFacts.Literal

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
        case .equal, .contains, .truth, .exists: return [[Literal(atom: condition, isNegated: isNegated)]]
        }
    }

    /// Returns the alternatives without those that contradict themselves, and those that another one includes.
    private func product(_ parts: [FunctionCondition], _ isNegated: Bool) throws(FunctionProblem) -> [[Literal]] {
        var all: [[Literal]] = [[]]
        for part in parts {
            let others = try clauses(part, isNegated: isNegated)
            // The comparison of all pairs below grows with the square.
            guard all.count * others.count <= Self.mostPairs else { throw Self.tooMany }
            all = try bounded(Self.simplified(all.flatMap { left in others.map { left + $0 } }))
        }
        return all
    }

    private static func simplified(_ clauses: [[Literal]]) -> [[Literal]] {
        let sets = clauses.map { Set($0) }
        let kept = sets.indices.filter { index in
            let set = sets[index]
            guard !set.contains(where: { set.contains(Literal(atom: $0.atom, isNegated: !$0.isNegated)) }) else { return false }
            return !sets.indices.contains { $0 != index && sets[$0].isSubset(of: set) && (sets[$0] != set || $0 < index) }
        }
        return kept.map { clauses[$0] }
    }

    private func bounded(_ clauses: [[Literal]]) throws(FunctionProblem) -> [[Literal]] {
        guard clauses.count <= Self.mostClauses else { throw Self.tooMany }
        return clauses
    }

    // MARK: One alternative

    /// Returns a filter; nil if the literals exclude each other.
    private func json(_ clause: [Literal]) throws(FunctionProblem) -> JSON? {
        guard let whole = try withoutPieces(clause) else { return nil }
        var filters: [JSON] = []
        for literal in whole where !ClauseFacts(whole).imply(literal) {
            let filter = try json(ClauseFacts(whole).simplified(literal))
            if filter == false { return nil }
            if filter != true, !filters.contains(filter) { filters.append(filter) }
        }
        return Self.all(filters)
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
        // Without the second piece, any partition that begins in this way would be permitted.
        guard pieces.areKnown || clause.contains(where: { !$0.isNegated && pieces.isOfSecond($0.atom) }) else { throw PieceTerms.partial }
        var whole: [Literal] = []
        for literal in clause {
            switch try pieces.whole(literal.atom) {
            case .constant(let value): if value == literal.isNegated { return nil }
            case .not(let atom): whole.append(Literal(atom: atom, isNegated: !literal.isNegated))
            case let atom: whole.append(Literal(atom: atom, isNegated: literal.isNegated))
            }
        }
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

    /// Returns a filter that holds only if the literal does.
    private func json(_ literal: Literal) throws(FunctionProblem) -> JSON {
        let isNegated = literal.isNegated
        switch literal.atom {
        case .exists(.partition): return .object([.init(field, ["$exists": .bool(!isNegated)])])
        case .truth(.partition):
            let tests = [JSON.Member("$exists", true)] + (emptyPartition.map { [JSON.Member("$ne", $0)] } ?? [])
            let filter = JSON.object([.init(field, .object(tests))])
            return isNegated ? ["$not": filter] : filter
        case .equal(.partition, let other), .equal(let other, .partition): return test(field, try operand(other), isNegated)
        case .contains(let list, .partition): return .object([.init(field, [isNegated ? "$nin" : "$in": try self.list(list)])])
        case .exists(.document(let userID)):
            return .object([.init(try name(["custom_data", userID]), ["$exists": .bool(!isNegated)])])
        case .exists(.user(let path)): return .object([.init(try name(path), ["$exists": .bool(!isNegated)])])
        case .truth(.user(let path)):
            guard compare.type(of: path) == "bool" else { throw FunctionProblem("it asks whether '\(try name(path))' is empty") }
            return test(try name(path), true, isNegated)
        case .equal(.user(let path), let other), .equal(let other, .user(let path)):
            return test(try single(path), try operand(other), isNegated)
        case .contains(let list, .user(let path)) where list.isList:
            return .object([.init(try single(path), [isNegated ? "$nin" : "$in": try self.list(list)])])
        case .contains(.user(let path), let other):
            // In a text, `includes` finds parts, and a role compares the whole.
            guard compare.type(of: path).map({ $0 == "array" }) ?? !isNegated else {
                throw FunctionProblem("'\(try name(path))' is not known to be a list")
            }
            return test(try name(path), try operand(other), isNegated)
        default: throw FunctionProblem("a comparison of it is none of the partition or the user")
        }
    }

    /// Returns the name of a value of the user that is no list. A role compares the elements of a list, and JavaScript the list itself.
    private func single(_ path: [String]) throws(FunctionProblem) -> String {
        guard compare.type(of: path) != "array" else { throw FunctionProblem("'\(try name(path))' is a list, which equals no value") }
        return try name(path)
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
            for part in parts {
                guard part.isPartOfText else { throw FunctionProblem("it compares with a text that no role can join") }
                operands.append(try operand(part))
            }
            return ["%concat": .array(operands)]
        default:
            if let problem = term.problem { throw problem }
            throw FunctionProblem("it compares with a value that no role has")
        }
    }

    private func name(_ path: [String]) throws(FunctionProblem) -> String {
        guard let member = path.first, ["id", "type", "data", "custom_data"].contains(member) else {
            throw FunctionProblem("it reads context.user.\(path.joined(separator: ".")), which roles do not have")
        }
        return (["%%user"] + path).joined(separator: ".")
    }
}
