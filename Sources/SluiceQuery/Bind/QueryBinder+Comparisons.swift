import SluiceCore

extension QueryBinder {
    func bind(_ comparison: SyntaxComparison) throws(SluiceError) -> BoundCondition {
        switch comparison.comparison {
        case .fullText: return try fullText(comparison)
        case .geoWithin: return try within(comparison)
        case .between: return try between(comparison)
        default: break
        }
        guard let test = comparison.comparison.test else { throw unsupported(comparison.comparison.rawValue, at: comparison.position) }
        let binder = ComparisonBinder(binder: self, comparison: comparison, test: test)
        return .compare(try binder.bind(try side(comparison.left), try side(comparison.right)))
    }

    // MARK: BETWEEN

    private func between(_ comparison: SyntaxComparison) throws(SluiceError) -> BoundCondition {
        guard case .constants(let list, nil) = try side(comparison.right), list.count == 2 else {
            throw mismatch("BETWEEN takes a list of exactly two values", at: comparison.right.position)
        }
        guard case .bound(let left) = try side(comparison.left) else {
            throw mismatch("Cannot compare two constants", at: comparison.position)
        }
        if left.isMany, left.quantifier != .all {
            throw mismatch("Only 'ALL' supported for operator 'BETWEEN' when applied to lists.", at: comparison.position)
        }
        let low = ComparisonBinder(binder: self, comparison: comparison, test: .greaterOrEqual)
        let high = ComparisonBinder(binder: self, comparison: comparison, test: .lessOrEqual)
        return .and([
            .compare(try low.bind(.bound(left), .constant(list[0].constant, argument: list[0].argument))),
            .compare(try high.bind(.bound(left), .constant(list[1].constant, argument: list[1].argument))),
        ])
    }
}

