import SluiceCore

/// A constant of a query, from a literal or an argument, before conversion to a property's type.
enum QueryConstant: Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    /// A number with the digits from the text, which a decimal property uses unrounded.
    case double(Double, text: String)
    case float(Float, text: String)
    case decimal(Decimal128)
    case string(String)
    case binary([UInt8])
    /// `B64"…"` that is not UTF-8: bytes in place of a string.
    case bytes([UInt8])
    case timestamp(Timestamp)
    case objectId(ObjectIdentifierBytes)
    case uuid(UUIDBytes)
    case link(type: String, key: Value)
    case container(Value)

    init(_ literal: Literal) {
        switch literal {
        case .null: self = .null
        case .bool(let value): self = .bool(value)
        case .int(let value): self = .int(value)
        case .real(let text): self = .double(Double(text) ?? .nan, text: text)
        case .float(let text): self = .float(Float(text) ?? .nan, text: text)
        case .infinity(let negative): self = .double(negative ? -.infinity : .infinity, text: negative ? "-inf" : "inf")
        case .nan: self = .double(.nan, text: "nan")
        case .string(let value): self = .string(value)
        case .bytes(let value): self = .bytes(value)
        case .binary(let value): self = .binary(value)
        case .timestamp(let value): self = .timestamp(value)
        case .objectId(let value): self = .objectId(value)
        case .uuid(let value): self = .uuid(value)
        }
    }

    init(argument value: Value) {
        switch value {
        case .null: self = .null
        case .bool(let value): self = .bool(value)
        case .int(let value): self = .int(value)
        case .float(let value): self = .float(value, text: "\(value)")
        case .double(let value): self = .double(value, text: "\(value)")
        case .decimal(let value): self = .decimal(value)
        case .string(let value): self = .string(value)
        case .binary(let value): self = .binary(value)
        case .timestamp(let value): self = .timestamp(value)
        case .objectId(let value): self = .objectId(value)
        case .uuid(let value): self = .uuid(value)
        case .link(let type, let key): self = .link(type: type, key: key)
        case .list, .dictionary: self = .container(value)
        }
    }

    /// The value for a mixed property or a key.
    var value: Value {
        switch self {
        case .null: .null
        case .bool(let value): .bool(value)
        case .int(let value): .int(value)
        case .double(let value, _): .double(value == 0 ? 0 : value)
        case .float(let value, _): .float(value == 0 ? 0 : value)
        case .decimal(let value): .decimal(value.normalized)
        case .string(let value): .string(value)
        case .binary(let value), .bytes(let value): .binary(value)
        case .timestamp(let value): .timestamp(value)
        case .objectId(let value): .objectId(value)
        case .uuid(let value): .uuid(value)
        case .link(let type, let key): .link(type: type, key: key)
        case .container(let value): value
        }
    }
}

/// The result of converting a constant to a type in a comparison.
enum FittedTest {
    case test(Test)
    /// The test holds for every value, including null.
    case always
    case never
    /// The types are not comparable.
    case mismatch
    case refused(String)
}

/// Converts a constant to a property's type without changing the condition for any value of that type. On an int, `x < 1.5` becomes `x <=
/// 1`, and `x == 1.5` never holds.
struct ConstantFit {
    let type: PropertyType
    let comparison: TestOperator
    let foldsCase: Bool
    /// `true` if a string may represent a number: in the query's text, not as an argument.
    let readsNumbers: Bool

    func fit(_ constant: QueryConstant) -> FittedTest {
        if case .null = constant { return fitNull() }
        if comparison.isText { return fitText(constant) }
        switch type {
        case .bool: if case .bool(let value) = constant { return test(.bool(value)) }
        case .int: return fitInt(constant)
        case .float, .double: return fitFloating(constant)
        case .decimal: return fitDecimal(constant)
        case .string:
            if case .string(let value) = constant { return test(.string(foldsCase ? Folding.folded(value) : value)) }
        case .binary:
            if case .binary(let value) = constant { return test(.binary(foldsCase ? Folding.folded(value) : value)) }
        case .timestamp: if case .timestamp(let value) = constant { return test(.timestamp(value)) }
        case .objectId: if case .objectId(let value) = constant { return test(.objectId(value)) }
        case .uuid: if case .uuid(let value) = constant { return test(.uuid(value)) }
        case .mixed: return fitMixed(constant)
        case .link(let target): return fitLink(constant, target)
        case .embedded: break
        }
        return .mismatch
    }

    private func test(_ value: Value) -> FittedTest {
        let isTextual =
            switch value {
            case .string, .binary: true
            default: false
            }
        return .test(Test(comparison, value, foldsCase: foldsCase && isTextual))
    }

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

