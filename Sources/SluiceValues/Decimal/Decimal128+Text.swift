/// The text form, as BSON and Realm print it.
extension Decimal128: CustomStringConvertible {
    /// Digits with a point while the exponent is small (`-0.0010`), scientific otherwise (`1.5E+10`), `NaN`, `Infinity`.
    ///
    /// Keeps trailing zeros, which are part of the encoding.
    package var description: String {
        if isNaN { return "NaN" }
        let sign = isNegative ? "-" : ""
        if isInfinite { return sign + "Infinity" }
        let (coefficient, exponent) = parts
        let digits = String(coefficient)
        let adjusted = exponent + digits.count - 1
        if exponent > 0 || adjusted < -6 { return sign + Decimal128.scientific(digits, adjusted) }
        if exponent == 0 { return sign + digits }
        let point = digits.count + exponent
        if point > 0 { return sign + digits.prefix(point) + "." + digits.dropFirst(point) }
        return sign + "0." + String(repeating: "0", count: -point) + digits
    }

    private static func scientific(_ digits: String, _ adjusted: Int) -> String {
        let mantissa = digits.count == 1 ? digits : "\(digits.prefix(1)).\(digits.dropFirst())"
        return "\(mantissa)E\(adjusted < 0 ? "-" : "+")\(abs(adjusted))"
    }

    /// Reads a decimal number (`-12.50`, `1e-7`), or `NaN`, `Infinity` or `Inf` in any case.
    ///
    /// Returns nil if the text is not a number. Also returns nil if the number needs rounding: over 34 significant digits, or an exponent
    /// out of range. `init(rounding:)` accepts those.
    @inlinable
    package init?(_ text: some StringProtocol) {
        guard let value = text.withBytes({ Decimal128(utf8: $0) }) else { return nil }
        self = value
    }

    /// Reads the same from UTF-8.
    @usableFromInline
    package init?(utf8 text: UnsafeBufferPointer<UInt8>) {
        if let short = Decimal128.short(text) {
            self = short
            return
        }
        guard let parsed = Decimal128.parse(text) else { return nil }
        switch parsed {
        case .special(let value): self = value
        case .number(let digits):
            guard let (value, isExact) = digits.encoded(), isExact else { return nil }
            self = value
        }
    }

    /// Reads like `init(_:)` and rounds excess digits, halves to even. A number too large becomes infinite, one too small zero.
    @inlinable
    package init?(rounding text: some StringProtocol) {
        guard let value = text.withBytes({ Decimal128(rounding: $0) }) else { return nil }
        self = value
    }

    @usableFromInline
    package init?(rounding text: UnsafeBufferPointer<UInt8>) {
        if let short = Decimal128.short(text) {
            self = short
            return
        }
        guard let parsed = Decimal128.parse(text) else { return nil }
        switch parsed {
        case .special(let value): self = value
        case .number(let digits):
            self = digits.encoded()?.value ?? (digits.isNegative ? .negativeInfinity : .infinity)
        }
    }

    /// The fast path for up to 18 digits without an exponent, the form of nearly every text. Returns nil for any other text.
    private static func short(_ text: UnsafeBufferPointer<UInt8>) -> Decimal128? {
        var (isNegative, coefficient, digits, point) = (false, UInt64(0), 0, -1)
        for (offset, byte) in text.enumerated() {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                coefficient = coefficient * 10 + UInt64(byte - UInt8(ascii: "0"))
                digits += 1
                if digits > 18 { return nil }
            case UInt8(ascii: ".") where point < 0: point = digits
            case UInt8(ascii: "-") where offset == 0: isNegative = true
            case UInt8(ascii: "+") where offset == 0: break
            default: return nil
            }
        }
        if digits == 0 { return nil }
        return Decimal128(isNegative: isNegative, coefficient: UInt128(coefficient), exponent: point < 0 ? 0 : point - digits)
    }

    private enum Parsed {
        case special(Decimal128)
        case number(Digits)
    }

    private static func parse(_ text: UnsafeBufferPointer<UInt8>) -> Parsed? {
        var bytes = Array(text)[...]
        let isNegative = bytes.first == UInt8(ascii: "-")
        if isNegative || bytes.first == UInt8(ascii: "+") { bytes = bytes.dropFirst() }
        switch String(decoding: bytes, as: UTF8.self).lowercased() {
        case "nan": return .special(.nan)
        case "inf", "infinity": return .special(isNegative ? .negativeInfinity : .infinity)
        default: return Digits(bytes, isNegative: isNegative).map { .number($0) }
        }
    }
}

