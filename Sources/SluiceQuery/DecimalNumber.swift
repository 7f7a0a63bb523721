import SluiceCore

/// A decimal128 taken apart, for comparing, reading and printing. A coefficient has at most 34 digits.
struct DecimalNumber: Sendable {
    enum Kind: Sendable { case finite, infinite, nan }

    var kind = Kind.finite
    var isNegative = false
    var coefficient: UInt128 = 0
    var exponent = 0

    static let digits = 34
    static let bias = 6176
    static let maximumExponent = 6111
    private static let limit = powerOfTen(digits)

    /// 10 to the power of 0 to 38.
    static func powerOfTen(_ power: Int) -> UInt128 {
        var result: UInt128 = 1
        for _ in 0..<power { result *= 10 }
        return result
    }

    init() {}

    init(_ decimal: Decimal128) { self.init(high: decimal.high, low: decimal.low) }

    init(high: UInt64, low: UInt64) {
        isNegative = high >> 63 == 1
        if high >> 61 & 3 == 3 {
            // Infinity, NaN, or a coefficient that is too long, which means zero.
            let special = high >> 58 & 31
            kind = special == 0b11110 ? .infinite : special == 0b11111 ? .nan : .finite
            exponent = Int(high >> 47 & 0x3fff) - DecimalNumber.bias
            return
        }
        exponent = Int(high >> 49 & 0x3fff) - DecimalNumber.bias
        coefficient = UInt128(high & 0x1_ffff_ffff_ffff) << 64 | UInt128(low)
        if coefficient >= DecimalNumber.limit { coefficient = 0 }
    }

    init(_ value: Int64) {
        isNegative = value < 0
        coefficient = UInt128(value.magnitude)
    }

    var decimal: Decimal128 {
        let sign: UInt64 = isNegative ? 1 << 63 : 0
        switch kind {
        case .nan: return Decimal128(high: sign | 0b11111 << 58, low: 0)
        case .infinite: return Decimal128(high: sign | 0b11110 << 58, low: 0)
        case .finite:
            let high = sign | UInt64(exponent + DecimalNumber.bias) << 49 | UInt64(coefficient >> 64)
            return Decimal128(high: high, low: UInt64(truncatingIfNeeded: coefficient))
        }
    }

    var isZero: Bool { kind == .finite && coefficient == 0 }

    private static func digitCount(_ value: UInt128) -> Int {
        var rest = value
        var count = 0
        while rest > 0 {
            rest /= 10
            count += 1
        }
        return count
    }

    /// The order of two numbers; nil when one is NaN.
    static func compare(_ left: DecimalNumber, _ right: DecimalNumber) -> Order? {
        if left.kind == .nan || right.kind == .nan { return nil }
        let leftSign = left.isZero ? 0 : left.isNegative ? -1 : 1
        let rightSign = right.isZero ? 0 : right.isNegative ? -1 : 1
        if leftSign != rightSign { return leftSign < rightSign ? .less : .greater }
        if leftSign == 0 { return .equal }
        let magnitudes = compareMagnitudes(left, right)
        return leftSign > 0 ? magnitudes : magnitudes.reversed
    }

    private static func compareMagnitudes(_ left: DecimalNumber, _ right: DecimalNumber) -> Order {
        if left.kind == .infinite || right.kind == .infinite {
            return left.kind == right.kind ? .equal : left.kind == .infinite ? .greater : .less
        }
        let leftTop = digitCount(left.coefficient) + left.exponent
        let rightTop = digitCount(right.coefficient) + right.exponent
        if leftTop != rightTop { return leftTop < rightTop ? .less : .greater }
        // Equal positions of the first digit: the exponents differ by less than the 34 digits.
        let lowest = min(left.exponent, right.exponent)
        let l = left.coefficient * powerOfTen(left.exponent - lowest)
        let r = right.coefficient * powerOfTen(right.exponent - lowest)
        return l < r ? .less : l > r ? .greater : .equal
    }
}

