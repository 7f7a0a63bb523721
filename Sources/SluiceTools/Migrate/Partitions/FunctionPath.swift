/// What a function does. Where it neither permits nor refuses, it fails.
struct FunctionOutcome {
    /// The condition under which it returns a true value.
    var permits: FunctionCondition
    /// The condition under which it returns another value.
    var refuses: FunctionCondition
    /// `true` if it may fail.
    var mayFail: Bool
    /// `true` if its value is always `true` or `false`.
    var isBoolean: Bool
    /// `true` if its value may be a promise.
    var isPromise = false

    /// The condition under which it fails.
    var failure: FunctionCondition { mayFail ? .negated(.or(permits, refuses)) : .constant(false) }
}

/// The state of a run on one path through a function.
struct FunctionPath {
    var scope: [String: FunctionTerm]
    /// What is known on the path.
    private(set) var facts = FunctionFacts()
    /// The condition under which the path has failed so far.
    private(set) var failure = FunctionCondition.constant(false)

    init(scope: [String: FunctionTerm], facts: FunctionFacts = FunctionFacts()) {
        self.scope = scope
        self.facts = facts
    }

    /// Returns the path behind a decision. Its failures are counted anew.
    func assuming(_ condition: FunctionCondition, is value: Bool) -> FunctionPath {
        var path = FunctionPath(scope: scope, facts: facts)
        path.facts.assume(condition, is: value)
        return path
    }

    /// Ends the path where the condition holds, as an error does.
    mutating func fail(if condition: FunctionCondition) {
        let condition = facts.settled(condition)
        failure = .or(failure, condition)
        facts.assume(condition, is: false)
    }

    /// Fails if the value is null or undefined.
    mutating func require(_ value: FunctionTerm) {
        // Every user has an id.
        if value != .user(["id"]) { fail(if: .not(.exists(value))) }
    }

    func outcome(_ result: FunctionCondition, isBoolean: Bool, isPromise: Bool = false) -> FunctionOutcome {
        FunctionOutcome(
            permits: .and(result, .negated(failure)), refuses: .and(.negated(result), .negated(failure)),
            mayFail: failure != .constant(false), isBoolean: isBoolean, isPromise: isPromise)
    }

    /// Returns the outcome of a branch.
    func outcome(_ condition: FunctionCondition, _ then: FunctionOutcome, _ otherwise: FunctionOutcome) -> FunctionOutcome {
        FunctionOutcome(
            permits: .and(.branch(condition, then.permits, otherwise.permits), .negated(failure)),
            refuses: .and(.branch(condition, then.refuses, otherwise.refuses), .negated(failure)),
            mayFail: failure != .constant(false) || then.mayFail || otherwise.mayFail,
            isBoolean: then.isBoolean && otherwise.isBoolean, isPromise: then.isPromise || otherwise.isPromise)
    }
}

/// Conditions whose values are known.
struct FunctionFacts {
    private var known: [FunctionCondition: Bool] = [:]

    mutating func assume(_ condition: FunctionCondition, is value: Bool) {
        switch condition {
        case .constant: break
        case .not(let inner): assume(inner, is: !value)
        case .all(let parts): if value { for part in parts { assume(part, is: true) } }
        case .any(let parts): if !value { for part in parts { assume(part, is: false) } }
        case .equal, .contains, .truth, .exists:
            known[condition] = value
            if value { for term in Self.existing(condition) { known[.exists(term)] = true } }
        }
    }

    /// Returns the values that are neither null nor undefined if the comparison holds.
    private static func existing(_ atom: FunctionCondition) -> [FunctionTerm] {
        switch atom {
        case .truth(let value): [value]
        case .contains(.list, _): []
        case .contains(let list, _): [list]
        case .equal(let left, let right):
            switch (left, right) {
            case (_, .string), (_, .number), (_, .joined), (_, .user(["id"])): [left]
            case (.string, _), (.number, _), (.joined, _), (.user(["id"]), _): [right]
            default: []
            }
        default: []
        }
    }

    /// Returns the condition without the parts that are known.
    func settled(_ condition: FunctionCondition) -> FunctionCondition {
        switch condition {
        case .constant: condition
        case .not(let inner): .negated(settled(inner))
        case .all(let parts): parts.map(settled).reduce(.constant(true), FunctionCondition.and)
        case .any(let parts): parts.map(settled).reduce(.constant(false), FunctionCondition.or)
        case .equal, .contains, .truth, .exists: known[condition].map { .constant($0) } ?? condition
        }
    }
}
