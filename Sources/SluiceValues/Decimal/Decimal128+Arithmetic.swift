/// Arithmetic in 34 digits. Results that fit are exact; others are rounded, halves to even. NaN and the infinities follow IEEE 754. An
/// operation takes a few microseconds.
extension Decimal128 {
    package static func + (lhs: Decimal128, rhs: Decimal128) -> Decimal128 { lhs.adding(rhs, isNegated: false) }
    package static func - (lhs: Decimal128, rhs: Decimal128) -> Decimal128 { lhs.adding(rhs, isNegated: true) }

    package static func * (lhs: Decimal128, rhs: Decimal128) -> Decimal128 {
        if lhs.isNaN || rhs.isNaN { return nan }
        let isNegative = lhs.isNegative != rhs.isNegative
        if lhs.isInfinite || rhs.isInfinite {
            return lhs.isZero || rhs.isZero ? nan : infinity(isNegative)
        }
        let (left, right) = (lhs.parts, rhs.parts)
        var product = Digits(left.coefficient)
        product.multiply(by: Digits(right.coefficient))
        return rounded(isNegative, product, exponent: left.exponent + right.exponent)
    }

    package static func / (lhs: Decimal128, rhs: Decimal128) -> Decimal128 {
        if lhs.isNaN || rhs.isNaN { return nan }
        let isNegative = lhs.isNegative != rhs.isNegative
        if lhs.isInfinite { return rhs.isInfinite ? nan : infinity(isNegative) }
        let (left, right) = (lhs.parts, rhs.parts)
        if rhs.isInfinite { return rounded(isNegative, Digits(0), exponent: 0) }
        if right.coefficient == 0 { return left.coefficient == 0 ? nan : infinity(isNegative) }
        var (quotient, isExact) = (Digits(left.coefficient), false)
        var exponent = left.exponent - right.exponent
        // With twice the kept digits, the digits beyond the quotient only matter as zero or not zero.
        quotient.shift(by: 70)
        exponent -= 70
        isExact = quotient.divide(by: right.coefficient)
        if isExact {
            while exponent < left.exponent - right.exponent, quotient.dropZero() { exponent += 1 }
        } else {
            // A sticky digit: the remainder is not zero, so a half is never taken for exact.
            quotient.shift(by: 1, adding: 1)
            exponent -= 1
        }
        return rounded(isNegative, quotient, exponent: exponent)
    }

    private func adding(_ other: Decimal128, isNegated: Bool) -> Decimal128 {
        if isNaN || other.isNaN { return .nan }
        let otherIsNegative = other.isNegative != isNegated
        if isInfinite || other.isInfinite {
            if isInfinite && other.isInfinite && isNegative != otherIsNegative { return .nan }
            return Decimal128.infinity(isInfinite ? isNegative : otherIsNegative)
        }
        var (left, right) = (parts, other.parts)
        let exponent = Swift.min(left.exponent, right.exponent)
        // A number so small that it only decides the rounding of the other is replaced by one nearer to it. This bounds the digits.
        left = Decimal128.lifted(left, beside: right)
        right = Decimal128.lifted(right, beside: left)
        let common = Swift.min(left.exponent, right.exponent)
        var (sum, second) = (Digits(left.coefficient), Digits(right.coefficient))
        sum.shift(by: left.exponent - common)
        second.shift(by: right.exponent - common)
        var isNegative = self.isNegative
        if isNegative == otherIsNegative {
            sum.add(second)
        } else if sum.isLess(than: second) {
            second.subtract(sum)
            (sum, isNegative) = (second, otherIsNegative)
        } else {
            sum.subtract(second)
            if sum.isZero { isNegative = false }
        }
        return Decimal128.rounded(isNegative, sum, exponent: sum.isZero ? exponent : common)
    }

    private typealias Parts = (coefficient: UInt128, exponent: Int)

    /// Returns the number, or one nearer to the other that changes their sum in the same way.
    private static func lifted(_ number: Parts, beside other: Parts) -> Parts {
        if number.coefficient == 0 {
            return (0, other.coefficient == 0 ? number.exponent : Swift.max(number.exponent, other.exponent - 36))
        }
        if other.coefficient == 0 || other.exponent - number.exponent < 110 { return number }
        return (1, other.exponent - 72)
    }

    private static func infinity(_ isNegative: Bool) -> Decimal128 { isNegative ? .negativeInfinity : .infinity }

    private static func rounded(_ isNegative: Bool, _ digits: Digits, exponent: Int) -> Decimal128 {
        Decimal128(rounding: "\(isNegative ? "-" : "")\(digits.text)E\(exponent)") ?? .nan
    }

    /// A natural number of any length: decimal digits, least significant first.
    private struct Digits {
        private var digits: [UInt8] = []

        init(_ value: UInt128) {
            var rest = value
            while rest > 0 {
                digits.append(UInt8(rest % 10))
                rest /= 10
            }
        }

        var isZero: Bool { digits.allSatisfy { $0 == 0 } }
        var text: String { digits.isEmpty ? "0" : String(decoding: digits.reversed().map { $0 + UInt8(ascii: "0") }, as: UTF8.self) }

        private func digit(_ index: Int) -> UInt8 { index < digits.count ? digits[index] : 0 }

        mutating func shift(by count: Int, adding last: UInt8 = 0) {
            if count == 0 { return }
            digits.insert(contentsOf: repeatElement(0, count: count), at: 0)
            digits[0] = last
        }

        /// Removes the last digit if it is 0.
        /// - Returns: `false` if it is not.
        mutating func dropZero() -> Bool {
            guard digits.count > 1, digits[0] == 0 else { return false }
            digits.removeFirst()
            return true
        }

        func isLess(than other: Digits) -> Bool {
            for index in (0..<Swift.max(digits.count, other.digits.count)).reversed() where digit(index) != other.digit(index) {
                return digit(index) < other.digit(index)
            }
            return false
        }

        mutating func add(_ other: Digits) {
            var carry: UInt8 = 0
            for index in 0...Swift.max(digits.count, other.digits.count) {
                let sum = digit(index) + other.digit(index) + carry
                if index == digits.count { digits.append(0) }
                (digits[index], carry) = (sum % 10, sum / 10)
            }
        }

        /// - Precondition: `other` is not larger.
        mutating func subtract(_ other: Digits) {
            var borrow: UInt8 = 0
            for index in digits.indices {
                let part = other.digit(index) + borrow
                borrow = digits[index] < part ? 1 : 0
                digits[index] = digits[index] + borrow * 10 - part
            }
        }

        mutating func multiply(by other: Digits) {
            var result = [Int](repeating: 0, count: digits.count + other.digits.count + 1)
            for (i, left) in digits.enumerated() {
                for (j, right) in other.digits.enumerated() { result[i + j] += Int(left) * Int(right) }
            }
            for index in result.indices.dropLast() {
                result[index + 1] += result[index] / 10
                result[index] %= 10
            }
            digits = result.map { UInt8($0) }
        }

        /// - Returns: `true` if the remainder is zero.
        mutating func divide(by divisor: UInt128) -> Bool {
            var rest: UInt128 = 0
            for index in digits.indices.reversed() {
                rest = rest * 10 + UInt128(digits[index])
                digits[index] = UInt8(rest / divisor)
                rest %= divisor
            }
            return rest == 0
        }
    }
}
