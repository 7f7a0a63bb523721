import SluiceCore

/// Unfinished SQL: text of this module, and values that are numbered when the whole is assembled. A part can therefore be dropped.
///
/// Only literals of the source, numbers and quoted names become text. Values become parameters.
struct SQLText: ExpressibleByStringInterpolation, Sendable {
    enum Part: Sendable {
        case text(String)
        case parameter(SQLParameter)
    }

    private(set) var parts: [Part] = []

    init(stringLiteral value: String) { parts = [.text(value)] }
    init(stringInterpolation: Interpolation) { parts = stringInterpolation.parts }
    /// Creates the text of a quoted name, or of an expression of the caller.
    init(name: String) { parts = [.text(name)] }

    struct Interpolation: StringInterpolationProtocol {
        var parts: [Part] = []

        init(literalCapacity: Int, interpolationCount: Int) {}

        mutating func appendLiteral(_ literal: String) { if !literal.isEmpty { parts.append(.text(literal)) } }
        mutating func appendInterpolation(_ text: SQLText) { parts.append(contentsOf: text.parts) }
        mutating func appendInterpolation(name: String) { parts.append(.text(name)) }
        mutating func appendInterpolation(_ number: Int) { parts.append(.text(String(number))) }

        mutating func appendInterpolation(_ parts: [SQLText], separator: StaticString) {
            for (index, part) in parts.enumerated() {
                if index > 0 { self.parts.append(.text("\(separator)")) }
                self.parts.append(contentsOf: part.parts)
            }
        }

        /// Appends a placeholder for a value. In PostgreSQL it has a cast, so that its type never depends on the context.
        mutating func appendInterpolation(parameter value: Value, _ type: PropertyType) {
            parts.append(.parameter(SQLParameter(value: value, type: type)))
        }
    }

    var parameterCount: Int {
        parts.count { part in
            if case .parameter = part { true } else { false }
        }
    }

    /// Returns the text with its parameters numbered from `first`.
    func condition(_ dialect: SQLDialect, first: Int) -> SQLCondition {
        var condition = SQLCondition(text: "", parameters: [])
        for part in parts {
            switch part {
            case .text(let text): condition.text += text
            case .parameter(let parameter):
                condition.text += dialect.placeholder(first + condition.parameters.count, parameter)
                condition.parameters.append(parameter)
            }
        }
        return condition
    }
}

/// An SQL condition for a condition of the language.
struct SQLPiece: Sendable {
    /// True if the condition holds, and only then if exact. Otherwise false or NULL.
    var text: SQLText
    var isExact: Bool
    /// The constant result, or nil if it depends on the row.
    var constant: Bool?
    /// The number of comparisons, and of the levels of parentheses.
    var leaves = 1
    var depth = 0

    init(_ text: SQLText, isExact: Bool = true, depth: Int = 0) {
        self.text = text
        self.isExact = isExact
        self.depth = depth
    }

    private init(constant: Bool, isExact: Bool) {
        text = constant ? "TRUE" : "FALSE"
        self.constant = constant
        self.isExact = isExact
        leaves = 0
    }

    static func constant(_ value: Bool) -> SQLPiece { SQLPiece(constant: value, isExact: true) }
    /// A superset of any condition: it selects every row.
    static let unknown = SQLPiece(constant: true, isExact: false)

    /// The same condition, marked as a superset.
    var weakened: SQLPiece {
        var piece = self
        piece.isExact = false
        return piece
    }

    /// The complement. Only valid for an exact piece: the complement of a superset is a subset.
    var negated: SQLPiece {
        if let constant { return .constant(!constant) }
        var piece = self
        piece.text = "(\(text)) IS NOT TRUE"
        piece.depth += 1
        return piece
    }

    static func all(_ pieces: [SQLPiece]) -> SQLPiece {
        joined(pieces, neutral: true) { "(\($0, separator: " AND "))" }
    }

    static func any(_ pieces: [SQLPiece]) -> SQLPiece {
        joined(pieces, neutral: false) { "(\($0, separator: " OR "))" }
    }

    private static func joined(_ pieces: [SQLPiece], neutral: Bool, _ join: ([SQLText]) -> SQLText) -> SQLPiece {
        // An exact FALSE determines an AND with unknown parts. An OR with an unknown part is unknown.
        if let decided = pieces.first(where: { $0.constant == !neutral && $0.isExact }) { return decided }
        if let decided = pieces.first(where: { $0.constant == !neutral }) { return decided }
        let isExact = pieces.allSatisfy(\.isExact)
        let rest = pieces.filter { $0.constant == nil }
        guard let first = rest.first else { return SQLPiece(constant: neutral, isExact: isExact) }
        var piece = rest.count == 1 ? first : SQLPiece(join(rest.map(\.text)))
        if rest.count > 1 {
            piece.leaves = rest.reduce(0) { $0 + $1.leaves }
            piece.depth = 1 + (rest.map(\.depth).max() ?? 0)
        }
        piece.isExact = isExact
        return piece
    }
}
