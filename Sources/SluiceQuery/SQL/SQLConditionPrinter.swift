import SluiceCore

/// Prints conditions of the whole language as supersets. Sub-selects cover the parts that tables and arrays can answer; others are TRUE.
struct SQLConditionPrinter {
    let layout: SQLLayout
    let names: SQLNames
    let scope: SQLScope

    private var printer: SQLPrinter { SQLPrinter(dialect: layout.dialect) }
    private var paths: SQLPathPrinter { SQLPathPrinter(layout: layout, names: names, scope: scope) }

    private var counting: SQLPathPrinter { SQLPathPrinter(layout: layout, names: names, scope: scope, countsRows: true) }

    /// Returns a superset of a condition, or of its complement.
    func superset(_ condition: BoundCondition, negated: Bool = false) -> SQLPiece {
        switch condition {
        case .constant(let value): return .constant(value != negated)
        case .and(let parts): return printer.joined(parts.map { superset($0, negated: negated) }, isAnd: !negated)
        case .or(let parts): return printer.joined(parts.map { superset($0, negated: negated) }, isAnd: negated)
        case .not(let inner): return superset(inner, negated: !negated)
        case .compare(let comparison): return own(condition, negated) ?? superset(comparison, negated) ?? .unknown
        case .within: return own(condition, negated) ?? .unknown
        case .fullText: return .unknown
        }
    }

    /// Returns a superset of a condition that the innermost object's row decides, or nil if it needs more.
    private func own(_ condition: BoundCondition, _ negated: Bool) -> SQLPiece? {
        let variable = scope.objects.count - 1
        let (object, type) = scope.objects[variable]
        guard let predicate = condition.predicate(on: type, variable: variable) else { return nil }
        guard let table = layout.tables[type.name] else { return .unknown }
        return printer.superset(predicate, of: type, negated: negated) { "\(object).\(name: table.columns[$0])" }
    }

    // MARK: Comparisons

    private enum Side {
        case constants([Value], Quantifier)
        case path(SQLPath, Quantifier)
        case count(SQLCount)
    }

    private func side(_ side: BoundSide) -> Side? {
        switch side.operand {
        case .constant(let value): return .constants([value], .any)
        // A comparison with a longer list remains in the residual.
        case .constants(let values): return values.count <= 1_000 ? .constants(values, side.quantifier) : nil
        case .path(let path):
            if path.result == .objectCount {
                if let count = counting.count(path) { return .count(count) }
                return paths.ownCount(path).map { .path(SQLPath(value: $0, type: .int), .any) }
            }
            return paths.path(path).map { .path($0, side.quantifier) }
        case .aggregate(let aggregate): return paths.aggregate(aggregate).map { .path($0, .any) }
        case .arithmetic: return nil
        case .subqueryCount(let path, let depth, let condition):
            guard let objects = counting.objects(path) else { return nil }
            let inner = SQLConditionPrinter(
                layout: layout, names: names, scope: SQLScope(objects: scope.objects.prefix(depth) + [(objects.name, objects.type)]))
            var count = objects.count
            count.inner = { inner.superset(condition, negated: $0) }
            return .count(count)
        }
    }

    private func superset(_ comparison: BoundComparison, _ negated: Bool) -> SQLPiece? {
        switch comparison.meaning {
        case .types: return nil
        case .pairs: return sequence(comparison, negated)
        case .values: break
        }
        guard let left = side(comparison.left), let right = side(comparison.right) else { return nil }
        switch (left, right) {
        case (.path(let path, let quantifier), .constants(let values, let inner)):
            guard let test = test(comparison, path.type, values, inner) else { return nil }
            return superset(test, path, quantifier, negated)
        case (.constants(let values, let outer), .path(let path, let quantifier)):
            return constantsFirst(comparison, values, outer, path, quantifier, negated)
        case (.count(let count), .constants(let values, let inner)):
            return test(comparison, .int, values, inner).flatMap { self.count(count, $0, negated) }
        case (.constants(let values, let outer), .count(let count)):
            guard values.count == 1, outer == .any, let mirrored = mirrored(comparison) else { return nil }
            return test(mirrored, .int, values, .any).flatMap { self.count(count, $0, negated) }
        case (.path(let l, let outer), .path(let r, let inner)): return twoPaths(comparison, l, outer, r, inner, negated)
        default: return nil
        }
    }

