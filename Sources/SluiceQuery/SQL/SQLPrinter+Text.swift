import SluiceCore
import SluiceValues

/// Text operators and case folding.
extension SQLPrinter {
    func text(_ subject: SQLText, _ test: Test) -> SQLPiece {
        if case .string(let text) = test.value { return characters(subject, text, test) }
        guard case .binary(let bytes) = test.value else { return .constant(false) }
        return self.bytes(subject, bytes, test)
    }

    private func characters(_ subject: SQLText, _ text: String, _ test: Test) -> SQLPiece {
        if text.isEmpty, test.comparison != .like { return SQLPiece("\(subject) IS NOT NULL") }
        let constant: SQLText = "\(parameter: test.value, .string)"
        switch (test.comparison, dialect) {
        case (.beginsWith, .postgres): return SQLPiece("starts_with(\(subject), \(constant))")
        case (.beginsWith, .sqlite): return beginning(subject, text, isFolded: test.foldsCase)
        case (.endsWith, .postgres): return SQLPiece("right(\(subject), \(text.unicodeScalars.count)) = \(constant)")
        // As bytes: SQLite counts characters up to a NUL only.
        case (.endsWith, .sqlite):
            return SQLPiece("substr(CAST(\(subject) AS BLOB), -\(text.utf8.count)) = \(parameter: .binary(Array(text.utf8)), .binary)")
        case (.contains, .postgres): return SQLPiece("strpos(\(subject), \(constant)) > 0")
        case (.contains, .sqlite): return SQLPiece("instr(\(subject), \(constant)) > 0")
        default: return SQLPiece("\(subject) LIKE \(parameter: .string(SQLPrinter.likePattern(text)), .string)")
        }
    }

    /// Tests a beginning. If the column itself is compared, the test is a range, which an index supports.
    private func beginning(_ subject: SQLText, _ text: String, isFolded: Bool) -> SQLPiece {
        guard !isFolded, let end = SQLPrinter.firstBehind(text) else {
            return SQLPiece("instr(\(subject), \(parameter: .string(text), .string)) = 1")
        }
        return SQLPiece(
            "(\(subject) >= \(parameter: .string(text), .string) AND \(subject) < \(parameter: .string(end), .string))", depth: 1)
    }

    /// Returns the first text in code point order after all that begin with `text`, or nil if there is none.
    private static func firstBehind(_ text: String) -> String? {
        var scalars = text.unicodeScalars
        while let last = scalars.popLast() {
            let next = last.value == 0xD7FF ? 0xE000 : last.value + 1
            if let scalar = Unicode.Scalar(next) {
                scalars.append(scalar)
                return String(scalars)
            }
        }
        return nil
    }

    private func bytes(_ subject: SQLText, _ bytes: [UInt8], _ test: Test) -> SQLPiece {
        if bytes.isEmpty { return SQLPiece("\(subject) IS NOT NULL") }
        let constant: SQLText = "\(parameter: test.value, .binary)"
        switch (test.comparison, dialect) {
        case (.beginsWith, .postgres): return SQLPiece("substring(\(subject) for \(bytes.count)) = \(constant)")
        case (.beginsWith, .sqlite): return SQLPiece("substr(\(subject), 1, \(bytes.count)) = \(constant)")
        case (.endsWith, .postgres):
            return SQLPiece("substring(\(subject) from octet_length(\(subject)) - \(bytes.count - 1)) = \(constant)")
        case (.endsWith, .sqlite): return SQLPiece("substr(\(subject), -\(bytes.count)) = \(constant)")
        case (_, .postgres): return SQLPiece("position(\(constant) in \(subject)) > 0")
        case (_, .sqlite): return SQLPiece("instr(\(subject), \(constant)) > 0")
        }
    }

    // MARK: Patterns

    /// Converts the language's `*` and `?` to LIKE's `%` and `_`.
    private static func likePattern(_ pattern: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in pattern.unicodeScalars {
            switch scalar {
            case "*": result.append("%")
            case "?": result.append("_")
            case "%", "_", "\\":
                result.append("\\")
                result.append(scalar)
            default: result.append(scalar)
            }
        }
        return String(result)
    }

    /// Returns the pattern for SQLite's GLOB, or nil if GLOB rejects it or interprets it differently.
    func glob(_ value: SQLText, _ pattern: String, _ foldsCase: Bool) -> SQLText? {
        guard dialect == .sqlite, pattern.utf8.count <= 10_000, !pattern.utf8.contains(0) else { return nil }
        if foldsCase, SQLPrinter.lettersBeyondASCII(in: [.string(pattern)]).count > 4 { return nil }
        let subject = foldsCase ? folded(value, for: [.string(pattern)]) : value
        // By scalar: for SQLite a bracket before a combining mark is a bracket.
        var escaped = String.UnicodeScalarView()
        for scalar in pattern.unicodeScalars {
            if scalar == "[" { escaped.append(contentsOf: "[[]".unicodeScalars) } else { escaped.append(scalar) }
        }
        return "\(subject) GLOB \(parameter: .string(String(escaped)), .string)"
    }

