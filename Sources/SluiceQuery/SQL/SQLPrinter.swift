import SluiceCore

/// Prints two-valued logic as three-valued SQL. In a positive leaf NULL has the effect of false. Negations move down to the leaves, where
/// `IS NOT TRUE` includes NULL. Indexes thus support positive conditions.
///
/// A condition without an exact form becomes a superset: a weaker condition, or TRUE. Negations occur only at the leaves. A superset of
/// every leaf therefore gives a superset of the whole.
struct SQLPrinter {
    let dialect: SQLDialect

    /// Returns a superset of a condition on one row, or of its complement.
    func superset(
        _ predicate: BoundPredicate, of type: ObjectType, negated: Bool = false, _ column: (Int) -> SQLText
    ) -> SQLPiece {
        switch predicate {
        case .constant(let value): return .constant(value != negated)
        case .and(let parts): return joined(parts.map { superset($0, of: type, negated: negated, column) }, isAnd: !negated)
        case .or(let parts): return joined(parts.map { superset($0, of: type, negated: negated, column) }, isAnd: negated)
        case .not(let inner): return superset(inner, of: type, negated: !negated, column)
        case .test(.property(let index), let test): return self.test(column(index), type.properties[index].type, test, negated: negated)
        case .test(.elements(let index, let quantifier), let test):
            return elements(column(index), type.properties[index].type, quantifier, test, negated: negated)
        case .test(.count(let index), let test):
            let property = type.properties[index]
            guard dialect == .postgres, property.type.isStoredInArrays,
                let size = size(of: column(index), property.type, isSet: property.collection == .set)
            else { return .unknown }
            return self.test(size, .int, test, negated: negated)
        case .properties(let left, let comparison, let right, let foldsCase):
            let (l, r) = (type.properties[left].type, type.properties[right].type)
            guard !foldsCase, let piece = pair(column(left), l, comparison, column(right), r) else { return .unknown }
            return negated ? piece.negated : piece
        case .within(let index, let geometry): return within(column(index), geometry, negated: negated)
        }
    }

    // MARK: Joining

    /// Joins pieces. AND drops pieces beyond the dialect's limits. An OR beyond them becomes `unknown`.
    func joined(_ pieces: [SQLPiece], isAnd: Bool) -> SQLPiece {
        guard isAnd else {
            let piece = SQLPiece.any(pieces)
            return fits(piece) ? piece : .unknown
        }
        var kept: [SQLPiece] = []
        var leaves = 0
        for piece in pieces {
            if leaves + piece.leaves <= dialect.mostLeaves, piece.depth < dialect.mostLevels {
                leaves += piece.leaves
                kept.append(piece)
            } else {
                kept.append(.unknown)
            }
        }
        return .all(kept)
    }

    func fits(_ piece: SQLPiece) -> Bool { piece.leaves <= dialect.mostLeaves && piece.depth <= dialect.mostLevels }

    // MARK: Lists

    /// Returns the number of elements. Nil for sets of types with other equality in PostgreSQL: -0 and 0, 1 and 1.0.
    func size(of array: SQLText, _ type: PropertyType, isSet: Bool) -> SQLText? {
        guard isSet else { return "coalesce(cardinality(\(array)), 0)" }
        switch type {
        case .float, .double, .decimal: return nil
        default: return "cardinality(ARRAY(SELECT DISTINCT v FROM unnest(\(array)) AS e(v)))"
        }
    }

    private func elements(_ column: SQLText, _ type: PropertyType, _ quantifier: Quantifier, _ test: Test, negated: Bool) -> SQLPiece {
        guard dialect == .postgres, type.isStoredInArrays else { return .unknown }
        // NONE is the complement of ANY. The positive form can use an index on arrays.
        if quantifier != .all, let piece = overlap(column, type, test) {
            return negated == (quantifier == .none) ? piece : piece.negated
        }
        return quantified(quantifier, negated: negated, from: ["unnest(\(column)) AS e(v)"], []) { negated in
            self.test("e.v", type, test, negated: negated)
        }
    }

    /// Tests for an element among constants, in the form that an index on arrays supports. The cast has no effect if the column has the
    /// type.
    private func overlap(_ column: SQLText, _ type: PropertyType, _ test: Test) -> SQLPiece? {
        guard !test.foldsCase, !test.value.isNull else { return nil }
        let members: [Value]
        switch (test.comparison, test.value) {
        case (.equal, _): members = [test.value]
        case (.isIn, .list(let values)): members = values
        default: return nil
        }
        guard !members.contains(where: \.isNull) else { return nil }
        let storable = members.filter { if case .test = StorableTest.postgres(Test(.equal, $0)) { true } else { false } }
        guard let first = storable.first else { return .constant(false) }
        let array = SQLText(name: SQLDialect.typeName(type, first) + "[]")
        let comparison: SQLText = test.comparison == .equal ? "@>" : "&&"
        return SQLPiece("\(column)::\(array) \(comparison) \(parameter: .list(storable), type)")
    }

    /// Returns a quantified condition on the rows of a FROM clause, or its complement.
    ///
    /// - Parameter inner: Returns a superset of the condition on one row, or of its complement.
    func quantified(
        _ quantifier: Quantifier, negated: Bool, from sources: [SQLText], _ conditions: [SQLText], _ inner: (Bool) -> SQLPiece
    ) -> SQLPiece {
        // A witness is a row that satisfies the condition, or for ALL one that does not. EXISTS needs a superset of them, NOT EXISTS a
        // subset.
        let isAll = quantifier == .all
        let exists = isAll ? negated : (quantifier == .any) != negated
        var witness = inner(isAll)
        let isExact = witness.isExact
        if !isExact, !exists {
            // The complement of a superset of the complement is a subset.
            let others = inner(!isAll)
            if let constant = others.constant {
                if constant { return .unknown }
                witness = .constant(true)
            } else {
                witness = others.negated
            }
        }
        if witness.constant == false { return isExact ? .constant(!exists) : .unknown }
        let all = conditions + (witness.constant == nil ? [witness.text] : [])
        var piece = SQLPiece("\(exists ? "EXISTS" as SQLText : "NOT EXISTS") (\(select(nil, from: sources, all)))", isExact: isExact)
        piece.leaves = witness.leaves + conditions.count + 1
        piece.depth = witness.depth + 4
        return piece
    }

    /// - Parameter value: Nil if only the existence of rows matters.
    func select(_ value: SQLText?, from sources: [SQLText], _ conditions: [SQLText]) -> SQLText {
        let head: SQLText = value.map { "SELECT \($0) FROM " } ?? (dialect == .postgres ? "SELECT FROM " : "SELECT 1 FROM ")
        let tail: SQLText = conditions.isEmpty ? "" : " WHERE \(conditions, separator: " AND ")"
        return "\(head)\(sources, separator: ", ")\(tail)"
    }
}

extension PropertyType {
    /// `true` if PostgreSQL stores lists of the type as arrays. Others are JSON.
    var isStoredInArrays: Bool {
        switch self {
        case .mixed, .embedded: false
        default: true
        }
    }
}
