import SluiceCore

/// Tests of one value with constants.
extension SQLPrinter {
    /// Returns a superset of a test of an expression, or of its complement.
    func test(_ value: SQLText, _ type: PropertyType, _ test: Test, negated: Bool) -> SQLPiece {
        if let piece = exact(value, type, test) { return negated ? piece.negated : piece }
        return weak(value, type, test, negated: negated)
    }

    private func exact(_ value: SQLText, _ type: PropertyType, _ test: Test) -> SQLPiece? {
        if test.value.isNull { return null(value, type, isNull: test.comparison != .notEqual) }
        guard isComparable(type, test) else { return nil }
        if test.comparison == .isIn, case .list(let members) = test.value { return membership(value, type, members, test.foldsCase) }
        var test = test
        if dialect == .postgres {
            switch StorableTest.postgres(test) {
            case .test(let stored): test = stored
            case .always: return .constant(true)
            default: return .constant(false)
            }
            // A constant outside the type's range turns the test into one for null.
            if test.value.isNull { return null(value, type, isNull: false) }
        }
        return comparison(value, type, StorableTest.plain(test))
    }

    /// Returns a superset of a test without an exact form.
    private func weak(_ value: SQLText, _ type: PropertyType, _ test: Test, negated: Bool) -> SQLPiece {
        if type == .string, test.comparison == .like, case .string(let pattern) = test.value,
            let glob = glob(value, pattern, test.foldsCase)
        {
            // GLOB stops at a NUL.
            if negated { return SQLPiece("(\(glob) AND instr(\(value), char(0)) = 0) IS NOT TRUE", isExact: false, depth: 2) }
            return SQLPiece("(\(glob) OR instr(\(value), char(0)) > 0)", isExact: false, depth: 1)
        }
        let holdsForNull: Bool
        switch (test.comparison, test.value) {
        case (.notEqual, _): holdsForNull = true
        case (.isIn, .list(let members)): holdsForNull = members.contains(where: \.isNull)
        default: holdsForNull = false
        }
        // A test that does not hold for null implies a value. If it may hold for null, nothing is implied.
        if holdsForNull != negated { return .unknown }
        return null(value, type, isNull: false).weakened
    }

    /// Returns a test for null. A document may also contain JSON's null.
    private func null(_ value: SQLText, _ type: PropertyType, isNull: Bool) -> SQLPiece {
        switch type {
        case .mixed where dialect == .postgres, .embedded where dialect == .postgres:
            let json: SQLText = "'null'::jsonb"
            return isNull
                ? SQLPiece("(\(value) IS NULL OR \(value) = \(json))", depth: 1)
                : SQLPiece("(\(value) IS NOT NULL AND \(value) <> \(json))", depth: 1)
        default: return SQLPiece(isNull ? "\(value) IS NULL" : "\(value) IS NOT NULL")
        }
    }

    /// `true` if the test has the same meaning on the stored form.
    private func isComparable(_ type: PropertyType, _ test: Test) -> Bool {
        switch type {
        case .mixed, .embedded: false
        case .decimal: dialect == .postgres
        case .string:
            if dialect == .postgres {
                true
            } else {
                isWithinFolding(test) && (test.comparison != .like || StorableTest.plain(test) != test)
            }
        case .binary: !test.foldsCase && (test.comparison != .like || StorableTest.plain(test) != test)
        default: true
        }
    }

    /// `true` if `[c]` fits into SQLite's nesting limit, as each folded letter is a level of its expression.
    private func isWithinFolding(_ test: Test) -> Bool {
        guard test.foldsCase else { return true }
        if case .list(let members) = test.value { return SQLPrinter.lettersBeyondASCII(in: members).count <= 4 }
        return SQLPrinter.lettersBeyondASCII(in: [test.value]).count <= 4
    }

    private func comparison(_ value: SQLText, _ type: PropertyType, _ test: Test) -> SQLPiece {
        if dialect == .sqlite, type == .float || type == .double { return floating(value, type, test) }
        let subject = test.foldsCase ? folded(value, for: [test.value]) : value
        let constant: SQLText = "\(parameter: test.value, type)"
        switch test.comparison {
        case .equal: return SQLPiece("\(subject) = \(constant)")
        case .notEqual: return SQLPiece("\(subject) \(distinct) \(constant)")
        case .less: return SQLPiece("\(ordered(subject, type)) < \(constant)")
        case .lessOrEqual: return SQLPiece("\(ordered(subject, type)) <= \(constant)")
        case .greater: return notNaN(subject, type, "\(ordered(subject, type)) > \(constant)")
        case .greaterOrEqual: return notNaN(subject, type, "\(ordered(subject, type)) >= \(constant)")
        case .beginsWith, .endsWith, .contains, .like: return text(subject, test)
        case .isIn: return .constant(false)
        }
    }

    private var distinct: SQLText { dialect == .postgres ? "IS DISTINCT FROM" : "IS NOT" }

    /// Returns an expression in the language's order. PostgreSQL orders text by collation and only compares columns of one collation. An
    /// ObjectId is text there.
    func ordered(_ expression: SQLText, _ type: PropertyType) -> SQLText {
        switch type {
        case .string, .objectId: dialect == .postgres ? "\(expression) COLLATE \"C\"" : expression
        default: expression
        }
    }

