import SluiceCore

/// Turns a predicate in the format of `filter("age > %@ AND name BEGINSWITH $0", …)` into a query text: placeholders are
/// replaced by constants, words that only predicates have by those of the query language.
struct PredicateFormat {
    private let characters: [Character]
    private var position = 0
    private var arguments: [Any]
    private var output = ""

    /// - Throws: `queryArgument` when arguments are missing or no constants.
    static func text(_ format: String, _ arguments: [Any]) throws(SluiceError) -> String {
        var formatter = PredicateFormat(characters: Array(format), arguments: arguments)
        try formatter.run()
        return formatter.output
    }

    private init(characters: [Character], arguments: [Any]) {
        self.characters = characters
        self.arguments = arguments
    }

    private var next = 0

    private mutating func run() throws(SluiceError) {
        while position < characters.count {
            let character = characters[position]
            switch character {
            case "\"", "'": copyString(quote: character)
            case "%": try placeholder()
            case "$": try numbered()
            default:
                if character.isLetter || character == "_" || character == "@" { word() } else { copy() }
            }
        }
    }

    private mutating func copy() {
        output.append(characters[position])
        position += 1
    }

    private mutating func copyString(quote: Character) {
        copy()
        while position < characters.count, characters[position] != quote { copy() }
        if position < characters.count { copy() }
    }

    /// `%@`, `%K`, `%d` and its longer forms, `%f`.
    private mutating func placeholder() throws(SluiceError) {
        position += 1
        var kind = ""
        while position < characters.count, characters[position].isLetter || characters[position] == "@" {
            kind.append(characters[position])
            position += 1
            if "@KdifuD".contains(kind.last ?? " ") { break }
        }
        let argument = try take(next, "%\(kind)")
        next += 1
        if kind == "K" { output += "\(argument)" } else { output += try constant(argument, "%\(kind)") }
    }

    /// `$0`; anything else that begins with a dollar sign is a name.
    private mutating func numbered() throws(SluiceError) {
        let digits = characters[(position + 1)...].prefix { $0.isNumber }
        guard let index = Int(String(digits)) else { return copy() }
        position += 1 + digits.count
        output += try constant(try take(index, "$\(index)"), "$\(index)")
    }

    private func take(_ index: Int, _ placeholder: String) throws(SluiceError) -> Any {
        guard arguments.indices.contains(index) else {
            throw SluiceError(.queryArgument, "The placeholder \(placeholder) has no argument; there are \(arguments.count).")
        }
        return arguments[index]
    }

    private func constant(_ argument: Any, _ placeholder: String) throws(SluiceError) -> String {
        guard let value = Value(any: argument) else {
            throw SluiceError(.queryArgument, "The argument \(argument) of \(placeholder) is no value that a query can hold.")
        }
        return RQLText.literal(value)
    }

    /// Copies a word, or its counterpart in the query language.
    private mutating func word() {
        var word = ""
        while position < characters.count,
            characters[position].isLetter || characters[position].isNumber || "_@".contains(characters[position])
        {
            word.append(characters[position])
            position += 1
        }
        switch word {
        case "YES": output += "true"
        case "NO": output += "false"
        case "@allKeys": output += "@keys"
        case "@allValues": output += "@values"
        default: output += word
        }
    }
}
