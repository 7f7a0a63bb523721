import SluiceValues

/// A text that equals another one if both have the same bytes.
///
/// Swift's `String` equals every canonically equivalent text: a Kelvin sign equals a "K", an "é" of one code point one of two. PostgreSQL
/// and the query language compare bytes, so comparisons that determine permissions must do the same.
public struct ByteText: Hashable, Sendable, CustomStringConvertible, ExpressibleByStringInterpolation {
    /// The text, unchanged.
    public let text: String

    public init(_ text: String) { self.text = text }
    public init(stringLiteral text: String) { self.text = text }

    public static func == (lhs: ByteText, rhs: ByteText) -> Bool { lhs.text.hasSameBytes(as: rhs.text) }

    public func hash(into hasher: inout Hasher) { text.hashBytes(into: &hasher) }

    public var description: String { text }
}
