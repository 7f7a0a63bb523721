/// A token of the text. Offsets are in bytes.
struct Token: Sendable {
    let kind: TokenKind
    /// The kind's keyword or symbol, or 0. It answers the parser's most frequent question without reading `kind`.
    let code: UInt8
    let start: Int32
    let end: Int32

    init(kind: TokenKind, start: Int, end: Int) {
        self.kind = kind
        self.start = Int32(start)
        self.end = Int32(end)
        code =
            switch kind {
            case .keyword(let keyword): keyword.rawValue
            case .symbol(let symbol): symbol.rawValue
            default: 0
            }
    }
}

enum TokenKind: Sendable {
    case end
    case name(String)
    case keyword(Keyword)
    case symbol(Symbol)
    case literal(Literal)
    /// An integer without a sign, which may also be an index, a limit or a coordinate.
    case natural(Int64)
    /// `$0`
    case argument(Int)
    /// `$K0`
    case pathArgument(Int)
    /// `L1:2`
    case rowKey(table: Int64?, row: Int64)
    /// `[c]`
    case caseFlag
    case meta(MetaWord)
}

/// Words with a meaning. Their spelling rules differ, see `Keyword.init(spelling:)`.
enum Keyword: UInt8, Hashable, Sendable, CaseIterable {
    case and = 64
    case or, not, `in`, any, all, none, beginsWith, endsWith, contains, like, text, between, geoWithin, sort
    case distinct, limit, obj, subquery, geoBox, geoPolygon, geoCircle, truePredicate, falsePredicate
    case ascending, descending, binary, first, last, size

    /// `true` if the grammar also permits the word as a property's name.
    var mayBeName: Bool {
        switch self {
        case .beginsWith, .endsWith, .contains, .like, .between, .sort, .distinct, .limit, .ascending, .descending, .in,
            .text, .binary, .first, .last, .size:
            true
        default: false
        }
    }

    /// `true` if an operand or a condition may be followed by the word, or begin with it.
    var isOperator: Bool {
        switch self {
        case .sort, .distinct, .limit, .ascending, .descending, .binary, .first, .last, .size: false
        default: true
        }
    }
}

extension Keyword {
    /// Creates the keyword of a word by the language's three spelling rules, or returns nil for a name.
    init?(spelling word: String) {
        if let exact = Keyword.exact[word] {
            self = exact
        } else if let folded = Keyword.anyCase[word.lowercasedASCII] {
            self = folded
        } else {
            return nil
        }
    }

    /// `true` if some keyword or constant begins with the letter and has the length. This excludes most names without a lookup.
    static func mayBegin(with letter: UInt8, length: Int) -> Bool {
        guard Lexer.isLetter(letter), length < 32 else { return false }
        return lengths[Int(letter | 32) - 97] & 1 << UInt32(length) != 0
    }

    private static let lengths: [UInt32] = {
        var lengths = [UInt32](repeating: 0, count: 26)
        let constants = ["true", "false", "null", "nil", "inf", "infinity", "nan"]
        for word in constants + exact.keys + anyCase.keys {
            guard let first = word.utf8.first else { continue }
            lengths[Int(first | 32) - 97] |= 1 << UInt32(word.utf8.count)
        }
        return lengths
    }()

    private static let exact: [String: Keyword] = [
        "not": .not, "NOT": .not, "in": .in, "IN": .in, "any": .any, "ANY": .any, "some": .any, "SOME": .any,
        "all": .all, "ALL": .all, "none": .none, "NONE": .none, "first": .first, "FIRST": .first, "last": .last,
        "LAST": .last, "size": .size, "SIZE": .size,
    ]

    private static let anyCase: [String: Keyword] = [
        "and": .and, "or": .or, "beginswith": .beginsWith, "endswith": .endsWith, "contains": .contains, "like": .like,
        "text": .text, "between": .between, "geowithin": .geoWithin, "sort": .sort, "distinct": .distinct,
        "limit": .limit, "obj": .obj, "subquery": .subquery, "geobox": .geoBox, "geopolygon": .geoPolygon,
        "geocircle": .geoCircle, "truepredicate": .truePredicate, "falsepredicate": .falsePredicate,
        "asc": .ascending, "ascending": .ascending, "desc": .descending, "descending": .descending, "bin": .binary,
        "binary": .binary,
    ]
}

enum Symbol: UInt8, Hashable, Sendable {
    case equal = 1
    case notEqual, less, lessOrEqual, greater, greaterOrEqual, openParenthesis, closeParenthesis, openBrace, closeBrace, openBracket
    case closeBracket, comma, dot, plus, minus, times, divide

    /// The symbol's text.
    var text: String {
        switch self {
        case .equal: "=="
        case .notEqual: "!="
        case .less: "<"
        case .lessOrEqual: "<="
        case .greater: ">"
        case .greaterOrEqual: ">="
        case .openParenthesis: "("
        case .closeParenthesis: ")"
        case .openBrace: "{"
        case .closeBrace: "}"
        case .openBracket: "["
        case .closeBracket: "]"
        case .comma: ","
        case .dot: "."
        case .plus: "+"
        case .minus: "-"
        case .times: "*"
        case .divide: "/"
        }
    }
}

/// Words that begin with `@`.
enum MetaWord: String, Hashable, Sendable {
    case count = "@count"
    case max = "@max"
    case min = "@min"
    case sum = "@sum"
    case average = "@avg"
    case links = "@links"
    case type = "@type"
    case keys = "@keys"
    case values = "@values"
}

extension String {
    /// The text with A to Z in lower case. Keywords have no other letters: the Kelvin sign is not a "k".
    var lowercasedASCII: String {
        String(decoding: utf8.map { $0 >= 65 && $0 <= 90 ? $0 | 32 : $0 }, as: UTF8.self)
    }
}
