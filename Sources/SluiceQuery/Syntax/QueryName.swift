/// Names of properties as the language writes them.
package enum QueryName {
    /// The name, between backquotes if it could be read as an operator, a quantifier or a constant.
    ///
    /// Words of suffixes, such as `sort` and `size`, are names where an operand stands and stay as they are.
    package static func quoted(_ name: String) -> String {
        // `@keys` and its like are words behind a property and no names.
        if name.utf8.first == UInt8(ascii: "@") { return name }
        if needsQuotes(name) || name.utf8.contains(where: isBlank) { return "`\(name)`" }
        guard let first = name.utf8.first, Keyword.mayBegin(with: first, length: name.utf8.count) else { return name }
        return Keyword(spelling: name).map { $0.isOperator ? "`\(name)`" : name } ?? name
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
