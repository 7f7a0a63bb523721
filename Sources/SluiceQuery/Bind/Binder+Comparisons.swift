import SluiceCore

extension Binder {
    /// - Parameters: The bound sides, if the caller already has them.
    func bind(_ comparison: SyntaxComparison, _ left: Side? = nil, _ right: Side? = nil) throws(SluiceError) -> BoundPredicate {
        switch comparison.comparison {
        case .fullText: throw unsupported("TEXT", at: comparison.position)
        case .geoWithin: return try within(comparison)
        default: break
        }
        let context = Context(
            binder: self, comparison: comparison, left: try known(left, comparison.left), right: try known(right, comparison.right))
        guard let comparison = comparison.comparison.test else { return try context.between() }
        return try context.bind(comparison)
    }

    /// Does not check the property's type, because a `Binder` has no schema. A value that is not a point is in no shape.
    private func within(_ comparison: SyntaxComparison) throws(SluiceError) -> BoundPredicate {
        guard case .subject(.property(let index), let property) = try side(comparison.left), case .embedded = property.type else {
            throw mismatch("GEOWITHIN takes a property on its left that holds a point", at: comparison.left.position)
        }
        return .within(index, try ShapeBinder(diagnostic: diagnostic, arguments: arguments.map { .value($0) }).geometry(comparison.right))
    }

    private func known(_ known: Side?, _ operand: SyntaxOperand) throws(SluiceError) -> Side {
        if let known { return known }
        return try side(operand)
    }
}

extension ComparisonOperator {
    /// The test, or nil for operators without one and for BETWEEN, which needs two.
    var test: TestOperator? {
        switch self {
        case .equal: .equal
        case .notEqual: .notEqual
        case .less: .less
        case .lessOrEqual: .lessOrEqual
        case .greater: .greater
        case .greaterOrEqual: .greaterOrEqual
        case .isIn: .isIn
        case .beginsWith: .beginsWith
        case .endsWith: .endsWith
        case .contains: .contains
        case .like: .like
        case .between, .fullText, .geoWithin: nil
        }
    }
}

/// One comparison with both sides bound.
private struct Context {
    let binder: Binder
    let comparison: SyntaxComparison
    let left: Binder.Side
    let right: Binder.Side

    func bind(_ test: TestOperator) throws(SluiceError) -> BoundPredicate {
        switch (left, right) {
        case (.constant, .constant), (.constant, .constants), (.constants, .constant), (.constants, .constants):
            throw binder.mismatch("Cannot compare two constants", at: comparison.position)
        case (.subject(let subject, let property), .constant(let constant, let argument)):
            if test == .isIn { throw noList(found: comparison.right) }
            return try self.test(subject, property, test, constant, argument)
        case (.constant(let constant, let argument), .subject(let subject, let property)):
            return try constantFirst(constant, argument, test, subject, property)
        case (.subject(let subject, let property), .constants(let list, let quantifier)):
            if test.isText { throw binder.unsupported("'\(comparison.comparison.rawValue)' with a list", at: comparison.position) }
            return try self.list(subject, property, test, list, quantifier)
        case (.constants(let list, let quantifier), .subject(let subject, let property)):
            guard let mirrored = test.mirrored, !isElements(subject) else { throw twoLists }
            return try self.list(subject, property, mirrored, list, quantifier)
        case (.subject(let first, let l), .subject(let second, let r)):
            return try twoProperties(first, l, test, second, r)
        }
    }

    // MARK: One constant

    private func test(
        _ subject: Subject, _ property: Property, _ test: TestOperator, _ constant: QueryConstant, _ argument: Int?
    ) throws(SluiceError) -> BoundPredicate {
        if case .null = constant, case .link = property.type, isElements(subject) {
            throw binder.mismatch("Cannot compare linklist ('\(property.name)') with NULL", at: comparison.position)
        }
        switch try fit(property, test, constant, argument) {
        case .test(let test): return .test(subject, test)
        case .always: return holds(true, for: subject)
        default: return holds(false, for: subject)
        }
    }

