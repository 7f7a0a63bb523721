import SluiceCore

/// Lowers a bound condition to a condition on one row's own values.
///
/// Names and types are bound before, so the only error is a part that needs more than one row.
struct RowLowering {
    /// The class of the row.
    let type: ObjectType
    /// The number of the row among the objects in scope. 0 is the row of the query. The others belong to SUBQUERYs.
    let variable: Int

    /// Returns the same condition on the row. O(size of the condition).
    func lower(_ condition: BoundCondition) throws(QueryError) -> BoundPredicate {
        switch condition {
        case .constant(let value): return .constant(value)
        case .and(let parts): return .conjunction(try parts.map { part throws(QueryError) in try lower(part) })
        case .or(let parts): return .disjunction(try parts.map { part throws(QueryError) in try lower(part) })
        case .not(let inner): return .negation(try lower(inner))
        case .compare(let comparison): return try lower(comparison)
        case .fullText(_, _, let position): throw QueryError("TEXT", at: position)
        case .within(let side, let geometry): return .within(try point(side), geometry)
        }
    }

    private func lower(_ comparison: BoundComparison) throws(QueryError) -> BoundPredicate {
        let (left, right) = (try side(comparison.left), try side(comparison.right))
        if case .pairs = comparison.meaning { throw QueryError.twoLists(comparison) }
        switch (left, right) {
        case (.subject(let subject, let type), .constant(let value)):
            return try RowTest(comparison, subject, type).holds(comparison.test, value)
        case (.constant(let value), .subject(let subject, let type)):
            return try RowTest(comparison, subject, type).constantFirst(value)
        case (.subject(let subject, let type), .constants(let values)):
            return try RowTest(comparison, subject, type).holds(comparison.test, values, comparison.right.quantifier)
        case (.constants(let values), .subject(let subject, let type)):
            return try RowTest(comparison, subject, type).constantsFirst(values, comparison.left.quantifier)
        case (.subject(let first, let l), .subject(let second, let r)):
            guard case .property(let left) = first, case .property(let right) = second else {
                throw QueryError("comparing a list with another property", at: comparison.position)
            }
            // A link property stores only a key. A link in a mixed property also stores the class.
            if (l == .mixed) != (r == .mixed), !l.isOrdered || !r.isOrdered {
                throw QueryError("comparing a link with a mixed property", at: comparison.position)
            }
            return .properties(left, comparison.test, right, foldsCase: comparison.foldsCase)
        case (.constant, _), (.constants, _): throw QueryError("comparing two constants", at: comparison.position)
        }
    }

    // MARK: Sides

    private enum Side {
        case constant(Value)
        case constants([Value])
        case subject(Subject, PropertyType)
    }

    private func side(_ side: BoundSide) throws(QueryError) -> Side {
        switch side.operand {
        case .constant(let value): return .constant(value)
        case .constants(let values): return .constants(values)
        case .path(let path): return try subject(path, side)
        case .aggregate(let aggregate): throw QueryError("the aggregate \(aggregate.function.rawValue)", at: side.position)
        case .arithmetic: throw QueryError("arithmetic", at: side.position)
        case .subqueryCount: throw QueryError("SUBQUERY", at: side.position)
        }
    }

    private func subject(_ path: BoundPath, _ side: BoundSide) throws(QueryError) -> Side {
        // In the condition of a query, only a path of @links does not begin with a property of the row.
        guard path.steps.count > 1, path.steps[0] == .variable(variable), case .property(let index) = path.steps[1] else {
            throw QueryError("@links", at: side.position)
        }
        let property = type.properties[index]
        var rest = path.steps[2...]
        let hasElements = rest.first == .every && property.collection != .none
        if hasElements { rest.removeFirst() }
        // The stored key suffices to compare a link.
        if case .link? = rest.first { rest.removeFirst() }
        let isBeyond = !rest.isEmpty || path.result == .size && hasElements
        if isBeyond { throw QueryError("a path beyond the property '\(property.name)'", at: side.position) }
        switch (path.result, property.collection) {
        case (.types, _): throw QueryError("@type", at: side.position)
        case (.incomingCount, _): throw QueryError("@links", at: side.position)
        case (.values, .none): return .subject(.property(index), property.type)
        case (_, .none): throw QueryError("@count of '\(property.name)', which is not a list,", at: side.position)
        case (_, .dictionary): throw QueryError("the dictionary '\(property.name)'", at: side.position)
        case (.size, _), (.objectCount, _): return .subject(.count(index), .int)
        case (.values, _):
            if case .embedded = property.type {
                throw QueryError("the list of embedded objects '\(property.name)'", at: side.position)
            }
            return .subject(.elements(index, side.quantifier), property.type)
        }
    }

    /// Returns the property that holds the one point of a side.
    private func point(_ side: BoundSide) throws(QueryError) -> Int {
        guard case .path(let path) = side.operand, path.steps.count == 3, path.steps[0] == .variable(variable),
            case .property(let index) = path.steps[1], case .embedded = path.steps[2]
        else { throw QueryError("GEOWITHIN on anything but an embedded object of the row", at: side.position) }
        return index
    }
}

