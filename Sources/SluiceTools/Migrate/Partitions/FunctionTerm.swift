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
    /// The user's document of the custom user data, with the name of the field that has the user's id. It may not exist.
    case document(userID: String)
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
    /// `null`, and `undefined`.
    case null
    case absent
    case lambda(FunctionBody)
    /// The place of an element in a list, or -1.
    case place(of: FunctionTerm, in: FunctionTerm)
    /// An element of a list that an inner function looks at, with the path into it.
    case element([String])
    /// The value of a call before `await`.
    case promise(FunctionTerm)
    /// A value of which only the truth is known.
    case truthOnly(FunctionCondition)
    /// A value that no role can read.
    case unknown(String)
}

extension FunctionTerm {
    var isNullish: Bool { self == .null || self == .absent }

    var isList: Bool { if case .list = self { true } else { false } }

    /// `true` for a part of a text that a role can join.
    var isPartOfText: Bool {
        switch self {
        case .string, .user: true
        default: false
        }
    }

    var isCondition: Bool { if case .condition = self { true } else { false } }

    /// `true` for a value that is a text without doubt.
    var isText: Bool {
        switch self {
        case .string, .joined, .user(["id"]): true
        default: false
        }
    }

    /// `true` for an object that every user has.
    static func isObject(_ path: [String]) -> Bool { path.isEmpty || path == ["custom_data"] || path == ["data"] }

    /// The reason why a value cannot be compared or tested; nil for one that can.
    var problem: FunctionProblem? {
        switch self {
        case .unknown(let what): FunctionProblem("it uses \(what)")
        case .promise: FunctionProblem("it uses the result of a call without 'await'")
        case .truthOnly: FunctionProblem("it uses the value of '||', '&&', '?:' or a function, of which only the truth is understood")
        default: nil
        }
    }

    /// Returns the text of the parts, one behind the other.
    static func concatenation(_ parts: [FunctionTerm]) -> FunctionTerm {
        var pieces: [FunctionTerm] = []
        for part in parts.flatMap({ part -> [FunctionTerm] in if case .joined(let inner) = part { inner } else { [part] } }) {
            let part = part.digits.map { .string($0) } ?? part
            if case .string(let text) = part, case .string(let before)? = pieces.last {
                pieces[pieces.count - 1] = .string(before + text)
            } else if part != .string("") {
                pieces.append(part)
            }
        }
        return pieces.count == 1 ? pieces[0] : pieces.isEmpty ? .string("") : .joined(pieces)
    }

    /// The text of an integer that a double holds exactly.
    private var digits: String? {
        guard case .number(let number) = self, abs(number) <= 0x20_0000_0000_0000 else { return nil }
        return Int64(exactly: number).map { String($0) }
    }

    /// `true` for a text, a number or another value that is neither empty nor 0.
    var isSurelyTrue: Bool {
        switch self {
        case .string(let text): !text.isEmpty
        case .number(let number): number != 0
        case .user(["id"]), .condition(.constant(true)): true
        case .joined(let parts): parts.contains { if case .string(let text) = $0 { !text.isEmpty } else { $0 == .user(["id"]) } }
        default: false
        }
    }
}

/// A condition on a partition and a user.
indirect enum FunctionCondition: Hashable {
    case constant(Bool)
    case equal(FunctionTerm, FunctionTerm)
    /// The list has the element.
    case contains(FunctionTerm, FunctionTerm)
    /// The value is none of `false`, 0, "", null and undefined.
    case truth(FunctionTerm)
    /// The value is neither null nor undefined.
    case exists(FunctionTerm)
    case not(FunctionCondition)
    case all([FunctionCondition])
    case any([FunctionCondition])
}

extension FunctionCondition {
    static func and(_ left: FunctionCondition, _ right: FunctionCondition) -> FunctionCondition {
        var parts: [FunctionCondition] = []
        for part in left.conjuncts + right.conjuncts where !parts.contains(part) {
            if part == .constant(false) || parts.contains(negated(part)) { return .constant(false) }
            parts.append(part)
        }
        return parts.isEmpty ? .constant(true) : parts.count == 1 ? parts[0] : .all(parts)
    }

    static func or(_ left: FunctionCondition, _ right: FunctionCondition) -> FunctionCondition {
        if left == .constant(true) || right == .constant(true) || left == negated(right) { return .constant(true) }
        if left == .constant(false) { return right }
        return right == .constant(false) || left == right ? left : .any([left, right])
    }

    private var conjuncts: [FunctionCondition] {
        switch self {
        case .constant(true): []
        case .all(let parts): parts
        default: [self]
        }
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
        if then == otherwise { return then }
        if then == .constant(true) { return or(condition, otherwise) }
        if otherwise == .constant(false) { return and(condition, then) }
        if otherwise == .constant(true) { return or(negated(condition), then) }
        return or(and(condition, then), and(negated(condition), otherwise))
    }
}
