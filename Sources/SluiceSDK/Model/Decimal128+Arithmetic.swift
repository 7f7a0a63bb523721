public import Foundation
import SluiceCore
import SluiceValues

/// Arithmetic with 34 digits. Results are exact if they fit, otherwise rounded half to even.
/// NaN and the infinities follow IEEE 754. An operation takes a few microseconds.
extension Decimal128 {
    public static func + (lhs: Decimal128, rhs: Decimal128) -> Decimal128 { Decimal128(lhs.bits + rhs.bits) }
    public static func - (lhs: Decimal128, rhs: Decimal128) -> Decimal128 { Decimal128(lhs.bits - rhs.bits) }
    public static func += (lhs: inout Decimal128, rhs: Decimal128) { lhs = lhs + rhs }
    public static func -= (lhs: inout Decimal128, rhs: Decimal128) { lhs = lhs - rhs }
    public static func *= (lhs: inout Decimal128, rhs: Decimal128) { lhs = lhs * rhs }
    public static func /= (lhs: inout Decimal128, rhs: Decimal128) { lhs = lhs / rhs }
    public static prefix func - (value: Decimal128) -> Decimal128 {
        Decimal128(SluiceValues.Decimal128(high: value.bits.high ^ (1 << 63), low: value.bits.low))
    }

    public static func * (lhs: Decimal128, rhs: Decimal128) -> Decimal128 { Decimal128(lhs.bits * rhs.bits) }
    public static func / (lhs: Decimal128, rhs: Decimal128) -> Decimal128 { Decimal128(lhs.bits / rhs.bits) }

    /// The value without its sign.
    public var magnitude: Decimal128 { Decimal128(SluiceValues.Decimal128(high: bits.high & ~(1 << 63), low: bits.low)) }

    public func distance(to other: Decimal128) -> Decimal128 { other - self }
    public func advanced(by n: Decimal128) -> Decimal128 { self + n }

    static var nan: Decimal128 { Decimal128(SluiceValues.Decimal128.nan) }
}

/// Conversions.
extension Decimal128 {
    /// Converts an integer, a float, a double, a text, a decimal or a Boolean.
    /// Anything else ends the program, and so does a text that is not a number.
    public init(value: Any) {
        if let number = Decimal128(untyped: value) {
            self = number
        } else if value is String {
            throwRealmException("Cannot convert value '\(value)' to Decimal128")
        } else {
            throwRealmException("Cannot convert value '\(value)' of type '\(type(of: value))' to Decimal128")
        }
    }

    /// Converts a number or a text; nil for anything else.
    init?(untyped value: Any) {
        switch value {
        case let value as Decimal128: self = value
        case let value as any BinaryInteger where Int64(exactly: value) != nil: self.init(Int(Int64(truncatingIfNeeded: value)))
        case let value as any BinaryInteger: self.init(stringLiteral: "\(value)")
        case let value as Double: self.init(value)
        case let value as Float: self.init(stringLiteral: "\(value)")
        case let value as Decimal: self.init(stringLiteral: "\(value)")
        case let value as Bool: self.init(value ? 1 : 0)
        case let value as String:
            guard let bits = SluiceValues.Decimal128(value) else { return nil }
            self.init(bits)
        case let value as NSNumber: self.init(stringLiteral: value.stringValue)
        default: return nil
        }
    }

    public init(number: NSNumber) { self.init(value: number as Any) }

    /// Converts an integer; nil if it has more than 34 digits.
    public init?<T: BinaryInteger>(exactly source: T) {
        guard let bits = SluiceValues.Decimal128("\(source)") else { return nil }
        self.init(bits)
    }

    /// The least finite number.
    public static var min: Decimal128 { -max }
    /// The greatest finite number.
    public static var max: Decimal128 {
        Decimal128(SluiceValues.Decimal128("9.999999999999999999999999999999999E+6144") ?? .infinity)
    }

    /// The value as Foundation's decimal, which has a smaller range; NaN outside of it.
    public var decimalValue: Decimal { Decimal(string: stringValue) ?? .nan }
    public var isSignaling: Bool { isNaN }
    public var isSignalingNaN: Bool { isNaN }
}