extension QueryError {
    fileprivate static func twoLists(_ comparison: BoundComparison) -> QueryError {
        QueryError("comparing two lists", at: comparison.position)
    }
}

extension BoundCondition {
    /// Returns the same condition on one row's own values, or nil if it needs more.
    /// - Parameter variable: The number of the row among the objects in scope.
    func predicate(on type: ObjectType, variable: Int = 0) -> BoundPredicate? {
        try? RowLowering(type: type, variable: variable).lower(self)
    }
}

/// A comparison of one part of the row with constants.
private struct RowTest {
    private let comparison: BoundComparison
    private let subject: Subject
    private let type: PropertyType

    init(_ comparison: BoundComparison, _ subject: Subject, _ type: PropertyType) {
        self.comparison = comparison
        self.subject = subject
        self.type = type
    }

    /// Compares the subject with one constant.
    func holds(_ test: TestOperator, _ value: Value) throws(QueryError) -> BoundPredicate {
        switch ConstantFit(type: type, comparison: test, foldsCase: comparison.foldsCase).fit(value) {
        case .test(let test): return .test(subject, test)
        case .always: return .constant(true, for: subject)
        case .never: return .constant(false, for: subject)
        case .mismatch:
            throw QueryError("comparing type '\(type.name)' with type '\(value.typeName)'", at: comparison.position)
        }
    }

    func constantFirst(_ value: Value) throws(QueryError) -> BoundPredicate {
        if let mirrored = comparison.test.mirrored { return try holds(mirrored, value) }
        guard value.isNull else {
            throw QueryError("'\(comparison.test.syntax.rawValue)' with a constant on its left", at: comparison.position)
        }
        return comparison.test == .like ? try holds(.equal, .null) : .constant(false, for: subject)
    }

    /// Compares the subject with a list of constants. Nested quantifiers commute if both are ANY or both ALL. NONE is the complement of
    /// ANY.
    func holds(_ test: TestOperator, _ values: [Value], _ quantifier: Quantifier) throws(QueryError) -> BoundPredicate {
        if test.isText { throw QueryError("'\(test.syntax.rawValue)' with a list", at: comparison.position) }
        var isNone = false
        if case .elements(_, let outer) = subject {
            let commutes = quantifier == .any ? outer != .all || test == .equal : quantifier == .all && outer == .all
            guard commutes else { throw QueryError.twoLists(comparison) }
            isNone = outer == .none
        }
        if test == .equal, quantifier == .any {
            return .membership(of: subject, type, in: values, foldsCase: comparison.foldsCase)
        }
        let parts = try values.map { value throws(QueryError) in try holds(test, value) }
        switch quantifier {
        case .any: return isNone ? .conjunction(parts) : .disjunction(parts)
        case .all: return .conjunction(parts)
        case .none: return .negation(.disjunction(parts))
        }
    }

    func constantsFirst(_ values: [Value], _ quantifier: Quantifier) throws(QueryError) -> BoundPredicate {
        // The list's quantifier is the outer one, which does not commute with the one of the elements.
        if case .elements = subject { throw QueryError.twoLists(comparison) }
        return try holds(comparison.test.mirrored ?? comparison.test, values, quantifier)
    }
}

extension BoundPredicate {
    /// Returns the condition that a part of the row equals one of the constants. A constant that no value of the type equals is left out.
    static func membership(of subject: Subject, _ type: PropertyType, in values: [Value], foldsCase: Bool = false) -> BoundPredicate {
        let fit = ConstantFit(type: type, comparison: .equal, foldsCase: foldsCase)
        var members: Set<Value> = []
        var folds = false
        for value in values {
            guard case .test(let test) = fit.fit(value) else { continue }
            members.insert(test.value)
            folds = folds || test.foldsCase
        }
        guard let first = members.first else { return .constant(false, for: subject) }
        if members.count == 1 { return .test(subject, Test(.equal, first, foldsCase: folds)) }
        return .test(subject, Test(.isIn, .list(members.sorted { $0.precedes($1) }), foldsCase: folds))
    }

    /// Returns a condition that is the same for every value, applied to the values of a subject.
    fileprivate static func constant(_ value: Bool, for subject: Subject) -> BoundPredicate {
        guard case .elements(let index, let quantifier) = subject else { return .constant(value) }
        let isEmpty = BoundPredicate.test(.count(index), Test(.equal, .int(0)))
        let isFilled = BoundPredicate.test(.count(index), Test(.notEqual, .int(0)))
        return switch (quantifier, value) {
        case (.any, true): isFilled
        case (.any, false): .constant(false)
        case (.all, true): .constant(true)
        case (.all, false): isEmpty
        case (.none, true): isEmpty
        case (.none, false): .constant(true)
        }
    }
}