    private func fitText(_ constant: QueryConstant) -> FittedTest {
        let value: Value
        switch (type, constant) {
        case (.string, .string(let text)), (.mixed, .string(let text)):
            value = .string(foldsCase ? Folding.folded(text) : text)
        case (.binary, .binary(let bytes)), (.mixed, .binary(let bytes)), (.mixed, .bytes(let bytes)):
            value = .binary(foldsCase ? Folding.folded(bytes) : bytes)
        default:
            return .mismatch
        }
        return test(value)
    }

    private func fitMixed(_ constant: QueryConstant) -> FittedTest {
        switch constant {
        case .string(let text): test(.string(foldsCase ? Folding.folded(text) : text))
        case .binary(let bytes), .bytes(let bytes): test(.binary(foldsCase ? Folding.folded(bytes) : bytes))
        case .link, .container: comparison.isOrdering ? .mismatch : test(constant.value)
        default: test(constant.value)
        }
    }

    private func fitLink(_ constant: QueryConstant, _ target: String) -> FittedTest {
        guard case .link(let type, let key) = constant else { return .mismatch }
        guard type == target else { return .mismatch }
        // A link without a key names an object that does not exist. It equals nothing.
        if key.isNull { return comparison == .notEqual ? .always : .never }
        return comparison.isOrdering ? .mismatch : test(key)
    }

    // MARK: Numbers

    private func fitInt(_ constant: QueryConstant) -> FittedTest {
        switch constant {
        case .int(let value): return test(.int(value))
        case .double(let value, let text): return fitInt(value, text)
        case .float(let value, let text): return fitInt(Double(value), text)
        case .decimal(let value): return fitInt(value)
        case .string(let text):
            guard readsNumbers else { return .mismatch }
            if let value = Int64(text) { return test(.int(value)) }
            return Decimal128(rounding: text).map(fitInt) ?? .mismatch
        default: return .mismatch
        }
    }

    private func fitInt(_ value: Double, _ text: String) -> FittedTest {
        if value.isNaN { return .refused("NaN not supported for int") }
        if value.isInfinite { return .refused("Infinity not supported for int") }
        if let exact = Int64(exactly: value) { return test(.int(exact)) }
        if value < -0x1p63 { return inexact(above: nil) }
        return inexact(above: .int(value >= 0x1p63 ? .max : Int64(value.rounded(.down))))
    }

    private func fitInt(_ value: Decimal128) -> FittedTest {
        if value.isNaN { return .refused("NaN not supported for int") }
        if value.isInfinite { return .refused("Infinity not supported for int") }
        let (floor, isExact) = value.floor
        guard let floor else { return inexact(above: value.isNegative ? nil : .int(.max)) }
        return isExact ? test(.int(floor)) : inexact(above: .int(floor))
    }

    private func fitFloating(_ constant: QueryConstant) -> FittedTest {
        let isFloat = type == .float
        switch constant {
        case .int(let value):
            if isFloat ? Float(exactly: value) != nil : Double(exactly: value) != nil { return fitFloating(Double(value)) }
            let nearest = isFloat ? Double(Float(value)) : Double(value)
            // The nearest value is the lower bound only if it is below the constant.
            guard Number.compare(value, nearest) == .less else { return inexact(above: floating(nearest)) }
            return inexact(above: floating(isFloat ? Double(Float(nearest).nextDown) : nearest.nextDown))
        case .double(let value, _): return fitFloating(value)
        case .float(let value, _): return fitFloating(Double(value))
        case .decimal(let value): return fitFloating(value)
        case .string(let text): return readsNumbers ? Double(text).map { fitFloating($0) } ?? .mismatch : .mismatch
        default: return .mismatch
        }
    }

    private func fitFloating(_ value: Double) -> FittedTest { value.isNaN ? unordered : test(floating(value)) }

    /// Compares a floating value with a decimal by its digits. A decimal may have more of them.
    private func fitFloating(_ value: Decimal128) -> FittedTest {
        if value.isNaN { return unordered }
        let nearest = type == .float ? Double(Float(value.double)) : value.double
        switch Decimal128.compare(Decimal128(double: nearest), value) {
        case 0: return fitFloating(nearest)
        case ..<0: return inexact(above: floating(nearest))
        default: return inexact(above: floating(type == .float ? Double(Float(nearest).nextDown) : nearest.nextDown))
        }
    }

    private func floating(_ value: Double) -> Value {
        let positive = value == 0 ? 0 : value
        return type == .float ? .float(Float(positive)) : .double(positive)
    }

    private func fitDecimal(_ constant: QueryConstant) -> FittedTest {
        switch constant {
        case .int(let value): return fitDecimal(Decimal128(value))
        case .double(_, let text), .float(_, let text): return Decimal128(rounding: text).map(fitDecimal) ?? .mismatch
        case .decimal(let value): return fitDecimal(value)
        case .string(let text): return readsNumbers ? Decimal128(rounding: text).map(fitDecimal) ?? .mismatch : .mismatch
        default: return .mismatch
        }
    }

    private func fitDecimal(_ value: Decimal128) -> FittedTest {
        value.isNaN ? unordered : test(.decimal(value.normalized))
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