    /// Prepares a side of a comparison of two columns, which PostgreSQL rejects if their collations differ. A link casts to text, as the
    /// type of its key is unknown here.
    private func collated(_ expression: SQLText, _ type: PropertyType) -> SQLText {
        if case .link = type, dialect == .postgres { return "\(expression)::text COLLATE \"C\"" }
        return ordered(expression, type)
    }

    // MARK: Numbers

    /// Excludes NaN. PostgreSQL orders it above all numbers; in the language it has no order.
    private func notNaN(_ value: SQLText, _ type: PropertyType, _ condition: SQLText) -> SQLPiece {
        guard dialect == .postgres, let name = SQLPrinter.nameOfNaN(type) else { return SQLPiece(condition) }
        return SQLPiece("(\(condition) AND \(value) <> \(name))", depth: 1)
    }

    private static func nameOfNaN(_ type: PropertyType) -> SQLText? {
        switch type {
        case .float: "'NaN'::real"
        case .double: "'NaN'::double precision"
        case .decimal: "'NaN'::numeric"
        default: nil
        }
    }

    /// Compares floating values in SQLite, which stores NaN and -0 as blobs and orders blobs above all numbers.
    private func floating(_ value: SQLText, _ type: PropertyType, _ test: Test) -> SQLPiece {
        let constant: SQLText = "\(parameter: test.value, type)"
        let zero: SQLText = "\(parameter: type == .float ? .float(-0.0) : .double(-0.0), type)"
        let isReal: SQLText = "typeof(\(value)) = 'real'"
        let number: Double =
            switch test.value {
            case .float(let number): Double(number)
            case .double(let number): number
            default: .nan
            }
        switch test.comparison {
        case .equal: return number == 0 ? SQLPiece("\(value) IN (\(constant), \(zero))") : SQLPiece("\(value) = \(constant)")
        case .notEqual:
            return number == 0
                ? SQLPiece("(\(value) IN (\(constant), \(zero))) IS NOT TRUE", depth: 1) : SQLPiece("\(value) IS NOT \(constant)")
        case .less: return either("\(value) < \(constant)", number > 0, "\(value) = \(zero)")
        case .lessOrEqual: return either("\(value) <= \(constant)", number >= 0, "\(value) = \(zero)")
        case .greater: return either("(\(value) > \(constant) AND \(isReal))", number < 0, "\(value) = \(zero)")
        case .greaterOrEqual: return either("(\(value) >= \(constant) AND \(isReal))", number <= 0, "\(value) = \(zero)")
        default: return .constant(false)
        }
    }

    private func either(_ condition: SQLText, _ hasOther: Bool, _ other: SQLText) -> SQLPiece {
        hasOther ? SQLPiece("(\(condition) OR \(other))", depth: 2) : SQLPiece(condition, depth: 1)
    }

    // MARK: Lists of constants

    private func membership(_ value: SQLText, _ type: PropertyType, _ members: [Value], _ foldsCase: Bool) -> SQLPiece? {
        let hasNull = members.contains { $0.isNull }
        var values: [Value] = []
        for member in members where !member.isNull {
            if dialect == .postgres {
                guard case .test = StorableTest.postgres(Test(.equal, member)) else { continue }
            } else if member == .double(0) || member == .float(0) {
                values.append(type == .float ? .float(-0.0) : .double(-0.0))
            }
            values.append(member)
        }
        if dialect == .sqlite, values.count > dialect.mostParameters / 4 { return nil }
        let subject = foldsCase ? folded(value, for: values) : value
        let piece: SQLPiece
        if values.isEmpty {
            piece = .constant(false)
        } else if dialect == .postgres {
            piece = SQLPiece("\(subject) = ANY(\(parameter: .list(values), type))")
        } else {
            piece = SQLPiece("\(subject) IN (\(values.map { "\(parameter: $0, type)" as SQLText }, separator: ", "))", depth: 1)
        }
        return hasNull ? .any([piece, SQLPiece("\(value) IS NULL")]) : piece
    }

    // MARK: Two values of the row

    /// Returns a comparison of two expressions, or nil if SQL compares their types differently.
    func pair(
        _ left: SQLText, _ leftType: PropertyType, _ comparison: TestOperator, _ right: SQLText, _ rightType: PropertyType
    ) -> SQLPiece? {
        guard leftType == rightType, !comparison.isText, !leftType.isNumeric || leftType == .int else { return nil }
        switch leftType {
        case .mixed, .embedded: return nil
        default: break
        }
        let (l, r) = (collated(left, leftType), collated(right, leftType))
        let bothNull: SQLText = "(\(left) IS NULL AND \(right) IS NULL)"
        switch comparison {
        case .equal: return SQLPiece("\(l) \(dialect == .postgres ? "IS NOT DISTINCT FROM" as SQLText : "IS") \(r)")
        case .notEqual: return SQLPiece("\(l) \(distinct) \(r)")
        case .less: return SQLPiece("\(l) < \(r)")
        case .greater: return SQLPiece("\(l) > \(r)")
        case .lessOrEqual: return SQLPiece("(\(l) <= \(r) OR \(bothNull))", depth: 2)
        case .greaterOrEqual: return SQLPiece("(\(l) >= \(r) OR \(bothNull))", depth: 2)
        case .isIn, .beginsWith, .endsWith, .contains, .like: return nil
        }
    }
}