    private func mirrored(_ comparison: BoundComparison) -> BoundComparison? {
        guard let test = comparison.test.mirrored else { return nil }
        var mirrored = comparison
        mirrored.test = test
        return mirrored
    }

    private func constantsFirst(
        _ comparison: BoundComparison, _ values: [Value], _ outer: Quantifier, _ path: SQLPath, _ quantifier: Quantifier, _ negated: Bool
    ) -> SQLPiece? {
        // Each constant becomes a copy of the sub-select, so only short lists are printed.
        guard let mirrored = mirrored(comparison), values.count <= 20 else { return nil }
        let isComplement = outer == .none
        var pieces: [SQLPiece] = []
        for value in values {
            guard let test = test(mirrored, path.type, [value], .any) else { return nil }
            pieces.append(superset(test, path, quantifier, negated != isComplement))
        }
        return printer.joined(pieces, isAnd: (outer == .all) != (negated != isComplement))
    }

    /// Returns the condition on one value that equals a comparison with constants, or nil if a constant does not fit the type.
    private func test(_ comparison: BoundComparison, _ type: PropertyType, _ values: [Value], _ quantifier: Quantifier) -> BoundPredicate? {
        let fit = ConstantFit(type: type, comparison: comparison.test, foldsCase: comparison.foldsCase)
        var parts: [BoundPredicate] = []
        var equals: [Value] = []
        for value in values {
            switch fit.fit(value) {
            case .test(let test):
                if test.comparison == .equal { equals.append(test.value) }
                parts.append(.test(.property(0), test))
            case .always: parts.append(.constant(true))
            case .never: parts.append(.constant(false))
            case .mismatch: return nil
            }
        }
        if quantifier != .all, equals.count > 1, equals.count == parts.count {
            let folds = comparison.foldsCase
            let members = BoundPredicate.test(.property(0), Test(.isIn, .list(Value.sorted(equals)), foldsCase: folds))
            return quantifier == .any ? members : .negation(members)
        }
        switch quantifier {
        case .any: return .disjunction(parts)
        case .all: return .conjunction(parts)
        case .none: return .negation(.disjunction(parts))
        }
    }

    private func superset(_ test: BoundPredicate, _ path: SQLPath, _ quantifier: Quantifier, _ negated: Bool) -> SQLPiece {
        let type = ObjectType(
            name: "", properties: [Property(id: 1, name: "", type: path.type, isOptional: true)], primaryKey: nil)
        let inner = { (negated: Bool) in printer.superset(test, of: type, negated: negated) { _ in path.value } }
        if path.isMany { return printer.quantified(quantifier, negated: negated, from: path.sources, path.conditions, inner) }
        let negated = negated != (quantifier == .none)
        if path.sources.isEmpty { return inner(negated) }
        // A broken link yields the missing value. If the test holds for it, the test only fails for a row that contradicts it.
        let holdsForMissing = TreeEvaluator.evaluate(test, in: type) { _ in path.missing } != negated
        return printer.quantified(
            holdsForMissing ? .all : .any, negated: false, from: path.sources, path.conditions
        ) { inner($0 != negated) }
    }

    // MARK: Counts

    private func count(_ count: SQLCount, _ test: BoundPredicate, _ negated: Bool) -> SQLPiece? {
        let inner = count.inner ?? { .constant(!$0) }
        switch SQLConditionPrinter.existence(test) {
        case true?: return printer.quantified(.any, negated: negated, from: count.sources, count.conditions, inner)
        case false?: return printer.quantified(.none, negated: negated, from: count.sources, count.conditions, inner)
        case nil: break
        }
        if case .constant(let value) = test { return .constant(value != negated) }
        // A count needs the exact rows: a superset would count too many.
        let condition = inner(false)
        guard condition.isExact else { return nil }
        if condition.constant == false {
            let type = ObjectType(name: "", properties: [Property(id: 1, name: "", type: .int)], primaryKey: nil)
            return .constant(TreeEvaluator.evaluate(test, in: type) { _ in .int(0) } != negated)
        }
        let conditions = count.conditions + (condition.constant == nil ? [condition.text] : [])
        let number: SQLText = "(\(printer.select("count(*)", from: count.sources, conditions)))"
        let type = ObjectType(name: "", properties: [Property(id: 1, name: "", type: .int)], primaryKey: nil)
        var piece = printer.superset(test, of: type, negated: negated) { _ in number }
        piece.leaves += condition.leaves + count.conditions.count
        piece.depth += condition.depth + 2
        return piece
    }

