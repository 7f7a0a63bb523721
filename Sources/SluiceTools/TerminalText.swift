import SluiceCore

/// Foreign text for a terminal.
package enum TerminalText {
    /// Returns the text with U+FFFD in place of characters that move the cursor, change colours or reverse the text direction.
    package static func shown(_ text: String) -> String {
        var shown = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            shown.append(scalar.changesOtherText && scalar != "\t" ? "\u{FFFD}" : scalar)
        }
        return String(shown)
    }
}
