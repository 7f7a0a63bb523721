package import SluiceCore

/// A place in a query's text, in bytes from its beginning.
///
/// All places are equal: two syntax trees are the same query wherever their parts stood.
package struct SourcePosition: Hashable, Sendable {
    package var offset: Int

    package init(_ offset: Int) { self.offset = offset }

    package static func == (_: SourcePosition, _: SourcePosition) -> Bool { true }
    package func hash(into _: inout Hasher) {}
}

/// Turns a place in a query into an error that shows it.
package struct QueryDiagnostic: Sendable {
    private let source: String

    package init(source: String) { self.source = source }

    /// The error for a place: line, column, the sentence, the line of text and a caret below the place.
    package func error(
        _ code: ErrorCode, _ sentence: String, at position: SourcePosition, fix: String? = nil
    ) -> SluiceError {
        let utf8 = Array(source.utf8)
        let offset = min(max(position.offset, 0), utf8.count)
        let lineStart = (utf8[..<offset].lastIndex(of: UInt8(ascii: "\n")) ?? -1) + 1
        let lineEnd = utf8[offset...].firstIndex(of: UInt8(ascii: "\n")) ?? utf8.count
        let line = utf8[..<offset].count { $0 == UInt8(ascii: "\n") } + 1
        let before = Array(String(decoding: utf8[lineStart..<offset], as: UTF8.self).unicodeScalars)
        let after = Array(String(decoding: utf8[offset..<lineEnd], as: UTF8.self).unicodeScalars)
        let shownBefore = before.suffix(QueryDiagnostic.reach)
        let excerpt = QueryDiagnostic.visible(shownBefore) + QueryDiagnostic.visible(after.prefix(QueryDiagnostic.reach))
        let caret = String(repeating: " ", count: shownBefore.count) + "^"
        return SluiceError(
            code, "line \(line), column \(before.count + 1): \(sentence)\n    \(excerpt)\n    \(caret)\n", fix: fix)
    }

    /// How many characters of the line are shown on each side of the place.
    private static let reach = 60

    /// Control characters as blanks, so that the caret stays below its place.
    private static func visible(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
        var text = String.UnicodeScalarView()
        for scalar in scalars { text.append(scalar.value < 32 ? " " : scalar) }
        return String(text)
    }
}
