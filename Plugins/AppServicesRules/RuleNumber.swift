import SluiceValues

/// The order of two numbers by exact value, as in the query language.
enum NumberOrder {
    case less, equal, greater
    /// One of the numbers is NaN.
    case unordered

    init<N: Comparable>(_ left: N, _ right: N) {
        self = left < right ? .less : left > right ? .greater : left == right ? .equal : .unordered
    }

    fileprivate var reversed: NumberOrder {
        switch self {
        case .less: .greater
        case .greater: .less
        case .equal, .unordered: self
        }
    }
}

extension RuleValue {
    /// Returns the order of two numbers, or nil if one is not a number.
    func order(of other: RuleValue) -> NumberOrder? {
        switch (self, other) {
        case (.int(let l), .int(let r)): return NumberOrder(l, r)
        case (.double(let l), .double(let r)): return NumberOrder(l, r)
        case (.int(let l), .double(let r)): return Self.order(l, r)
        case (.double(let l), .int(let r)): return Self.order(r, l).reversed
        default: return number.flatMap { left in other.number.map { NumberOrder(left, $0) } }
        }
    }

    /// Compares exactly, because a double cannot represent every integer, nor an integer a fraction.
    private static func order(_ left: Int64, _ right: Double) -> NumberOrder {
        if right.isNaN { return .unordered }
        if right >= 0x1p63 { return .less }
        if right < -0x1p63 { return .greater }
        let floor = right.rounded(.down)
        return left == Int64(floor) ? NumberOrder(floor, right) : NumberOrder(left, Int64(floor))
    }

    /// The value for a comparison with a float property: the nearest float of a number with digits.
    var asFloat: RuleValue {
        switch self {
        case .double(let value): .double(Double(Float(value)))
        case .list(let elements): .list(elements.map(\.asFloat))
        default: self
        }
    }

    /// The number in decimal. A double compares with a decimal by its printed digits.
    private var number: Decimal128? {
        switch self {
        case .int(let value): Decimal128(value)
        case .double(let value): Decimal128(double: value)
        case .decimal(let text): Decimal128(ruleDigits: text)
        default: nil
        }
    }
}

extension NumberOrder {
    fileprivate init(_ left: Decimal128, _ right: Decimal128) {
        self = left.isNaN || right.isNaN ? .unordered : NumberOrder(Decimal128.compare(left, right), 0)
    }
}

extension Decimal128 {
    /// Reads the digits of a rule. More than 34 are rounded, halves to even, as queries do.
    ///
    /// Returns nil for text that is not a decimal number, and for one beyond the range of a decimal128.
    init?(ruleDigits text: String) {
        guard let number = Decimal128(rounding: text) else { return nil }
        // Rounding turns a number beyond the range into infinity or zero, for which the text is not exact.
        guard number.isFinite && !number.isZero || Decimal128(text) != nil else { return nil }
        self = number
    }
}
