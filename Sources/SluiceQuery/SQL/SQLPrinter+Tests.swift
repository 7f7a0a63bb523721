import SluiceCore

extension SQLPrinter {
    /// A test of an expression of a type.
    mutating func test(_ expression: String, _ type: PropertyType, _ test: Test) throws(SluiceError) -> String {
        if test.value.isNull { return test.comparison == .notEqual ? "\(expression) IS NOT NULL" : "\(expression) IS NULL" }
        if let reason = refusal(type, test) {
            throw SluiceError(.queryUnsupported, "\(reason) has no exact form in this database.", fix: "Evaluate the condition on rows.")
        }
        if test.comparison == .isIn, case .list(let members) = test.value { return membership(expression, type, members, test.foldsCase) }
        var test = test
        if dialect == .postgres {
            switch SQLPrinter.stored(test) {
            case .test(let stored): test = stored
            case .always: return constant(true)
            default: return constant(false)
            }
        }
        return comparison(expression, type, test)
    }

    private func refusal(_ type: PropertyType, _ test: Test) -> String? {
        switch type {
        case .mixed: "a mixed property"
        case .embedded: "an embedded object"
        case .decimal: dialect == .sqlite ? "a decimal" : nil
        case .string: test.foldsCase && dialect == .sqlite && hasManyLetters(test.value) ? "[c] with many accented letters" : nil
        case .binary:
            test.foldsCase ? "[c] on binary data" : test.comparison == .like ? "LIKE on binary data" : nil
        default: nil
        }
    }

    /// Each letter is a level of nesting in SQLite's text.
    private func hasManyLetters(_ value: Value) -> Bool {
        if case .list(let members) = value { return SQLPrinter.lettersBeyondASCII(in: members).count > 4 }
        return SQLPrinter.lettersBeyondASCII(in: [value]).count > 4
    }

    private mutating func comparison(_ expression: String, _ type: PropertyType, _ test: Test) -> String {
        let subject = test.foldsCase ? folded(expression, for: [test.value]) : expression
        switch test.comparison {
        case .equal: return "\(subject) = \(parameter(test.value, type))"
        case .notEqual:
            return "\(subject) \(dialect == .postgres ? "IS DISTINCT FROM" : "IS NOT") \(parameter(test.value, type))"
        case .less: return "\(ordered(subject, type)) < \(parameter(test.value, type))"
        case .lessOrEqual: return "\(ordered(subject, type)) <= \(parameter(test.value, type))"
        case .greater: return notNaN(subject, type, "\(ordered(subject, type)) > \(parameter(test.value, type))")
        case .greaterOrEqual: return notNaN(subject, type, "\(ordered(subject, type)) >= \(parameter(test.value, type))")
        case .beginsWith, .endsWith, .contains, .like: return text(subject, type, test)
        case .isIn: return constant(false)
        }
    }

    /// PostgreSQL orders text by collation unless told otherwise; a link's key and an ObjectId are text there.
    private func ordered(_ expression: String, _ type: PropertyType) -> String {
        switch type {
        case .string, .objectId: dialect == .postgres ? "\(expression) COLLATE \"C\"" : expression
        default: expression
        }
    }

    /// PostgreSQL has NaN above all numbers; the language has it in no order.
    private func notNaN(_ expression: String, _ type: PropertyType, _ condition: String) -> String {
        guard dialect == .postgres else { return condition }
        return switch type {
        case .float: "(\(condition) AND \(expression) <> 'NaN'::real)"
        case .double: "(\(condition) AND \(expression) <> 'NaN'::double precision)"
        case .decimal: "(\(condition) AND \(expression) <> 'NaN'::numeric)"
        default: condition
        }
    }

    // MARK: Lists of constants

    private mutating func membership(_ expression: String, _ type: PropertyType, _ members: [Value], _ foldsCase: Bool) -> String {
        let hasNull = members.contains { $0.isNull }
        var values: [Value] = []
        for member in members where !member.isNull {
            if dialect == .postgres {
                guard case .test = SQLPrinter.stored(Test(.equal, member)) else { continue }
            }
            values.append(member)
        }
        let subject = foldsCase ? folded(expression, for: values) : expression
        let condition: String
        if values.isEmpty {
            condition = constant(false)
        } else if dialect == .postgres {
            condition = "\(subject) = ANY(\(parameter(.list(values), type)))"
        } else {
            condition = "\(subject) IN (\(values.map { parameter($0, type) }.joined(separator: ", ")))"
        }
        return hasNull ? "(\(condition) OR \(expression) IS NULL)" : condition
    }

    // MARK: Text

    private mutating func text(_ subject: String, _ type: PropertyType, _ test: Test) -> String {
        if case .string(let text) = test.value { return characters(subject, text, test) }
        guard case .binary(let bytes) = test.value else { return constant(false) }
        return self.bytes(subject, bytes, test)
    }