extension ComparisonOperator {
    /// The test, or nil for operators without one and for BETWEEN, which needs two.
    fileprivate var test: TestOperator? {
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

/// Joins the two sides of a comparison: checks that they are comparable and converts constants.
struct ComparisonBinder {
    let binder: QueryBinder
    let comparison: SyntaxComparison
    let test: TestOperator

    private typealias Side = QueryBinder.Side

    func bind(_ left: QueryBinder.Side, _ right: QueryBinder.Side) throws(SluiceError) -> BoundComparison {
        switch (left, right) {
        case (.bound(let l), .bound(let r)): return try twoPaths(l, r)
        case (.bound(let l), .constant(let constant, let argument)):
            if test == .isIn { throw noList }
            return finish(l, try self.constant(constant, argument, for: l, isLeft: false), l, r: nil)
        case (.bound(let l), .constants(let list, let quantifier)): return try withList(l, list, quantifier, isLeft: false)
        case (.constant(let constant, let argument), .bound(let r)):
            if test == .isIn, !r.isMany { throw noList }
            return finish(try self.constant(constant, argument, for: r, isLeft: true), r, r, r: nil)
        case (.constants(let list, let quantifier), .bound(let r)):
            if test == .isIn, !r.isMany { throw noList }
            return try withList(r, list, quantifier, isLeft: true)
        default: throw binder.mismatch("Cannot compare two constants", at: comparison.position)
        }
    }

    private var noList: SluiceError {
        binder.mismatch(
            "The keypath following 'IN' must contain a list. Found '\(CanonicalPrinter.print(comparison.right))'",
            at: comparison.right.position)
    }

    /// Returns the comparison. `typed` is the side that determines the type, and `other` a second one that does.
    private func finish(_ left: BoundSide, _ right: BoundSide, _ typed: BoundSide, r other: BoundSide?) -> BoundComparison {
        let meaning: BoundComparison.Meaning =
            typed.type == .typeName
            ? .types : .values(nanIsLowest: ComparisonBinder.isGeneric(typed) || other.map(ComparisonBinder.isGeneric) ?? false)
        return BoundComparison(
            left: left, test: test == .isIn ? .equal : test, foldsCase: comparison.foldsCase, right: right, meaning: meaning,
            position: comparison.position)
    }

    /// `true` if NaN counts as a value: in mixed properties and calculations, not in properties of a number type.
    private static func isGeneric(_ side: BoundSide) -> Bool {
        if case .arithmetic = side.operand { return true }
        return side.type == .value(.mixed)
    }

    // MARK: Two paths

    private func twoPaths(_ l: BoundSide, _ r: BoundSide) throws(SluiceError) -> BoundComparison {
        if test == .isIn, !r.isMany { throw noList }
        if !l.isQuantified, !r.isQuantified, ComparisonBinder.isPrimitiveList(l), ComparisonBinder.isPrimitiveList(r) {
            throw binder.mismatch(
                "Two lists of values cannot be compared as wholes. Put ANY, ALL or NONE before '\(written(comparison.left))'",
                at: comparison.position)
        }
        guard areComparable(l.type, r.type) else {
            if test.isText { throw unsupportedText(r.type) }
            throw binder.mismatch(
                "Unsupported comparison between type '\(l.type.name)' of '\(written(comparison.left))' and type "
                    + "'\(r.type.name)' of '\(written(comparison.right))'", at: comparison.position)
        }
        return finish(l, r, l, r: r)
    }

    private func written(_ operand: SyntaxOperand) -> String { String(CanonicalPrinter.print(operand).prefix(80)) }

    private static func isPrimitiveList(_ side: BoundSide) -> Bool {
        guard case .path(let path) = side.operand, path.result == .values, case .value(let type) = side.type, !type.isObject else {
            return false
        }
        return path.sequence == .list || path.sequence == .set
    }

    private func areComparable(_ left: BoundType, _ right: BoundType) -> Bool {
        let isEquality = test == .equal || test == .notEqual || test == .isIn
        switch (left, right) {
        case (.typeName, .typeName): return isEquality && !comparison.foldsCase
        case (.typeName, _), (_, .typeName): return false
        case (.null, _), (_, .null): return true
        case (.value(let l), .value(let r)):
            if test.isText { return [.string, .binary, .mixed].contains(r) && (l == r || l == .mixed || r == .mixed) }
            if case .embedded = l { return false }
            if case .embedded = r { return false }
            if l == .mixed || r == .mixed { return true }
            if l.isNumeric, r.isNumeric { return true }
            return l == r && (l.isOrdered || isEquality)
        }
    }

    private func unsupportedText(_ type: BoundType) -> SluiceError {
        binder.mismatch(
            "Unsupported comparison operator '\(test.syntax.rawValue.lowercased())' against type '\(type.name)', "
                + "right side must be a string or binary type", at: comparison.position)
    }

    // MARK: Constants

    private func withList(
        _ side: BoundSide, _ list: QueryBinder.Constants, _ quantifier: Quantifier?, isLeft: Bool
    ) throws(SluiceError) -> BoundComparison {
        var values: [Value] = []
        let isEquality = comparison.comparison == .equal || comparison.comparison == .isIn
        var list = list
        if isEquality, quantifier != .all, case .value(let type) = side.type { list = ConstantAdaptation.comparable(list, with: type) }
        for (constant, argument) in list { values.append(try value(constant, argument, for: side, isLeft: isLeft)) }
        var constants = BoundSide(
            operand: .constants(values), quantifier: quantifier ?? .any, isQuantified: quantifier != nil, type: side.type, isMany: true,
            position: (isLeft ? comparison.left : comparison.right).position)
        var bound = isLeft ? finish(constants, side, side, r: nil) : finish(side, constants, side, r: nil)
        guard quantifier == nil, !side.isQuantified, case .path(let path) = side.operand, path.sequence != .none,
            case .values(let nanIsLowest) = bound.meaning
        else { return bound }
        // The literal takes a set's order, so that pairs align regardless of the written order.
        if path.sequence == .set {
            constants.operand = .constants(SortOrder.set(values))
            if isLeft { bound.left = constants } else { bound.right = constants }
        }
        bound.meaning = .pairs(nanIsLowest: nanIsLowest, isSet: path.sequence == .set)
        return bound
    }

    private func constant(
        _ constant: QueryConstant, _ argument: Int?, for side: BoundSide, isLeft: Bool
    ) throws(SluiceError) -> BoundSide {
        let value = try value(constant, argument, for: side, isLeft: isLeft)
        let type = value.isNull ? BoundType.null : side.type
        return BoundSide(
            operand: .constant(value), quantifier: .any, isQuantified: false, type: type, isMany: false,
            position: (isLeft ? comparison.left : comparison.right).position)
    }

    private func value(
        _ constant: QueryConstant, _ argument: Int?, for side: BoundSide, isLeft: Bool
    ) throws(SluiceError) -> Value {
        if case .typeName = side.type { return try typeName(constant, argument) }
        if test.isText, case .value(let type) = side.type, ![.string, .binary, .mixed].contains(type) { throw unsupportedText(side.type) }
        if case .null = constant {
            try checkNull(side)
            return .null
        }
        if test.isText, !isLeft, !constant.isText { throw unsupportedText(constant.type) }
        guard case .value(let type) = side.type else { return constant.value }
        let adaptation = ConstantAdaptation(type: type, readsNumbers: argument == nil)
        switch adaptation.adapt(constant) {
        case .value(let value):
            if isOrderRefused(type, constant) { throw mismatch(constant, argument, type) }
            return value
        case .refused(let reason):
            throw binder.mismatch("\(reason) ('\(written(isLeft ? comparison.right : comparison.left))')", at: comparison.position)
        case .otherClass(let target, let found):
            let name = written(isLeft ? comparison.right : comparison.left)
            throw binder.mismatch(
                "The relationship '\(name)' which links to type '\(target)' cannot be compared to an argument of type '\(found)'",
                at: comparison.position)
        case .mismatch: throw mismatch(constant, argument, type)
        }
    }

    private func isOrderRefused(_ type: PropertyType, _ constant: QueryConstant) -> Bool {
        guard test.isOrdering else { return false }
        switch constant {
        case .link, .container: return true
        default: return !type.isOrdered
        }
    }

    private func checkNull(_ side: BoundSide) throws(SluiceError) {
        guard case .value(.link) = side.type, side.isMany else { return }
        guard case .path(let path) = side.operand, path.result == .values else { return }
        let name = written(comparison.left.isPath ? comparison.left : comparison.right)
        throw binder.mismatch("Cannot compare linklist ('\(name)') with NULL", at: comparison.position)
    }

    private func mismatch(_ constant: QueryConstant, _ argument: Int?, _ type: PropertyType) -> SluiceError {
        if let argument {
            let shown = String("\(constant.value)".prefix(80))
            return binder.mismatch(
                "Cannot compare argument $\(argument) with value '\(shown)' to a \(type.name)", at: comparison.position)
        }
        let name = written(comparison.left.isPath ? comparison.left : comparison.right)
        return binder.mismatch(
            "Unsupported comparison between type '\(type.name)' of '\(name)' and type '\(constant.value.typeName)'",
            at: comparison.position)
    }

    // MARK: Names of types

    private func typeName(_ constant: QueryConstant, _ argument: Int?) throws(SluiceError) -> Value {
        guard test == .equal || test == .notEqual || test == .isIn, !comparison.foldsCase else {
            throw binder.mismatch(
                "Unsupported comparison operator '\(test.syntax.rawValue)' on @type, only ==, != and IN are", at: comparison.position)
        }
        switch constant {
        case .null: return .int(TypeMask.null.rawValue)
        case .string(let name):
            if let mask = TypeMask(name: name) { return .int(mask.rawValue) }
            throw binder.mismatch(
                "Unable to parse the type attribute string '\(name)', supported case insensitive values are: "
                    + TypeMask.names.joined(separator: ", "), at: comparison.position)
        default:
            throw binder.mismatch(
                "Unsupported comparison between @type and raw value: '@type' and '\(constant.value.typeName)'", at: comparison.position)
        }
    }
}

extension PropertyType {
    fileprivate var isObject: Bool {
        switch self {
        case .link, .embedded: true
        default: false
        }
    }

    var isNumeric: Bool {
        switch self {
        case .int, .float, .double, .decimal: true
        default: false
        }
    }

    var isOrdered: Bool { !isObject }
}

extension SyntaxOperand {
    fileprivate var isPath: Bool {
        switch kind {
        case .path, .aggregate, .arithmetic, .subqueryCount: true
        default: false
        }
    }
}

extension QueryConstant {
    fileprivate var isText: Bool {
        switch self {
        case .string, .binary, .bytes, .null: true
        default: false
        }
    }
}
