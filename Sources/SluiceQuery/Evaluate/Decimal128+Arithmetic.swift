import SluiceCore

/// Arithmetic in 34 digits, halves to even. NaN and the infinities are IEEE's.
extension Decimal128 {
    static func calculate(_ arithmetic: Arithmetic, _ left: Decimal128, _ right: Decimal128) -> Decimal128 {
        if left.isNaN || right.isNaN { return .nan }
        switch arithmetic {
        case .add: return sum(left, right, negatingRight: false)
        case .subtract: return sum(left, right, negatingRight: true)
        case .multiply: return product(left, right)
        case .divide: return quotient(left, right)
        }
    }

    private static func infinity(_ isNegative: Bool) -> Decimal128 { isNegative ? .negativeInfinity : .infinity }

    /// The number of these digits, rounded.
    private static func rounded(_ isNegative: Bool, _ digits: [UInt8], exponent: Int) -> Decimal128 {
        let text = String(decoding: digits.map { $0 + UInt8(ascii: "0") }, as: UTF8.self)
        return Decimal128(rounding: "\(isNegative ? "-" : "")\(text.isEmpty ? "0" : text)E\(exponent)") ?? .nan
    }

    private static func digits(_ value: UInt128) -> [UInt8] { String(value).utf8.map { $0 - UInt8(ascii: "0") } }

    private static func sum(_ left: Decimal128, _ right: Decimal128, negatingRight: Bool) -> Decimal128 {
        let rightIsNegative = right.isNegative != negatingRight
        if left.isInfinite || right.isInfinite {
            if left.isInfinite, right.isInfinite, left.isNegative != rightIsNegative { return .nan }
            return infinity(left.isInfinite ? left.isNegative : rightIsNegative)
        }
        var (high, low) = ((left.parts, left.isNegative), (right.parts, rightIsNegative))
        if low.0.coefficient == 0 { return rounded(high.1, digits(high.0.coefficient), exponent: high.0.exponent) }
        if high.0.coefficient == 0 { return rounded(low.1, digits(low.0.coefficient), exponent: low.0.exponent) }
        if high.0.exponent < low.0.exponent { swap(&high, &low) }
        var shift = high.0.exponent - low.0.exponent
        if shift > widest {
            // Too far apart to touch the digits that count; it only decides how they are rounded.
            shift = widest
            low.0 = (1, high.0.exponent - widest)
        }
        let aligned = digits(high.0.coefficient) + [UInt8](repeating: 0, count: shift)
        let other = digits(low.0.coefficient)
        if high.1 == low.1 { return rounded(high.1, sum(aligned, other), exponent: low.0.exponent) }
        let isLess = isLess(aligned, other)
        let difference = isLess ? difference(other, aligned) : difference(aligned, other)
        return rounded(isLess ? low.1 : high.1, difference, exponent: low.0.exponent)
    }

    /// More than twice the digits that are kept.
    private static let widest = 72

    private static func padded(_ digits: [UInt8], _ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count - digits.count) + digits }

    private static func isLess(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        let count = max(left.count, right.count)
        return padded(left, count).lexicographicallyPrecedes(padded(right, count))
    }

    private static func sum(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
        let count = max(left.count, right.count) + 1
        var (result, other, carry) = (padded(left, count), padded(right, count), UInt8(0))
        for index in result.indices.reversed() {
            let digit = result[index] + other[index] + carry
            (result[index], carry) = (digit % 10, digit / 10)
        }
        other.removeAll()
        return result
    }

    /// - Precondition: the first is not smaller.
    private static func difference(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
        let count = max(left.count, right.count)
        var (result, borrow) = (padded(left, count).map { Int($0) }, 0)
        let other = padded(right, count)
        for index in result.indices.reversed() {
            let digit = result[index] - Int(other[index]) - borrow
            (result[index], borrow) = (digit < 0 ? digit + 10 : digit, digit < 0 ? 1 : 0)
        }
        return result.map { UInt8($0) }
    }

    private static func product(_ left: Decimal128, _ right: Decimal128) -> Decimal128 {
        let isNegative = left.isNegative != right.isNegative
        if left.isInfinite || right.isInfinite { return left.isZero || right.isZero ? .nan : infinity(isNegative) }
        let (a, b) = (left.parts, right.parts)
        let (l, r) = (digits(a.coefficient), digits(b.coefficient))
        var result = [Int](repeating: 0, count: l.count + r.count)
        for i in l.indices {
            for j in r.indices { result[i + j + 1] += Int(l[i]) * Int(r[j]) }
        }
        for index in result.indices.dropFirst().reversed() {
            result[index - 1] += result[index] / 10
            result[index] %= 10
        }
        return rounded(isNegative, result.map { UInt8($0) }, exponent: a.exponent + b.exponent)
    }

    private static func quotient(_ left: Decimal128, _ right: Decimal128) -> Decimal128 {
        let isNegative = left.isNegative != right.isNegative
        if left.isInfinite { return right.isInfinite ? .nan : infinity(isNegative) }
        let (a, b) = (left.parts, right.parts)
        if right.isInfinite { return rounded(isNegative, [], exponent: 0) }
        if b.coefficient == 0 { return a.coefficient == 0 ? .nan : infinity(isNegative) }
        var (result, remainder): ([UInt8], UInt128) = ([], 0)
        let numerator = digits(a.coefficient)
        for index in 0..<numerator.count + widest {
            remainder = remainder * 10 + UInt128(index < numerator.count ? numerator[index] : 0)
            result.append(UInt8(remainder / b.coefficient))
            remainder %= b.coefficient
        }
        if remainder > 0 { result.append(1) }
        return rounded(isNegative, result, exponent: a.exponent - b.exponent - widest - (remainder > 0 ? 1 : 0))
    }
}
