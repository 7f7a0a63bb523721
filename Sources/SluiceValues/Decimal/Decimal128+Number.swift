/// The number that the encoding represents.
extension Decimal128 {
    /// The largest coefficient: 34 nines.
    static let maximumCoefficient: UInt128 = 9_999_999_999_999_999_999_999_999_999_999_999
    static let minimumExponent = -6_176
    static let maximumExponent = 6_111

    package static let zero = Decimal128(isNegative: false, coefficient: 0, exponent: 0)
    package static let nan = Decimal128(high: 0x7C00_0000_0000_0000, low: 0)
    package static let infinity = Decimal128(high: 0x7800_0000_0000_0000, low: 0)
    package static let negativeInfinity = Decimal128(high: 0xF800_0000_0000_0000, low: 0)

    package var isNegative: Bool { high >> 63 == 1 }
    package var isNaN: Bool { high >> 58 & 0x1F == 0x1F }
    package var isInfinite: Bool { high >> 58 & 0x1F == 0x1E }
    package var isFinite: Bool { high >> 59 & 0xF != 0xF }

    /// The coefficient and exponent of a finite number. As in IEEE 754, an encoding whose coefficient has more than 34 digits is zero.
    package var parts: (coefficient: UInt128, exponent: Int) {
        if high >> 61 & 3 == 3 { return (0, Int(high >> 47 & 0x3FFF) + Decimal128.minimumExponent) }
        let coefficient = UInt128(high & 0x1_FFFF_FFFF_FFFF) << 64 | UInt128(low)
        let exponent = Int(high >> 49 & 0x3FFF) + Decimal128.minimumExponent
        return (coefficient > Decimal128.maximumCoefficient ? 0 : coefficient, exponent)
    }

    package var isZero: Bool { isFinite && parts.coefficient == 0 }

    /// - Precondition: The coefficient has at most 34 digits, and the exponent is between -6176 and 6111.
    init(isNegative: Bool, coefficient: UInt128, exponent: Int) {
        precondition(coefficient <= Decimal128.maximumCoefficient, "a decimal128 has at most 34 digits")
        let biased = UInt64(exponent - Decimal128.minimumExponent)
        high = (isNegative ? 1 << 63 : 0) | biased << 49 | UInt64(coefficient >> 64)
        low = UInt64(truncatingIfNeeded: coefficient)
    }

    package init(_ value: Int64) {
        self.init(isNegative: value < 0, coefficient: UInt128(value.magnitude), exponent: 0)
    }

    /// Creates the decimal that a double prints as: 0.1 becomes 0.1, not the binary fraction's 55 digits.
    package init(double value: Double) {
        if value.isNaN {
            self = .nan
        } else if value.isInfinite {
            self = value < 0 ? .negativeInfinity : .infinity
        } else {
            var digits = "\(value)"
            if digits.hasSuffix(".0") { digits.removeLast(2) }
            self = Decimal128(digits) ?? .nan
        }
    }

    /// The nearest double.
    package var double: Double {
        if isNaN { return .nan }
        if isInfinite { return isNegative ? -.infinity : .infinity }
        return Double(description) ?? .nan
    }

    /// Compares numbers: 1.0 equals 1, and the zeros are equal. NaN equals NaN and is below everything.
    /// - Returns: -1, 0 or 1.
    package static func compare(_ left: Decimal128, _ right: Decimal128) -> Int {
        if left.isNaN || right.isNaN { return (right.isNaN ? 1 : 0) - (left.isNaN ? 1 : 0) }
        let (leftSign, rightSign) = (left.sign, right.sign)
        if leftSign != rightSign { return leftSign < rightSign ? -1 : 1 }
        return leftSign * compareMagnitudes(left, right)
    }

    private var sign: Int { isZero ? 0 : isNegative ? -1 : 1 }

    private static func compareMagnitudes(_ left: Decimal128, _ right: Decimal128) -> Int {
        if left.isInfinite || right.isInfinite { return (left.isInfinite ? 1 : 0) - (right.isInfinite ? 1 : 0) }
        var (l, r) = (left.parts, right.parts)
        if l.coefficient == 0 || r.coefficient == 0 { return (l.coefficient == 0 ? 0 : 1) - (r.coefficient == 0 ? 0 : 1) }
        let (leftOrder, rightOrder) = (digitCount(l.coefficient) + l.exponent, digitCount(r.coefficient) + r.exponent)
        if leftOrder != rightOrder { return leftOrder < rightOrder ? -1 : 1 }
        // Of the same order of magnitude: their exponents differ by less than 34, so the widened coefficient has 34 digits.
        while l.exponent > r.exponent { (l.coefficient, l.exponent) = (l.coefficient * 10, l.exponent - 1) }
        while r.exponent > l.exponent { (r.coefficient, r.exponent) = (r.coefficient * 10, r.exponent - 1) }
        return l.coefficient == r.coefficient ? 0 : l.coefficient < r.coefficient ? -1 : 1
    }

    private static func digitCount(_ value: UInt128) -> Int {
        var (count, rest) = (0, value)
        while rest > 0 { (count, rest) = (count + 1, rest / 10) }
        return count
    }
}
