package import SluiceCore

/// A place in a query's text, in bytes from its beginning.
///
/// All places are equal: two syntax trees are the same query wherever their parts stood.
package struct SourcePosition: Hashable, Sendable {
    package var offset: Int

    package init(_ offset: Int) { self.offset = offset }

    /// Of a part that was made, not parsed.
    package static let unknown = SourcePosition(0)

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

    /// An argument that nobody gave.
    func missingArgument(_ number: Int, of count: Int, at position: SourcePosition) -> SluiceError {
        let given =
            switch count {
            case 0: "no arguments are provided"
            case 1: "only 1 argument is provided"
            default: "only \(count) arguments are provided"
            }
        return error(.queryArgument, "Request for argument at index \(number) but \(given)", at: position)
    }

    /// A quantifier before an argument that is no list.
    func quantifiedArgument(_ number: Int, _ value: Value, at position: SourcePosition) -> SluiceError {
        error(
            .queryArgument, "ANY/ALL/NONE are only allowed on arguments which contain a list, but argument $\(number) is '\(value)'",
            at: position)
    }

    /// How many characters of the line are shown on each side of the place.
    private static let reach = 60

    /// Control characters as blanks, so that the caret stays below its place.
    static func visible(_ scalars: some Sequence<Unicode.Scalar>) -> String {
        var text = String.UnicodeScalarView()
        for scalar in scalars { text.append(scalar.value < 32 || (127..<160).contains(scalar.value) ? " " : scalar) }
        return String(text)
    }
}

/// The parts of an error that `QueryDiagnostic` made, for programs.
package struct QueryErrorParts: Hashable, Sendable {
    /// From 1; columns count characters.
    package var line: Int
    package var column: Int
    /// The message without its place and the picture of it.
    package var sentence: String

    /// Nil for an error that has no place in a text.
    package init?(_ error: SluiceError) {
        let message = error.message
        guard message.hasPrefix("line "), let colon = message.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let words = message[..<colon].split(separator: " ")
        guard words.count == 4, words[2] == "column", let line = Int(words[1].dropLast()), let column = Int(words[3]) else { return nil }
        // Behind the sentence are the line of text and the caret, each on a line of its own.
        let rest = message[colon...].dropFirst(2).split(separator: "\n", omittingEmptySubsequences: false).dropLast(3)
        (self.line, self.column, sentence) = (line, column, rest.joined(separator: "\n"))
    }
}
