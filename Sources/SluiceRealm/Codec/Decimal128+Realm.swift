import SluiceValues

/// A decimal in three integers, as in changesets: the 113 bits of the coefficient, the exponent and the sign.
///
/// The infinities and NaN have the exponents that their bits in the encoding stand for: 9,184 and 9,696.
extension Decimal128 {
    /// The difference between an exponent and its bits in the encoding.
    private static let exponentBias: Int64 = 6_176
    private static let exponentBits: UInt64 = 0x3FFF
    private static let highCoefficientBits: UInt64 = 0x1_FFFF_FFFF_FFFF

    /// - Returns: Nil if the exponent does not fit 14 bits.
    /// - Precondition: The coefficient has at most 113 bits.
    init?(realm coefficient: UInt128, exponent: Int64, isNegative: Bool) {
        let (sum, overflow) = exponent.addingReportingOverflow(Decimal128.exponentBias)
        guard !overflow, let biased = UInt64(exactly: sum), biased <= Decimal128.exponentBits else { return nil }
        let high = UInt64(coefficient >> 64) & Decimal128.highCoefficientBits
        self.init(high: (isNegative ? 1 << 63 : 0) | biased << 49 | high, low: UInt64(truncatingIfNeeded: coefficient))
    }

    /// The three integers of any encoding. They give the same encoding again.
    var realmParts: (coefficient: UInt128, exponent: Int64, isNegative: Bool) {
        let coefficient = UInt128(high & Decimal128.highCoefficientBits) << 64 | UInt128(low)
        return (coefficient, Int64(high >> 49 & Decimal128.exponentBits) - Decimal128.exponentBias, isNegative)
    }
}
