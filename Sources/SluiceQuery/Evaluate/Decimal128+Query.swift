import SluiceCore

extension Decimal128 {
    /// Equal numbers made equal in representation: no trailing zeros, no negative zero.
    var normalized: Decimal128 {
        if isNaN { return .nan }
        if isInfinite { return isNegative ? .negativeInfinity : .infinity }
        var (coefficient, exponent) = parts
        if coefficient == 0 { return .zero }
        while coefficient % 10 == 0, exponent < Decimal128.largestExponent {
            coefficient /= 10
            exponent += 1
        }
        let biased = UInt64(exponent + Decimal128.bias)
        return Decimal128(
            high: (isNegative ? 1 << 63 : 0) | biased << 49 | UInt64(coefficient >> 64),
            low: UInt64(truncatingIfNeeded: coefficient))
    }

    private static let bias = 6_176
    private static let largestExponent = 6_111

    /// The largest whole number that is not larger than a finite one, if 64 bits hold it, and whether it is equal.
    var floor: (value: Int64?, isExact: Bool) {
        let (coefficient, exponent) = normalized.parts
        if coefficient == 0 { return (0, true) }
        guard exponent < 0 else {
            // Beyond 19 digits 64 bits are exceeded.
            guard exponent < 20, let power = Decimal128.powerOfTen(exponent) else { return (nil, false) }
            let (product, overflow) = coefficient.multipliedReportingOverflow(by: power)
            let whole = overflow ? nil : Decimal128.whole(product, isNegative)
            return (whole, whole != nil)
        }
        guard let power = Decimal128.powerOfTen(-exponent) else { return (isNegative ? -1 : 0, false) }
        let quotient = coefficient / power
        return (Decimal128.whole(isNegative ? quotient + 1 : quotient, isNegative), false)
    }

    /// Nil beyond 38, where 128 bits end.
    private static func powerOfTen(_ power: Int) -> UInt128? {
        guard power <= 38 else { return nil }
        return (0..<power).reduce(1) { result, _ in result * 10 }
    }

    private static func whole(_ magnitude: UInt128, _ isNegative: Bool) -> Int64? {
        guard isNegative else { return Int64(exactly: magnitude) }
        return magnitude == 1 << 63 ? .min : Int64(exactly: magnitude).map { -$0 }
    }
}
