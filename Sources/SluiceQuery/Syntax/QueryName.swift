/// Names of properties as the language writes them.
package enum QueryName {
    /// The name between backquotes if it is a word of the language.
    ///
    /// Words such as `sort` may stand for properties in some places; quoted they may in all.
    package static func quoted(_ name: String) -> String { isWord(name) ? "`\(name)`" : name }

    /// `true` if the text without quotes is a keyword or a constant.
    private static func isWord(_ name: String) -> Bool {
        guard let first = name.utf8.first, Keyword.mayBegin(with: first, length: name.utf8.count) else { return false }
        return Lexer.constant(name) != nil || Keyword(spelling: name) != nil
    }

    /// `true` if the name, its blanks escaped, would be read as something else wherever it stands.
    static func needsQuotes(_ name: String) -> Bool {
        guard let first = name.utf8.first else { return false }
        guard Lexer.startsName(first), name.utf8.allSatisfy({ Lexer.continuesName($0) || isBlank($0) }) else { return true }
        if first == UInt8(ascii: "$") {
            // Arguments: `$0`, `$K0`.
            let digits = name.utf8.dropFirst(name.utf8.dropFirst().first == UInt8(ascii: "K") ? 2 : 1)
            if !digits.isEmpty, digits.allSatisfy(Lexer.isDigit) { return true }
        }
        guard Keyword.mayBegin(with: first, length: name.utf8.count) else { return false }
        return Lexer.constant(name) != nil || Keyword(spelling: name)?.mayBeName == false
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 32 || byte == 9 || byte == 10 || byte == 13 }
}
