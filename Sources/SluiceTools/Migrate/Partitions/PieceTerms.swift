/// The pieces of a partition value in one alternative of a condition, where the alternative tells them.
struct PieceTerms {
    let separator: String
    /// The pieces; nil if the alternative does not tell the whole value.
    private let pieces: [FunctionTerm]?
    /// The first of two pieces.
    private let head: FunctionTerm?

    /// - Parameters:
    ///   - equal: The term that the whole value is equal to; nil if the alternative does not say.
    ///   - head: The term that the first piece is equal to.
    init(separator: String, equal: FunctionTerm?, head: FunctionTerm?) {
        self.separator = separator
        self.head = head
        switch equal {
        case .string(let text): pieces = text.split(separator: separator, omittingEmptySubsequences: false).map { .string(String($0)) }
        // An id has hexadecimal digits only.
        case .user(["id"]) where !separator.allSatisfy(\.isHexDigit): pieces = [.user(["id"])]
        default: pieces = nil
        }
    }

    static var partial: FunctionProblem {
        FunctionProblem("it permits partitions by a part of their value, and roles compare the whole value")
    }

    /// Returns the separator of the pieces in a comparison.
    static func separator(_ atom: FunctionCondition) -> String? {
        switch atom {
        case .equal(let left, let right), .contains(let left, let right): separator(left) ?? separator(right)
        case .truth(let term), .exists(let term): separator(term)
        default: nil
        }
    }

    private static func separator(_ term: FunctionTerm) -> String? {
        switch term {
        case .piece(let separator, _), .pieceCount(let separator), .pieces(let separator): separator
        default: nil
        }
    }

    /// `true` if the alternative tells the whole value.
    var areKnown: Bool { pieces != nil }

    /// Returns `true` for a comparison that tells the second piece.
    func isOfSecond(_ atom: FunctionCondition) -> Bool {
        switch atom {
        case .equal(.piece(separator, 1), _), .equal(_, .piece(separator, 1)), .contains(_, .piece(separator, 1)): true
        default: false
        }
    }

    /// Returns a comparison without pieces, or its result.
    ///
    /// - Throws: `FunctionProblem` if it needs a piece that the alternative does not tell.
    func whole(_ atom: FunctionCondition) throws(FunctionProblem) -> FunctionCondition {
        guard Self.separator(atom) == separator else { return atom }
        if let pieces { return Self.settled(replacing(atom, pieces)) }
        guard let head else { throw Self.partial }
        switch atom {
        case .equal(.piece(separator, 0), let other), .equal(let other, .piece(separator, 0)):
            if other == head { return .constant(!hasSeparator(other)) }
            guard case .string = head, case .string = other else { throw Self.partial }
            return .constant(false)
        case .equal(.piece(separator, 1), let other), .equal(let other, .piece(separator, 1)):
            return hasSeparator(other) ? .constant(false) : .equal(.partition, joined(other))
        case .contains(.list(let elements), .piece(separator, 1)):
            return .contains(joined(.list(elements.filter { !hasSeparator($0) })), .partition)
        case .contains(let list, .piece(separator, 1)): return .contains(joined(list), .partition)
        // The joined value has two pieces.
        case .equal(.pieceCount(separator), .number(let count)), .equal(.number(let count), .pieceCount(separator)):
            return .constant(count == 2)
        case .exists(.piece(separator, let index)): return .constant(index < 2)
        case .truth(.piece(separator, 0)): return Self.settled(.truth(head))
        case .truth(.piece(separator, 1)): return .not(.equal(.partition, joined(.string(""))))
        case .truth(.piece(separator, _)): return .constant(false)
        case .truth(.pieceCount(separator)): return .constant(true)
        default: throw Self.partial
        }
    }

    /// Returns a value behind the first piece and the separator.
    private func joined(_ term: FunctionTerm) -> FunctionTerm {
        if case .list(let elements) = term { return .list(elements.map(joined)) }
        return .concatenation([head ?? .absent, .string(separator), term])
    }

    /// Returns `true` for a text that is no piece.
    private func hasSeparator(_ term: FunctionTerm) -> Bool {
        if case .string(let text) = term { text.contains(separator) } else { false }
    }

    // MARK: Known pieces

    private func replacing(_ atom: FunctionCondition, _ pieces: [FunctionTerm]) -> FunctionCondition {
        func term(_ term: FunctionTerm) -> FunctionTerm {
            switch term {
            case .piece(separator, let index): pieces.indices.contains(index) ? pieces[index] : .absent
            case .pieceCount(separator): .number(Double(pieces.count))
            default: term
            }
        }
        switch atom {
        case .equal(let left, let right): return .equal(term(left), term(right))
        case .contains(let list, let item): return .contains(term(list), term(item))
        case .truth(let value): return .truth(term(value))
        case .exists(let value): return .exists(term(value))
        default: return atom
        }
    }

    /// Returns the result of a comparison of fixed values.
    private static func settled(_ atom: FunctionCondition) -> FunctionCondition {
        switch atom {
        case .equal(let left, let right) where isFixed(left) && isFixed(right): return .constant(left == right)
        case .contains(.list(let elements), let item) where isFixed(item) && elements.allSatisfy(isFixed):
            return .constant(elements.contains(item))
        case .truth(let value) where isFixed(value) || value == .user(["id"]): return .constant(value.isSurelyTrue)
        case .exists(let value) where isFixed(value) || value == .user(["id"]): return .constant(value != .absent)
        default: return atom
        }
    }

    private static func isFixed(_ term: FunctionTerm) -> Bool {
        switch term {
        case .string, .number, .absent: true
        default: false
        }
    }
}
