import SluiceValues

extension Decimal128 {
    /// The number in a unique representation: no trailing zeros, no negative zero.
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

    /// The largest integer not above a finite number, or nil beyond 64 bits, and `true` if it equals the number.
    var floor: (value: Int64?, isExact: Bool) {
        let (coefficient, exponent) = normalized.parts
        if coefficient == 0 { return (0, true) }
        guard exponent < 0 else {
            // Numbers of more than 19 digits exceed 64 bits.
            guard exponent < 20, let power = Decimal128.powerOfTen(exponent) else { return (nil, false) }
            let (product, overflow) = coefficient.multipliedReportingOverflow(by: power)
            let whole = overflow ? nil : Decimal128.whole(product, isNegative)
            return (whole, whole != nil)
        }
        guard let power = Decimal128.powerOfTen(-exponent) else { return (isNegative ? -1 : 0, false) }
        let quotient = coefficient / power
        return (Decimal128.whole(isNegative ? quotient + 1 : quotient, isNegative), false)
    }

    /// Returns nil for powers above 38, which exceed 128 bits.
    private static func powerOfTen(_ power: Int) -> UInt128? {
        guard power <= 38 else { return nil }
        return (0..<power).reduce(1) { result, _ in result * 10 }
    }

    private static func whole(_ magnitude: UInt128, _ isNegative: Bool) -> Int64? {
        guard isNegative else { return Int64(exactly: magnitude) }
        return magnitude == 1 << 63 ? .min : Int64(exactly: magnitude).map { -$0 }
    }
}