    /// Returns a condition that is the same for every value, applied to the values of a subject.
    private func holds(_ value: Bool, for subject: Subject) -> BoundPredicate {
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

    private func fit(
        _ property: Property, _ test: TestOperator, _ constant: QueryConstant, _ argument: Int?
    ) throws(SluiceError) -> FittedTest {
        let type = property.type
        if test.isText, type != .string, type != .binary, type != .mixed {
            throw binder.mismatch(
                "Unsupported comparison operator '\(test.syntax.rawValue.lowercased())' against type '\(type.name)', "
                    + "right side must be a string or binary type ('\(property.name)')", at: comparison.position)
        }
        if case .link(let target) = type, case .link(let found, _) = constant, found != target {
            throw binder.mismatch(
                "The relationship '\(property.name)' which links to type '\(target)' cannot be compared to an argument of type '\(found)'",
                at: comparison.position)
        }
        let fit = ConstantFit(type: type, comparison: test, foldsCase: comparison.foldsCase, readsNumbers: argument == nil)
        let fitted = fit.fit(constant)
        switch fitted {
        case .test, .always, .never: return fitted
        case .refused(let reason): throw binder.mismatch("\(reason) ('\(property.name)')", at: comparison.position)
        case .mismatch: break
        }
        if let argument {
            throw diagnosticForArgument(argument, constant, type)
        }
        throw binder.mismatch(
            "Unsupported comparison between type '\(type.name)' of '\(property.name)' and type '\(constant.value.typeName)'",
            at: comparison.position)
    }

    private func diagnosticForArgument(_ argument: Int, _ constant: QueryConstant, _ type: PropertyType) -> SluiceError {
        let shown = String("\(constant.value)".prefix(80))
        return binder.diagnostic.error(
            .queryTypeMismatch, "Cannot compare argument $\(argument) with value '\(shown)' to a \(type.name)",
            at: comparison.position)
    }

    private func constantFirst(
        _ constant: QueryConstant, _ argument: Int?, _ test: TestOperator, _ subject: Subject, _ property: Property
    ) throws(SluiceError) -> BoundPredicate {
        if test == .isIn {
            guard isElements(subject) else { throw noList(found: comparison.right) }
            return try self.test(subject, property, .equal, constant, argument)
        }
        if let mirrored = test.mirrored { return try self.test(subject, property, mirrored, constant, argument) }
        guard case .null = constant else {
            throw binder.unsupported("'\(comparison.comparison.rawValue)' with a constant on its left", at: comparison.position)
        }
        return test == .like ? try self.test(subject, property, .equal, .null, nil) : holds(false, for: subject)
    }

    // MARK: Lists

    private func isElements(_ subject: Subject) -> Bool { if case .elements = subject { true } else { false } }

    private var twoLists: SluiceError { binder.unsupported("comparing two lists", at: comparison.position) }

    private func noList(found operand: SyntaxOperand) -> SluiceError {
        let found = CanonicalPrinter.print(operand)
        return binder.mismatch("The keypath following 'IN' must contain a list. Found '\(found)'", at: operand.position)
    }

    /// Compares a subject with a list of constants. Nested quantifiers commute if both are ANY or both ALL. NONE is the complement of ANY.
    private func list(
        _ subject: Subject, _ property: Property, _ test: TestOperator, _ list: Binder.Constants, _ quantifier: Quantifier?
    ) throws(SluiceError) -> BoundPredicate {
        let inner = quantifier ?? .any
        let isEquality = test == .isIn || test == .equal
        if case .elements(_, let outer) = subject {
            let isWritten = quantifier != nil || isQuantified(comparison.left) || isQuantified(comparison.right)
            let commutes = inner == .any ? outer != .all || isEquality : inner == .all && outer == .all
            guard isWritten, commutes else { throw twoLists }
        }
        let list = isEquality && inner != .all ? ConstantAdaptation.comparable(list, with: property.type) : list
        if isEquality, inner == .any { return try membership(subject, property, list) }
        let each = isEquality ? TestOperator.equal : test
        let parts = try list.map { member throws(SluiceError) in try self.test(subject, property, each, member.0, member.1) }
        switch inner {
        case .any:
            if case .elements(_, .none) = subject { return .conjunction(parts) }
            return .disjunction(parts)
        case .all: return .conjunction(parts)
        case .none: return .negation(.disjunction(parts))
        }
    }

    private func isQuantified(_ operand: SyntaxOperand) -> Bool {
        if case .path(let path) = operand.kind { path.quantifier != nil } else { false }
    }

    private func membership(
        _ subject: Subject, _ property: Property, _ list: Binder.Constants
    ) throws(SluiceError) -> BoundPredicate {
        var values: Set<Value> = []
        var foldsCase = false
        for (constant, argument) in list {
            if case .test(let test) = try fit(property, .equal, constant, argument) {
                values.insert(test.value)
                foldsCase = foldsCase || test.foldsCase
            }
        }
        // No constant fits the property: equality holds for no value.
        guard let first = values.first else { return holds(false, for: subject) }
        if values.count == 1 { return .test(subject, Test(.equal, first, foldsCase: foldsCase)) }
        return .test(subject, Test(.isIn, .list(values.sorted { $0.precedes($1) }), foldsCase: foldsCase))
    }

    func between() throws(SluiceError) -> BoundPredicate {
        guard case .constants(let list, nil) = right, list.count == 2 else {
            throw binder.mismatch("BETWEEN takes a list of exactly two values", at: comparison.right.position)
        }
        guard case .subject(let subject, let property) = left else {
            throw binder.mismatch("Cannot compare two constants", at: comparison.position)
        }
        if case .elements(_, let quantifier) = subject, quantifier != .all {
            throw binder.mismatch("Only 'ALL' supported for operator 'BETWEEN' when applied to lists.", at: comparison.position)
        }
        let low = try test(subject, property, .greaterOrEqual, list[0].0, list[0].1)
        return .conjunction([low, try test(subject, property, .lessOrEqual, list[1].0, list[1].1)])
    }

    // MARK: Two properties

    private func twoProperties(
        _ first: Subject, _ l: Property, _ test: TestOperator, _ second: Subject, _ r: Property
    ) throws(SluiceError) -> BoundPredicate {
        if test == .isIn, !isElements(second) { throw noList(found: comparison.right) }
        guard case .property(let left) = first, case .property(let right) = second, test != .isIn else {
            throw binder.unsupported("comparing a list with another property", at: comparison.position)
        }
        guard Context.areComparable(l.type, r.type, test) else {
            throw binder.mismatch(
                "Unsupported comparison between type '\(l.type.name)' of '\(l.name)' and type '\(r.type.name)' of '\(r.name)'",
                at: comparison.position)
        }
        // A link property stores only a key. A link in a mixed property also stores the class.
        if (l.type == .mixed) != (r.type == .mixed), !l.type.isOrdered || !r.type.isOrdered {
            throw binder.unsupported("comparing a link with a mixed property", at: comparison.position)
        }
        return .properties(left, test, right, foldsCase: comparison.foldsCase)
    }

    private static func areComparable(_ left: PropertyType, _ right: PropertyType, _ test: TestOperator) -> Bool {
        if left == .mixed || right == .mixed { return true }
        if test.isText { return left == right && (left == .string || left == .binary) }
        if left.isNumeric, right.isNumeric { return true }
        return left == right && (left.isOrdered || !test.isOrdering)
    }
}

extension PropertyType {
    var isNumeric: Bool {
        switch self {
        case .int, .float, .double, .decimal: true
        default: false
        }
    }

    var isOrdered: Bool {
        switch self {
        case .link, .embedded: false
        default: true
        }
    }
}
