/// A text that equals another one when the two have the same bytes.
///
/// Swift's `String` is equal to each text that is canonically equivalent: a Kelvin sign to a "K", an "é" of one code point to one of two.
/// PostgreSQL and the query language compare bytes, and so does whatever decides about rights.
public struct ByteText: Hashable, Sendable, CustomStringConvertible, ExpressibleByStringInterpolation {
    public let text: String

    public init(_ text: String) { self.text = text }
    public init(stringLiteral text: String) { self.text = text }

    public static func == (lhs: ByteText, rhs: ByteText) -> Bool {
        lhs.text.utf8.count == rhs.text.utf8.count && lhs.text.utf8.elementsEqual(rhs.text.utf8)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(text.utf8.count)
        for byte in text.utf8 { hasher.combine(byte) }
    }

    public var description: String { text }
}