    // MARK: Letters

    /// Returns the expression with the letters of `[c]` folded. SQLite folds only A-Z. Of the other letters only those in the constants
    /// need folding, since each has one folded form.
    func folded(_ expression: SQLText, for constants: [Value]) -> SQLText {
        if dialect == .postgres { return "translate(\(expression), '\(name: Folding.upper)', '\(name: Folding.lower)')" }
        return SQLPrinter.lettersBeyondASCII(in: constants).reduce("lower(\(expression))") { text, letter in
            "replace(\(text), '\(name: String(letter.upper))', '\(name: String(letter.lower))')"
        }
    }

    static func lettersBeyondASCII(in constants: [Value]) -> [(upper: Character, lower: Character)] {
        var used: Set<Unicode.Scalar> = []
        for case .string(let text) in constants { used.formUnion(text.unicodeScalars) }
        return zip(Folding.upper, Folding.lower).filter { upper, lower in
            !upper.isASCII && lower.unicodeScalars.allSatisfy { used.contains($0) }
        }.map { (upper: $0, lower: $1) }
    }
}

/// Tests adapted to the values and operators of databases.
enum StorableTest {
    /// Adapts a test to PostgreSQL's types. Its text has no NUL, and a timestamptz has whole microseconds and a range. A `notEqual` test
    /// with null accepts any value.
    static func postgres(_ test: Test) -> FittedTest {
        switch test.value {
        case .string(let text):
            guard let cut = text.unicodeScalars.firstIndex(of: "\0") else { return .test(test) }
            return between(test, .string(String(text.unicodeScalars[..<cut])))
        case .timestamp(let time): return postgres(test, time)
        default: return .test(test)
        }
    }

    /// 4714-11-24 BC, and the end of the year 294276.
    private static let times = (first: Int64(-210_866_803_200), end: Int64(9_224_318_016_000))

    private static func postgres(_ test: Test, _ time: Timestamp) -> FittedTest {
        if time.seconds >= times.end { return outside(test, isAbove: true) }
        if time.seconds < times.first { return outside(test, isAbove: false) }
        guard time.nanoseconds % 1_000 != 0 else { return .test(test) }
        let down = time.nanoseconds < 0 ? (time.nanoseconds / 1_000 - 1) * 1_000 : time.nanoseconds / 1_000 * 1_000
        let floor =
            down == -1_000_000_000
            ? Timestamp(seconds: time.seconds - 1, nanoseconds: 0) : Timestamp(seconds: time.seconds, nanoseconds: down)
        return between(test, .timestamp(floor))
    }

    /// Returns the test for a value that cannot be stored and is just above `lower`.
    private static func between(_ test: Test, _ lower: Value) -> FittedTest {
        switch test.comparison {
        case .notEqual: .always
        case .less, .lessOrEqual: .test(Test(.lessOrEqual, lower))
        case .greater, .greaterOrEqual: .test(Test(.greater, lower))
        case .equal, .isIn, .beginsWith, .endsWith, .contains, .like: .never
        }
    }

    private static func outside(_ test: Test, isAbove: Bool) -> FittedTest {
        switch test.comparison {
        case .notEqual: .always
        case .less, .lessOrEqual: isAbove ? .test(Test(.notEqual, .null)) : .never
        case .greater, .greaterOrEqual: isAbove ? .never : .test(Test(.notEqual, .null))
        case .equal, .isIn, .beginsWith, .endsWith, .contains, .like: .never
        }
    }

    /// Returns LIKE with stars only at its ends as the equivalent operator.
    static func plain(_ test: Test) -> Test {
        guard test.comparison == .like else { return test }
        switch test.value {
        case .string(let text):
            guard let (comparison, rest) = plain(text.utf8) else { return test }
            return Test(comparison, .string(String(decoding: rest, as: UTF8.self)), foldsCase: test.foldsCase)
        case .binary(let bytes):
            guard let (comparison, rest) = plain(bytes) else { return test }
            return Test(comparison, .binary(rest), foldsCase: test.foldsCase)
        default: return test
        }
    }

    private static func plain(_ pattern: some BidirectionalCollection<UInt8>) -> (TestOperator, [UInt8])? {
        let star = UInt8(ascii: "*")
        let isOpen = (start: pattern.first == star, end: pattern.last == star)
        let rest = Array(Array(pattern.drop { $0 == star }.reversed()).drop { $0 == star }.reversed())
        if rest.contains(where: { $0 == star || $0 == UInt8(ascii: "?") }) { return nil }
        switch isOpen {
        case (true, true): return (.contains, rest)
        case (true, false): return (.endsWith, rest)
        case (false, true): return (.beginsWith, rest)
        case (false, false): return (.equal, rest)
        }
    }
}
