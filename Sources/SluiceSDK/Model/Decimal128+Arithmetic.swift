public import Foundation
import SluiceCore

/// Arithmetic in 34 digits: results are exact where they fit and else rounded, halves to even. NaN and the infinities are
/// IEEE 754's. A few microseconds each.
extension Decimal128 {
    public static func + (lhs: Decimal128, rhs: Decimal128) -> Decimal128 { lhs.adding(rhs, isNegated: false) }
    public static func - (lhs: Decimal128, rhs: Decimal128) -> Decimal128 { lhs.adding(rhs, isNegated: true) }
    public static func += (lhs: inout Decimal128, rhs: Decimal128) { lhs = lhs + rhs }
    public static func -= (lhs: inout Decimal128, rhs: Decimal128) { lhs = lhs - rhs }
    public static func *= (lhs: inout Decimal128, rhs: Decimal128) { lhs = lhs * rhs }
    public static func /= (lhs: inout Decimal128, rhs: Decimal128) { lhs = lhs / rhs }
    public static prefix func - (value: Decimal128) -> Decimal128 {
        Decimal128(SluiceCore.Decimal128(high: value.bits.high ^ (1 << 63), low: value.bits.low))
    }

    public static func * (lhs: Decimal128, rhs: Decimal128) -> Decimal128 {
        if lhs.isNaN || rhs.isNaN { return nan }
        let isNegative = lhs.bits.isNegative != rhs.bits.isNegative
        if lhs.bits.isInfinite || rhs.bits.isInfinite {
            return lhs.bits.isZero || rhs.bits.isZero ? nan : infinity(isNegative)
        }
        let (left, right) = (lhs.bits.parts, rhs.bits.parts)
        var product = Digits(left.coefficient)
        product.multiply(by: Digits(right.coefficient))
        return rounded(isNegative, product, exponent: left.exponent + right.exponent)
    }

    public static func / (lhs: Decimal128, rhs: Decimal128) -> Decimal128 {
        if lhs.isNaN || rhs.isNaN { return nan }
        let isNegative = lhs.bits.isNegative != rhs.bits.isNegative
        if lhs.bits.isInfinite { return rhs.bits.isInfinite ? nan : infinity(isNegative) }
        let (left, right) = (lhs.bits.parts, rhs.bits.parts)
        if rhs.bits.isInfinite { return rounded(isNegative, Digits(0), exponent: 0) }
        if right.coefficient == 0 { return left.coefficient == 0 ? nan : infinity(isNegative) }
        var (quotient, isExact) = (Digits(left.coefficient), false)
        var exponent = left.exponent - right.exponent
        // Twice as many digits as are kept, so that what is rounded away is known but for whether anything follows.
        quotient.shift(by: 70)
        exponent -= 70
        isExact = quotient.divide(by: right.coefficient)
        if isExact {
            while exponent < left.exponent - right.exponent, quotient.dropZero() { exponent += 1 }
        } else {
            quotient.shift(by: 1, adding: 1)
            exponent -= 1
        }
        return rounded(isNegative, quotient, exponent: exponent)
    }

    /// Without the sign.
    public var magnitude: Decimal128 { Decimal128(SluiceCore.Decimal128(high: bits.high & ~(1 << 63), low: bits.low)) }

    public func distance(to other: Decimal128) -> Decimal128 { other - self }
    public func advanced(by n: Decimal128) -> Decimal128 { self + n }

    private func adding(_ other: Decimal128, isNegated: Bool) -> Decimal128 {
        if isNaN || other.isNaN { return .nan }
        let otherIsNegative = other.bits.isNegative != isNegated
        if bits.isInfinite || other.bits.isInfinite {
            if bits.isInfinite && other.bits.isInfinite && bits.isNegative != otherIsNegative { return .nan }
            return Decimal128.infinity(bits.isInfinite ? bits.isNegative : otherIsNegative)
        }
        var (left, right) = (bits.parts, other.bits.parts)
        let exponent = Swift.min(left.exponent, right.exponent)
        // A number so small that it only decides how the other is rounded is as good as the smallest one that does.
        left = Decimal128.lifted(left, beside: right)
        right = Decimal128.lifted(right, beside: left)
        let common = Swift.min(left.exponent, right.exponent)
        var (sum, second) = (Digits(left.coefficient), Digits(right.coefficient))
        sum.shift(by: left.exponent - common)
        second.shift(by: right.exponent - common)
        var isNegative = bits.isNegative
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

    /// The number itself, or one that changes a sum with the other in the same way and is not so far from it.
    private static func lifted(_ number: Parts, beside other: Parts) -> Parts {
        if number.coefficient == 0 {
            return (0, other.coefficient == 0 ? number.exponent : Swift.max(number.exponent, other.exponent - 36))
        }
        if other.coefficient == 0 || other.exponent - number.exponent < 110 { return number }
        return (1, other.exponent - 72)
    }

    private static func infinity(_ isNegative: Bool) -> Decimal128 { Decimal128(isNegative ? .negativeInfinity : .infinity) }

    private static func rounded(_ isNegative: Bool, _ digits: Digits, exponent: Int) -> Decimal128 {
        Decimal128(SluiceCore.Decimal128(rounding: "\(isNegative ? "-" : "")\(digits.text)E\(exponent)") ?? .nan)
    }

    static var nan: Decimal128 { Decimal128(SluiceCore.Decimal128.nan) }

    /// A whole number of any length: decimal digits, the last first.
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

        /// Takes a last digit away that is 0. - Returns: false when there is none.
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

        /// - Precondition: the other is not larger.
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

        /// - Returns: whether nothing is left over.
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

/// Conversions.
extension Decimal128 {
    /// Takes an integer, a float, a double, a text, a decimal or a boolean. Anything else, or a text that is no number, ends the program.
    public init(value: Any) {
        switch value {
        case let value as Decimal128: self = value
        case let value as any BinaryInteger where Int64(exactly: value) != nil: self.init(Int(Int64(truncatingIfNeeded: value)))
        case let value as any BinaryInteger: self.init(stringLiteral: "\(value)")
        case let value as Double: self.init(value)
        case let value as Float: self.init(stringLiteral: "\(value)")
        case let value as Decimal: self.init(stringLiteral: "\(value)")
        case let value as Bool: self.init(value ? 1 : 0)
        case let value as String:
            guard let bits = SluiceCore.Decimal128(value) else { throwRealmException("Cannot convert value '\(value)' to Decimal128") }
            self.init(bits)
        case let value as NSNumber: self.init(stringLiteral: value.stringValue)
        default: throwRealmException("Cannot convert value '\(value)' of type '\(type(of: value))' to Decimal128")
        }
    }

    public init(number: NSNumber) { self.init(value: number as Any) }

    /// An integer; nil when it has more than 34 digits.
    public init?<T: BinaryInteger>(exactly source: T) {
        guard let bits = SluiceCore.Decimal128("\(source)") else { return nil }
        self.init(bits)
    }

    /// The least number.
    public static var min: Decimal128 { -max }
    /// The largest number.
    public static var max: Decimal128 {
        Decimal128(SluiceCore.Decimal128("9.999999999999999999999999999999999E+6144") ?? .infinity)
    }

    /// As Foundation's decimal, which has a smaller range.
    public var decimalValue: Decimal { Decimal(string: stringValue) ?? .nan }
    public var isSignaling: Bool { isNaN }
    public var isSignalingNaN: Bool { isNaN }
}