    /// Returns `true` if the test of a count requires at least one row, `false` if it requires none, and nil for any other test.
    private static func existence(_ test: BoundPredicate) -> Bool? {
        guard case .test(_, let test) = test, case .int(let number) = test.value else { return nil }
        switch (test.comparison, number) {
        case (.greater, 0), (.greaterOrEqual, 1), (.notEqual, 0): return true
        case (.equal, 0), (.less, 1), (.lessOrEqual, 0): return false
        default: return nil
        }
    }

    // MARK: Two paths

    private func twoPaths(
        _ comparison: BoundComparison, _ l: SQLPath, _ outer: Quantifier, _ r: SQLPath, _ inner: Quantifier, _ negated: Bool
    ) -> SQLPiece? {
        guard !comparison.foldsCase else { return nil }
        let left = l.isMany ? l.value : l.expression(printer)
        let right = r.isMany ? r.value : r.expression(printer)
        guard let pair = printer.pair(left, l.type, comparison.test, right, r.type) else { return nil }
        let one = { (negated: Bool) in negated ? pair.negated : pair }
        let second = { (negated: Bool) in
            r.isMany ? printer.quantified(inner, negated: negated, from: r.sources, r.conditions, one) : one(negated != (inner == .none))
        }
        guard l.isMany else { return second(negated != (outer == .none)) }
        return printer.quantified(outer, negated: negated, from: l.sources, l.conditions, second)
    }

    // MARK: Lists pair by pair

    /// Compares a list with a literal of the same values in the same order, as PostgreSQL also compares arrays.
    private func sequence(_ comparison: BoundComparison, _ negated: Bool) -> SQLPiece? {
        guard comparison.test == .equal, !comparison.foldsCase, layout.dialect == .postgres,
            case .pairs(_, isSet: false) = comparison.meaning
        else { return nil }
        let list: BoundPath
        let values: [Value]
        switch (comparison.left.operand, comparison.right.operand) {
        case (.path(let path), .constants(let constants)), (.constants(let constants), .path(let path)): (list, values) = (path, constants)
        default: return nil
        }
        guard let index = list.steps.firstIndex(of: .every), list.sequence == .list else { return nil }
        var whole = list
        whole.steps = Array(list.steps[..<index])
        // Only the elements themselves are in the array. A link as a value is its key.
        guard list.steps[index...].dropFirst().allSatisfy({ if case .link = $0 { true } else { false } }),
            let array = paths.array(whole)
        else { return nil }
        let fit = ConstantFit(type: array.type, comparison: .equal, foldsCase: false)
        var members: [Value] = []
        for value in values {
            switch fit.fit(value) {
            case .test(let test):
                guard case .test(let test) = StorableTest.postgres(test), test.comparison == .equal else { return .constant(negated) }
                members.append(test.value)
            case .never: return .constant(negated)
            case .always, .mismatch: return nil
            }
        }
        guard let stored = layout.stored(array.type) else { return nil }
        let name = SQLText(name: SQLDialect.typeName(stored, nil) + "[]")
        let piece = SQLPiece("coalesce(\(array.value)::\(name), '{}') = \(parameter: .list(members), stored)", depth: 1)
        return negated ? piece.negated : piece
    }
}

extension Value {
    fileprivate static func sorted(_ values: [Value]) -> [Value] {
        values.sorted { $0.precedes($1) }.reduce(into: []) { if $0.last != $1 { $0.append($1) } }
    }
}
