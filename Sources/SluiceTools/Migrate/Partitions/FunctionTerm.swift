/// The meaning of an expression of a function, in terms of a partition and a user.
indirect enum FunctionTerm: Hashable {
    /// The partition value.
    case partition
    /// All pieces of the partition value between separators, one of them, and their number.
    case pieces(String)
    case piece(String, Int)
    case pieceCount(String)
    /// A part of the user: `%%user` and a path. An empty path is the user itself.
    case user([String])
    case string(String)
    case number(Double)
    case list([FunctionTerm])
    case joined([FunctionTerm])
    case condition(FunctionCondition)
    /// `context`, and what it leads to.
    case context
    case services
    case functions
    case service
    case database(String)
    case collection(String, String)
    /// A value that is absent: `null` and `undefined`.
    case absent
    case lambda([String], [FunctionStatement])
    /// The place of an element in a list, or -1.
    case place(of: FunctionTerm, in: FunctionTerm)
    /// An element of a list that an inner function looks at, with the path into it.
    case element([String])
    /// A value that no role can read.
    case unknown(String)
}

/// A condition on a partition and a user.
indirect enum FunctionCondition: Hashable {
    case constant(Bool)
    case equal(FunctionTerm, FunctionTerm)
    /// The list has the element.
    case contains(FunctionTerm, FunctionTerm)
    /// The value is none of `false`, 0, "" and null.
    case truth(FunctionTerm)
    case not(FunctionCondition)
    case all([FunctionCondition])
    case any([FunctionCondition])
}

extension FunctionCondition {
    static func and(_ left: FunctionCondition, _ right: FunctionCondition) -> FunctionCondition {
        if left == .constant(false) || right == .constant(false) { return .constant(false) }
        if left == .constant(true) { return right }
        return right == .constant(true) || left == right ? left : .all([left, right])
    }

    static func or(_ left: FunctionCondition, _ right: FunctionCondition) -> FunctionCondition {
        if left == .constant(true) || right == .constant(true) { return .constant(true) }
        if left == .constant(false) { return right }
        return right == .constant(false) || left == right ? left : .any([left, right])
    }

    static func negated(_ condition: FunctionCondition) -> FunctionCondition {
        switch condition {
        case .constant(let value): .constant(!value)
        case .not(let inner): inner
        default: .not(condition)
        }
    }

    /// Returns the result of a branch. A condition that the other branch makes needless is left out.
    static func branch(_ condition: FunctionCondition, _ then: FunctionCondition, _ otherwise: FunctionCondition) -> FunctionCondition {
        if then == .constant(true) { return or(condition, otherwise) }
        if otherwise == .constant(false) { return and(condition, then) }
        if otherwise == .constant(true) { return or(negated(condition), then) }
        return or(and(condition, then), and(negated(condition), otherwise))
    }
}
