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
        default: return digits.flatMap { left in other.digits.map { left.order(of: $0) } }
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

    /// The decimal digits of a number. A double compares with a decimal by its printed digits.
    private var digits: DecimalDigits? {
        switch self {
        case .int(let value): DecimalDigits("\(value)")
        case .double(let value): DecimalDigits("\(value)")
        case .decimal(let text): DecimalDigits(text)
        default: nil
        }
    }
}

/// A decimal number, digit by digit.
struct DecimalDigits {
    private enum Magnitude: Equatable {
        case notANumber, finite, infinite
    }

    private var magnitude = Magnitude.finite
    private var isNegative = false
    /// The digits without zeros at either end. The point is before the first.
    private var digits: [UInt8] = []
    private var exponent = 0

    /// The digits of a decimal128. Text with more is rounded, halves to even, as queries do.
    private static let precision = 34
    /// The range of a decimal128, as the exponent of a point before the first digit.
    private static let exponents = -6175...6145

    /// Returns nil for text that is not a decimal number, or beyond the range of a decimal128.
    init?(_ text: String) {
        var rest = text.lowercased().utf8[...]
        if let sign = rest.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") {
            isNegative = sign == UInt8(ascii: "-")
            rest = rest.dropFirst()
        }
        switch String(Substring(rest)) {
        case "nan": magnitude = .notANumber
        case "inf", "infinity": magnitude = .infinite
        default: guard read(rest) else { return nil }
        }
    }

    private mutating func read(_ text: Substring.UTF8View) -> Bool {
        let parts = text.split(separator: UInt8(ascii: "e"), maxSplits: 1, omittingEmptySubsequences: false)
        let sides = parts[0].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard sides.count <= 2, let power = parts.count == 1 ? 0 : Int(String(Substring(parts[1]))),
            (-999_999...999_999).contains(power)
        else { return false }
        let all = sides.flatMap { $0 }
        guard !all.isEmpty, all.allSatisfy({ (0x30...0x39).contains($0) }) else { return false }
        digits = Array(all.drop { $0 == 0x30 })
        exponent = sides[0].count - (all.count - digits.count) + power
        round()
        while digits.last == 0x30 { digits.removeLast() }
        return digits.isEmpty || Self.exponents.contains(exponent)
    }

    private mutating func round() {
        guard digits.count > Self.precision else { return }
        let rest = digits[Self.precision...]
        let half = UInt8(ascii: "5")
        let isExactHalf = rest.first == half && rest.dropFirst().allSatisfy { $0 == 0x30 }
        let isUp = isExactHalf ? !digits[Self.precision - 1].isMultiple(of: 2) : (rest.first ?? 0) >= half
        digits.removeSubrange(Self.precision...)
        guard isUp else { return }
        while digits.last == UInt8(ascii: "9") { digits.removeLast() }
        if let last = digits.popLast() {
            digits.append(last + 1)
        } else {
            (digits, exponent) = ([UInt8(ascii: "1")], exponent + 1)
        }
    }

    func order(of other: DecimalDigits) -> NumberOrder {
        if magnitude == .notANumber || other.magnitude == .notANumber { return .unordered }
        let signs = NumberOrder(sign, other.sign)
        if signs != .equal || sign == 0 { return signs }
        let magnitudes = magnitudeOrder(other)
        return sign < 0 ? magnitudes.reversed : magnitudes
    }

    private var sign: Int { magnitude == .finite && digits.isEmpty ? 0 : isNegative ? -1 : 1 }

    private func magnitudeOrder(_ other: DecimalDigits) -> NumberOrder {
        if magnitude == .infinite || other.magnitude == .infinite {
            return NumberOrder(magnitude == .infinite ? 1 : 0, other.magnitude == .infinite ? 1 : 0)
        }
        if exponent != other.exponent { return NumberOrder(exponent, other.exponent) }
        if digits == other.digits { return .equal }
        return digits.lexicographicallyPrecedes(other.digits) ? .less : .greater
    }
}