    private mutating func characters(_ subject: String, _ text: String, _ test: Test) -> String {
        if text.isEmpty, test.comparison != .like { return "\(subject) IS NOT NULL" }
        switch (test.comparison, dialect) {
        case (.beginsWith, .postgres): return "starts_with(\(subject), \(parameter(test.value, .string)))"
        case (.beginsWith, .sqlite): return "instr(\(subject), \(parameter(test.value, .string))) = 1"
        case (.endsWith, .postgres):
            return "right(\(subject), \(text.unicodeScalars.count)) = \(parameter(test.value, .string))"
        case (.endsWith, .sqlite):
            return "substr(\(subject), -\(text.unicodeScalars.count)) = \(parameter(test.value, .string))"
        case (.contains, .postgres): return "strpos(\(subject), \(parameter(test.value, .string))) > 0"
        case (.contains, .sqlite): return "instr(\(subject), \(parameter(test.value, .string))) > 0"
        case (_, .postgres): return "\(subject) LIKE \(parameter(.string(SQLPrinter.likePattern(text)), .string))"
        case (_, .sqlite): return "\(subject) GLOB \(parameter(.string(text.replacing("[", with: "[[]")), .string))"
        }
    }

    private mutating func bytes(_ subject: String, _ bytes: [UInt8], _ test: Test) -> String {
        if bytes.isEmpty { return "\(subject) IS NOT NULL" }
        switch (test.comparison, dialect) {
        case (.beginsWith, .postgres): return "substring(\(subject) for \(bytes.count)) = \(parameter(test.value, .binary))"
        case (.beginsWith, .sqlite): return "substr(\(subject), 1, \(bytes.count)) = \(parameter(test.value, .binary))"
        case (.endsWith, .postgres):
            return "substring(\(subject) from octet_length(\(subject)) - \(bytes.count - 1)) = \(parameter(test.value, .binary))"
        case (.endsWith, .sqlite): return "substr(\(subject), -\(bytes.count)) = \(parameter(test.value, .binary))"
        case (_, .postgres): return "position(\(parameter(test.value, .binary)) in \(subject)) > 0"
        case (_, .sqlite): return "instr(\(subject), \(parameter(test.value, .binary))) > 0"
        }
    }

    /// The language's `*` and `?` as LIKE's `%` and `_`.
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

    /// The expression with the letters folded that `[c]` folds. SQLite folds A-Z only; of the others only those matter that occur in
    /// the constants, since no letter is folded to one of another kind.
    private func folded(_ expression: String, for constants: [Value]) -> String {
        if dialect == .postgres { return "translate(\(expression), '\(Folding.upper)', '\(Folding.lower)')" }
        return SQLPrinter.lettersBeyondASCII(in: constants).reduce("lower(\(expression))") { text, letter in
            "replace(\(text), '\(letter.upper)', '\(letter.lower)')"
        }
    }

    static func lettersBeyondASCII(in constants: [Value]) -> [(upper: Character, lower: Character)] {
        var used: Set<Unicode.Scalar> = []
        for case .string(let text) in constants { used.formUnion(text.unicodeScalars) }
        return zip(Folding.upper, Folding.lower).filter { upper, lower in
            !upper.isASCII && lower.unicodeScalars.allSatisfy { used.contains($0) }
        }.map { (upper: $0, lower: $1) }
    }

    // MARK: What PostgreSQL can store

    /// A test for what PostgreSQL's types hold: text has no NUL, a timestamptz has whole microseconds.
    static func stored(_ test: Test) -> FittedTest {
        switch test.value {
        case .string(let text):
            guard let cut = text.unicodeScalars.firstIndex(of: "\0") else { return .test(test) }
            return between(test, .string(String(text.unicodeScalars[..<cut])))
        case .timestamp(let time):
            guard time.nanoseconds % 1_000 != 0 else { return .test(test) }
            let down = time.nanoseconds < 0 ? (time.nanoseconds / 1_000 - 1) * 1_000 : time.nanoseconds / 1_000 * 1_000
            let floor =
                down == -1_000_000_000
                ? Timestamp(seconds: time.seconds - 1, nanoseconds: 0) : Timestamp(seconds: time.seconds, nanoseconds: down)
            return between(test, .timestamp(floor))
        default: return .test(test)
        }
    }

    /// A test against a value that cannot be stored and lies just above `lower`.
    private static func between(_ test: Test, _ lower: Value) -> FittedTest {
        switch test.comparison {
        case .notEqual: .always
        case .less, .lessOrEqual: .test(Test(.lessOrEqual, lower))
        case .greater, .greaterOrEqual: .test(Test(.greater, lower))
        case .equal, .isIn, .beginsWith, .endsWith, .contains, .like: .never
        }
    }

    // MARK: Two properties

    mutating func properties(_ left: Int, _ comparison: TestOperator, _ right: Int, _ foldsCase: Bool) throws(SluiceError) -> String {
        let type = self.type.properties[left].type
        guard type == self.type.properties[right].type, !comparison.isText, !foldsCase, refusal(type, Test(comparison, .null)) == nil,
            !type.isNumeric || type == .int
        else { throw unsupported("comparisons with another property", left) }
        let l = ordered(column(left), type)
        let r = ordered(column(right), type)
        let bothNull = "(\(column(left)) IS NULL AND \(column(right)) IS NULL)"
        return switch comparison {
        case .equal: dialect == .postgres ? "\(l) IS NOT DISTINCT FROM \(r)" : "\(l) IS \(r)"
        case .notEqual: dialect == .postgres ? "\(l) IS DISTINCT FROM \(r)" : "\(l) IS NOT \(r)"
        case .less: "\(l) < \(r)"
        case .greater: "\(l) > \(r)"
        case .lessOrEqual: "(\(l) <= \(r) OR \(bothNull))"
        case .greaterOrEqual: "(\(l) >= \(r) OR \(bothNull))"
        case .isIn, .beginsWith, .endsWith, .contains, .like: constant(false)
        }
    }
}
