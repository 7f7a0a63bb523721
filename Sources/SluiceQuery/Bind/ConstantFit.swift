import SluiceCore
import SluiceValues

/// The result of converting a constant to a type in a comparison.
enum FittedTest {
    case test(Test)
    /// The test holds for every value, including null.
    case always
    case never
    /// The types are not comparable.
    case mismatch
}

/// Converts a bound constant to a property's type without changing the condition for any value of that type. On an int, `x < 1.5` becomes
/// `x <= 1`, and `x == 1.5` never holds.
struct ConstantFit {
    let type: PropertyType
    let comparison: TestOperator
    let foldsCase: Bool

    /// - Parameter value: A constant from `ConstantAdaptation`.
    func fit(_ value: Value) -> FittedTest {
        if value.isNull { return fitNull() }
        if comparison.isText { return fitText(value) }
        switch (type, value) {
        case (.bool, .bool), (.timestamp, .timestamp), (.objectId, .objectId), (.uuid, .uuid): return test(value)
        case (.string, .string), (.binary, .binary): return test(folded(value))
        case (.int, _): return fitInt(value)
        case (.float, _), (.double, _): return fitFloating(value)
        case (.decimal, .decimal(let number)): return number.isNaN ? unordered : test(.decimal(number.normalized))
        case (.mixed, _): return fitMixed(value)
        case (.link(let target), .link(let found, let key)) where found == target:
            // A link without a key names an object that does not exist. It equals nothing.
            if key.isNull { return unordered }
            return comparison.isOrdering ? .mismatch : test(key)
        default: return .mismatch
        }
    }

    private func test(_ value: Value) -> FittedTest {
        let isTextual =
            switch value {
            case .string, .binary: true
            default: false
            }
        return .test(Test(comparison, value, foldsCase: foldsCase && isTextual))
    }

    private func folded(_ value: Value) -> Value { foldsCase ? TreeEvaluator.folded(value) : value }

    private func fitNull() -> FittedTest {
        switch comparison {
        case .equal, .lessOrEqual, .greaterOrEqual, .like: .test(Test(.equal, .null))
        case .notEqual: .test(Test(.notEqual, .null))
        case .less, .greater: .never
        // Realm's behaviour: on binary, CONTAINS[c] excludes null.
        case .contains where type == .binary && foldsCase: .test(Test(.notEqual, .null))
        case .beginsWith, .endsWith, .contains: .always
        case .isIn: .mismatch
        }
    }

    private func fitText(_ value: Value) -> FittedTest {
        switch (type, value) {
        case (.string, .string), (.mixed, .string), (.binary, .binary), (.mixed, .binary): test(folded(value))
        default: .mismatch
        }
    }

    private func fitMixed(_ value: Value) -> FittedTest {
        switch value {
        case .link, .list, .dictionary: comparison.isOrdering ? .mismatch : test(value)
        default: test(folded(value))
        }
    }

    // MARK: Numbers

    private func fitInt(_ value: Value) -> FittedTest {
        switch value {
        case .int: test(value)
        case .float(let number): fitInt(Double(number))
        case .double(let number): fitInt(number)
        case .decimal(let number): fitInt(number)
        default: .mismatch
        }
    }

    private func fitInt(_ value: Double) -> FittedTest {
        guard value.isFinite else { return .mismatch }
        if let exact = Int64(exactly: value) { return test(.int(exact)) }
        if value < -0x1p63 { return inexact(above: nil) }
        return inexact(above: .int(value >= 0x1p63 ? .max : Int64(value.rounded(.down))))
    }

    private func fitInt(_ value: Decimal128) -> FittedTest {
        if value.isNaN || value.isInfinite { return .mismatch }
        let (floor, isExact) = value.floor
        guard let floor else { return inexact(above: value.isNegative ? nil : .int(.max)) }
        return isExact ? test(.int(floor)) : inexact(above: .int(floor))
    }

    private func fitFloating(_ value: Value) -> FittedTest {
        switch value {
        case .int(let number): fitFloating(number)
        case .float(let number): fitFloating(Double(number))
        case .double(let number): fitFloating(number)
        case .decimal(let number): fitFloating(number)
        default: .mismatch
        }
    }

    private func fitFloating(_ value: Int64) -> FittedTest {
        let isFloat = type == .float
        if isFloat ? Float(exactly: value) != nil : Double(exactly: value) != nil { return fitFloating(Double(value)) }
        let nearest = isFloat ? Double(Float(value)) : Double(value)
        // The nearest value is the lower bound only if it is below the constant.
        return inexact(above: floating(Number.compare(value, nearest) == .less ? below(nearest) : nearest))
    }

    private func fitFloating(_ value: Double) -> FittedTest { value.isNaN ? unordered : test(floating(value)) }

    /// Compares a floating value with a decimal by its digits. A decimal may have more of them.
    private func fitFloating(_ value: Decimal128) -> FittedTest {
        if value.isNaN { return unordered }
        let nearest = type == .float ? Double(Float(value.double)) : value.double
        switch Decimal128.compare(Decimal128(double: nearest), value) {
        case 0: return fitFloating(nearest)
        case ..<0: return inexact(above: floating(nearest))
        default: return inexact(above: floating(below(nearest)))
        }
    }

    /// Returns the next value of the type below a value of it.
    private func below(_ value: Double) -> Double { type == .float ? Double(Float(value).nextDown) : value.nextDown }

    private func floating(_ value: Double) -> Value {
        let positive = value == 0 ? 0 : value
        return type == .float ? .float(Float(positive)) : .double(positive)
    }

    /// The result of a comparison with NaN.
    private var unordered: FittedTest { comparison == .notEqual ? .always : .never }

    /// Returns the comparison with a number between two values of the type. `lower` is the value below, or nil if there is none.
    private func inexact(above lower: Value?) -> FittedTest {
        switch comparison {
        case .equal: .never
        case .notEqual: .always
        case .less, .lessOrEqual: lower.map { .test(Test(.lessOrEqual, $0)) } ?? .never
        case .greater, .greaterOrEqual: .test(lower.map { Test(.greater, $0) } ?? Test(.notEqual, .null))
        case .isIn, .beginsWith, .endsWith, .contains, .like: .mismatch
        }
    }
}
