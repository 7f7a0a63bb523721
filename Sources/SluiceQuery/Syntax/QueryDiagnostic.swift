package import SluiceCore

/// A position in a query's text, in bytes from its beginning.
///
/// All positions are equal, so that syntax trees compare without them.
package struct SourcePosition: Hashable, Sendable {
    package var offset: Int

    package init(_ offset: Int) { self.offset = offset }

    /// The position of a part that was not parsed.
    package static let unknown = SourcePosition(0)

    package static func == (_: SourcePosition, _: SourcePosition) -> Bool { true }
    package func hash(into _: inout Hasher) {}
}

/// Converts a position in a query to an error that shows it.
package struct QueryDiagnostic: Sendable {
    private let source: String

    package init(source: String) { self.source = source }

    /// Returns the error for a position: line, column, the sentence, the line of text and a caret below the position.
    package func error(
        _ code: ErrorCode, _ sentence: String, at position: SourcePosition, fix: String? = nil
    ) -> SluiceError {
        let utf8 = Array(source.utf8)
        let offset = min(max(position.offset, 0), utf8.count)
        let lineStart = (utf8[..<offset].lastIndex(of: UInt8(ascii: "\n")) ?? -1) + 1
        let lineEnd = utf8[offset...].firstIndex(of: UInt8(ascii: "\n")) ?? utf8.count
        let line = utf8[..<offset].count { $0 == UInt8(ascii: "\n") } + 1
        let column = utf8[lineStart..<offset].count { $0 & 0xC0 != 0x80 } + 1
        let shownBefore = String(decoding: utf8[lineStart..<offset].suffix(4 * QueryDiagnostic.reach + 3), as: UTF8.self).unicodeScalars
            .suffix(QueryDiagnostic.reach)
        let shownAfter = String(decoding: utf8[offset..<lineEnd].prefix(4 * QueryDiagnostic.reach), as: UTF8.self).unicodeScalars
            .prefix(QueryDiagnostic.reach)
        let excerpt = QueryDiagnostic.visible(shownBefore) + QueryDiagnostic.visible(shownAfter)
        let caret = String(repeating: " ", count: shownBefore.count) + "^"
        return SluiceError(
            code, "line \(line), column \(column): \(sentence)\n    \(excerpt)\n    \(caret)\n", fix: fix)
    }

    /// Returns the error for an argument that the caller did not pass.
    func missingArgument(_ number: Int, of count: Int, at position: SourcePosition) -> SluiceError {
        let given =
            switch count {
            case 0: "no arguments are provided"
            case 1: "only 1 argument is provided"
            default: "only \(count) arguments are provided"
            }
        return error(.queryArgument, "Request for argument at index \(number) but \(given)", at: position)
    }

    /// Returns the error for a quantifier before an argument that is not a list.
    func quantifiedArgument(_ number: Int, _ value: Value, at position: SourcePosition) -> SluiceError {
        error(
            .queryArgument, "ANY/ALL/NONE are only allowed on arguments which contain a list, but argument $\(number) is '\(value)'",
            at: position)
    }

    /// The number of characters of the line that are shown on each side of the position.
    private static let reach = 60

    /// Returns the text with control characters as blanks, so that the caret remains below its position.
    static func visible(_ scalars: some Sequence<Unicode.Scalar>) -> String {
        var text = String.UnicodeScalarView()
        for scalar in scalars { text.append(scalar.value < 32 || (127..<160).contains(scalar.value) ? " " : scalar) }
        return String(text)
    }
}

/// The parts of an error from `QueryDiagnostic`, for programs.
package struct QueryErrorParts: Hashable, Sendable {
    /// The line from 1.
    package var line: Int
    /// The column from 1, in characters.
    package var column: Int
    /// The message without the position and the excerpt.
    package var sentence: String

    /// Returns nil for an error without a position in a text.
    package init?(_ error: SluiceError) {
        let message = error.message
        guard message.hasPrefix("line "), let colon = message.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let words = message[..<colon].split(separator: " ")
        guard words.count == 4, words[2] == "column", let line = Int(words[1].dropLast()), let column = Int(words[3]) else { return nil }
        // The line of text and the caret follow the sentence, each on a line of its own.
        let rest = message[colon...].dropFirst(2).split(separator: "\n", omittingEmptySubsequences: false).dropLast(3)
        (self.line, self.column, sentence) = (line, column, rest.joined(separator: "\n"))
    }
}

/// An error of a part of a query. The caller adds the query's text and throws a `SluiceError` that shows the place.
struct QueryError: Error {
    /// The reason, or the construct as the subject of "is not supported".
    let text: String
    let position: SourcePosition

    init(_ text: String, at position: SourcePosition = .unknown) {
        self.text = text
        self.position = position
    }
}
