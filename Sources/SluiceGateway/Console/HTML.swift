import SluiceCore

/// A piece of a page.
///
/// A literal in the source is markup. An interpolated value is escaped, unless it is an `HTML` itself. There is no other way to add text,
/// so foreign text is never markup, in content or in a quoted attribute.
package struct HTML: Sendable, ExpressibleByStringInterpolation {
    package private(set) var text: String

    package init(stringLiteral value: String) { text = value }
    package init(stringInterpolation: StringInterpolation) { text = stringInterpolation.text }

    package static func += (left: inout HTML, right: HTML) { left.text += right.text }

    package struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var text = ""

        package init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity * 2) }

        package mutating func appendLiteral(_ literal: String) { text += literal }
        package mutating func appendInterpolation(_ value: some StringProtocol) { text += HTML.escape(value) }
        package mutating func appendInterpolation(_ value: some BinaryInteger) { text += HTML.escape("\(value)") }
        package mutating func appendInterpolation(_ piece: HTML) { text += piece.text }
        package mutating func appendInterpolation(_ pieces: [HTML]) { for piece in pieces { text += piece.text } }
    }

    /// Returns the text escaped for content and quoted attributes. Invalid characters and those that reverse the text direction are
    /// replaced with U+FFFD.
    package static func escape(_ text: some StringProtocol) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            case "\t", "\n": escaped.unicodeScalars.append(scalar)
            case _ where scalar.changesOtherText: escaped += "\u{FFFD}"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
