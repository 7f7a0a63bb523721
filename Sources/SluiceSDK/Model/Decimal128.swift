package import SluiceValues

/// A decimal number of 34 digits (IEEE 754-2008 decimal128).
public struct Decimal128: Hashable, Comparable, Codable, Sendable, CustomStringConvertible, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringLiteral
{
    package let bits: SluiceValues.Decimal128

    /// Zero.
    public init() { bits = .zero }
    package init(_ bits: SluiceValues.Decimal128) { self.bits = bits }
    public init(_ value: Int) { bits = SluiceValues.Decimal128(Int64(value)) }
    /// Converts the shortest decimal text of the double.
    public init(_ value: Double) { bits = SluiceValues.Decimal128(double: value) }

    /// Parses a decimal number, `NaN` or `Infinity`.
    /// - Throws: `Realm.Error.invalidInput` for anything else.
    public init(string: String) throws {
        guard let bits = SluiceValues.Decimal128(string) else {
            throw Realm.Error(.invalidInput, "'\(string)' is not a decimal number of at most 34 digits.")
        }
        self.bits = bits
    }

    public init(integerLiteral value: Int64) { bits = SluiceValues.Decimal128(value) }
    public init(floatLiteral value: Double) { bits = SluiceValues.Decimal128(double: value) }
    /// Parses a literal; NaN if it is not a number.
    public init(stringLiteral value: String) { bits = SluiceValues.Decimal128(value) ?? .nan }

    public var stringValue: String { bits.description }
    public var description: String { bits.description }
    /// The nearest double.
    public var doubleValue: Double { bits.double }
    public var isNaN: Bool { bits.isNaN }

    /// Compares numerically: 1.0 equals 1.
    public static func == (lhs: Decimal128, rhs: Decimal128) -> Bool { SluiceValues.Decimal128.compare(lhs.bits, rhs.bits) == 0 }
    public static func < (lhs: Decimal128, rhs: Decimal128) -> Bool { SluiceValues.Decimal128.compare(lhs.bits, rhs.bits) < 0 }
    public func hash(into hasher: inout Hasher) { hasher.combine(doubleValue) }

    /// Decodes a text or a number.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let text = try? container.decode(String.self) {
            try self.init(string: text)
        } else if let integer = try? container.decode(Int64.self) {
            self.init(SluiceValues.Decimal128(integer))
        } else {
            self.init(try container.decode(Double.self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(stringValue)
    }
}