extension DecimalNumber {
    /// Reads digits with an optional sign, fraction and exponent, `inf`, `infinity` or `nan`; rounds to 34 digits, half to even.
    /// Nil for anything else, and for numbers beyond the range.
    init?(_ text: some StringProtocol) {
        var rest = Array(text.utf8)[...]
        if let sign = rest.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") {
            isNegative = sign == UInt8(ascii: "-")
            rest = rest.dropFirst()
        }
        switch String(decoding: rest, as: UTF8.self).lowercased() {
        case "inf", "infinity":
            kind = .infinite
            return
        case "nan":
            kind = .nan
            return
        default: break
        }
        guard readDigits(&rest), readExponent(&rest), rest.isEmpty, fitExponent() else { return nil }
    }

    private mutating func readDigits(_ rest: inout ArraySlice<UInt8>) -> Bool {
        var hasDigit = false
        var isFraction = false
        var significant = 0
        var dropped: UInt8?
        var isTail = false
        while let byte = rest.first {
            if byte == UInt8(ascii: "."), !isFraction {
                isFraction = true
            } else if Lexer.isDigit(byte) {
                hasDigit = true
                if significant < DecimalNumber.digits {
                    coefficient = coefficient * 10 + UInt128(byte - 48)
                    if coefficient > 0 { significant += 1 }
                    if isFraction { exponent -= 1 }
                } else {
                    if dropped == nil { dropped = byte - 48 } else if byte > 48 { isTail = true }
                    if !isFraction { exponent += 1 }
                }
            } else {
                break
            }
            rest = rest.dropFirst()
        }
        if let dropped, dropped > 5 || (dropped == 5 && (isTail || coefficient & 1 == 1)) { coefficient += 1 }
        return hasDigit
    }

    private mutating func readExponent(_ rest: inout ArraySlice<UInt8>) -> Bool {
        guard let letter = rest.first, letter | 32 == UInt8(ascii: "e") else { return true }
        guard let power = Int(String(decoding: rest.dropFirst(), as: UTF8.self)), power.magnitude < 1_000_000 else { return false }
        exponent += power
        rest = rest.suffix(0)
        return true
    }

    /// Brings the exponent into range where that loses no digit.
    private mutating func fitExponent() -> Bool {
        if coefficient == DecimalNumber.limit {
            coefficient /= 10
            exponent += 1
        }
        if coefficient == 0 {
            exponent = min(max(exponent, -DecimalNumber.bias), DecimalNumber.maximumExponent)
        }
        while exponent < -DecimalNumber.bias, coefficient % 10 == 0 {
            coefficient /= 10
            exponent += 1
        }
        while exponent > DecimalNumber.maximumExponent, coefficient < DecimalNumber.limit / 10 {
            coefficient *= 10
            exponent -= 1
        }
        return (-DecimalNumber.bias...DecimalNumber.maximumExponent).contains(exponent)
    }

    /// Equal numbers made equal in representation: no trailing zeros, no negative zero.
    var normalized: DecimalNumber {
        guard kind == .finite else {
            var plain = DecimalNumber()
            plain.kind = kind
            plain.isNegative = kind == .infinite && isNegative
            return plain
        }
        guard coefficient > 0 else { return DecimalNumber() }
        var number = self
        while number.coefficient % 10 == 0, number.exponent < DecimalNumber.maximumExponent {
            number.coefficient /= 10
            number.exponent += 1
        }
        return number
    }

    /// A literal of the query language that reads back to this number.
    var text: String {
        switch kind {
        case .nan: return "nan"
        case .infinite: return isNegative ? "-inf" : "inf"
        case .finite: break
        }
        let sign = isNegative ? "-" : ""
        let digits = "\(coefficient)"
        if exponent == 0 { return sign + digits }
        guard exponent < 0, exponent > -DecimalNumber.digits else { return "\(sign)\(digits)e\(exponent)" }
        let padded = String(repeating: "0", count: max(0, 1 - exponent - digits.utf8.count)) + digits
        return "\(sign)\(padded.dropLast(-exponent)).\(padded.suffix(-exponent))"
    }
}