/// A decimal number of any length, before encoding into 34 digits.
private struct Digits {
    var isNegative: Bool
    /// Digits 0 to 9 without leading zeros.
    var digits: [UInt8] = []
    var exponent = 0

    init?(_ text: ArraySlice<UInt8>, isNegative: Bool) {
        self.isNegative = isNegative
        var rest = text
        var (count, seenPoint) = (0, false)
        while let byte = rest.first {
            if byte == UInt8(ascii: "."), !seenPoint {
                seenPoint = true
            } else if (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) {
                count += 1
                if byte != UInt8(ascii: "0") || !digits.isEmpty { digits.append(byte - UInt8(ascii: "0")) }
                if seenPoint { exponent -= 1 }
            } else {
                break
            }
            rest = rest.dropFirst()
        }
        guard count > 0 else { return nil }
        if rest.isEmpty { return }
        guard rest.first == UInt8(ascii: "e") || rest.first == UInt8(ascii: "E"),
            let written = Int(String(decoding: rest.dropFirst(), as: UTF8.self)), (-999_999...999_999).contains(written)
        else { return nil }
        exponent += written
    }

    /// Returns the nearest decimal128, or nil if the number is too large.
    func encoded() -> (value: Decimal128, isExact: Bool)? {
        var (digits, exponent, isExact) = (self.digits, self.exponent, true)
        if digits.isEmpty {
            exponent = min(max(exponent, Decimal128.minimumExponent), Decimal128.maximumExponent)
            return (Decimal128(isNegative: isNegative, coefficient: 0, exponent: exponent), true)
        }
        let excess = max(digits.count - 34, Decimal128.minimumExponent - exponent)
        if excess > 0 {
            isExact = Digits.round(&digits, dropping: excess)
            exponent += excess
            // Rounding 99…9 up adds a digit.
            if digits.count > 34 { (digits, exponent) = (digits.dropLast(), exponent + 1) }
        }
        while exponent > Decimal128.maximumExponent, digits.count < 34 {
            digits.append(0)
            exponent -= 1
        }
        guard exponent <= Decimal128.maximumExponent else { return nil }
        let coefficient = digits.reduce(UInt128(0)) { $0 * 10 + UInt128($1) }
        return (Decimal128(isNegative: isNegative, coefficient: coefficient, exponent: exponent), isExact)
    }

    /// Drops digits at the end, rounding halves to even.
    /// - Returns: `true` if only zeros were dropped.
    private static func round(_ digits: inout [UInt8], dropping count: Int) -> Bool {
        // The number is less than a tenth of the last place kept, so it rounds to zero.
        guard count <= digits.count else {
            digits = []
            return false
        }
        let kept = digits.count - count
        let dropped = Array(digits[kept...])
        digits = Array(digits[..<kept])
        if dropped.allSatisfy({ $0 == 0 }) { return true }
        let isAboveHalf = dropped[0] > 5 || (dropped[0] == 5 && dropped.dropFirst().contains { $0 != 0 })
        let isHalf = dropped[0] == 5 && !isAboveHalf
        guard isAboveHalf || (isHalf && !(digits.last ?? 0).isMultiple(of: 2)) else { return false }
        var index = digits.count - 1
        while index >= 0, digits[index] == 9 {
            digits[index] = 0
            index -= 1
        }
        if index >= 0 { digits[index] += 1 } else { digits.insert(1, at: 0) }
        return false
    }
}
