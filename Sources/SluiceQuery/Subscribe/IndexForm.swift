package import SluiceCore

/// A part of a subscription in the predicate index: under one key, or under all of them.
package struct IndexEntry: Hashable, Sendable {
    /// The value of the indexed property, which may be `.null`. Nil for every row: the class lacks the property, or the condition does not
    /// pin it.
    package let key: Value?
    /// The remaining condition on the rows of that key.
    package let rest: Residual

    package var residual: BoundPredicate { rest.condition }

    /// The compiled residual. Entries with equal residuals share it.
    package var program: Program { rest.program }
}

extension Predicate {
    /// Splits the condition by the indexed property. A row satisfies it if and only if it satisfies the residual of an entry with its key,
    /// or of one for every row. Without entries no row does.
    ///
    /// The cost is about the size of the condition and of the entries. If splitting would multiply parts beyond a fixed budget, a part
    /// remains whole under its keys.
    package func indexForm(indexedProperty: Int?) -> [IndexEntry] {
        var table = ResidualTable()
        return indexForm(indexedProperty: indexedProperty, sharing: &table)
    }

    /// Splits like `indexForm(indexedProperty:)` and reuses equal residuals of the table.
    package func indexForm(indexedProperty: Int?, sharing table: inout ResidualTable) -> [IndexEntry] {
        var form = IndexForm(property: indexedProperty.flatMap { type.properties[$0].isExactKey ? $0 : nil })
        var entries: [IndexEntry] = []
        var seen: Set<IndexEntry> = []
        for group in form.groups(NormalForm(bound)) where group.residual.constant != false {
            let residual = table.intern(group.residual, of: type)
            for key in group.keys?.map(Optional.some) ?? [nil] {
                let entry = IndexEntry(key: key, rest: residual)
                if seen.insert(entry).inserted { entries.append(entry) }
            }
        }
        return entries
    }
}

extension BoundPredicate {
    /// The same condition in normal form, see `NormalForm`.
    package var normalized: BoundPredicate { NormalForm(self).condition }
}

extension Property {
    /// `true` if equal values of the type have equal bytes, which an index key requires. Numbers with a fraction do not.
    fileprivate var isExactKey: Bool {
        guard collection == .none else { return false }
        return switch type {
        case .bool, .int, .string, .binary, .timestamp, .objectId, .uuid: true
        case .float, .double, .decimal, .mixed, .link, .embedded: false
        }
    }
}

/// Keys that share a residual. Nil for every row.
private struct IndexGroup {
    var keys: [Value]?
    var residual: NormalForm
}

private struct IndexForm {
    let property: Int?
    /// The remaining cost, in weights, of copying parts of ANDs into groups. It bounds the whole query, because ANDs nest.
    private var budget = 65_536
    private let all = NormalForm(.constant(true))

    init(property: Int?) { self.property = property }

    mutating func groups(_ condition: NormalForm) -> [IndexGroup] {
        guard property != nil else { return [IndexGroup(keys: nil, residual: condition)] }
        switch condition.condition {
        case .constant(false): return []
        // OR: a row may satisfy any part, so the entries of all parts are needed.
        case .or: return disjunction(condition.parts)
        case .and: return conjunction(condition)
        case .test(let subject, let test):
            guard let keys = keys(subject, test) else { break }
            return [IndexGroup(keys: keys, residual: all)]
        // Such conditions pin no key, so they apply to every row.
        case .constant, .not, .properties, .within: break
        }
        return [IndexGroup(keys: nil, residual: condition)]
    }

    /// Returns the keys that a comparison allows, or nil if it does not pin the indexed property.
    private func keys(_ subject: Subject, _ test: Test) -> [Value]? {
        guard case .property(property) = subject, !test.foldsCase else { return nil }
        switch (test.comparison, test.value) {
        case (.equal, let value): return [value]
        case (.isIn, .list(let values)): return values
        default: return nil
        }
    }

    /// Returns all groups of the parts. Groups without a residual are joined into one.
    private mutating func disjunction(_ parts: [NormalForm]) -> [IndexGroup] {
        var bare: [Value] = []
        var groups: [IndexGroup] = []
        for part in parts {
            for group in self.groups(part) {
                if let keys = group.keys, group.residual.constant == true { bare += keys } else { groups.append(group) }
            }
        }
        if !bare.isEmpty { groups.append(IndexGroup(keys: bare, residual: all)) }
        return groups
    }

    /// Splits by the part that pins the property to the fewest keys. The other parts become residuals.
    private mutating func conjunction(_ condition: NormalForm) -> [IndexGroup] {
        var best: (index: Int, groups: [IndexGroup], count: Int)?
        for (index, part) in condition.parts.enumerated() {
            // A part pins the property only if all of its groups have keys.
            let candidate = groups(part)
            guard candidate.allSatisfy({ $0.keys != nil }) else { continue }
            let count = candidate.reduce(0) { $0 + ($1.keys?.count ?? 0) }
            if count < best?.count ?? .max { best = (index, candidate, count) }
        }
        guard let best else { return [IndexGroup(keys: nil, residual: condition)] }
        var rest = condition.parts
        rest.remove(at: best.index)
        let size = rest.reduce(0) { $0 + $1.weight }
        let cost = best.groups.reduce(0) { $0 + size + $1.residual.weight }
        if best.groups.count > 1, cost > budget {
            let keys = Set(best.groups.flatMap { $0.keys ?? [] }).sorted { $0.precedes($1) }
            return [IndexGroup(keys: keys, residual: condition)]
        }
        budget -= cost
        // The chosen part is left out: a row under a key satisfies it together with its group's residual.
        let remaining = NormalForm.join(rest, isAnd: true)
        return best.groups.map {
            IndexGroup(keys: $0.keys, residual: .join([$0.residual, remaining], isAnd: true))
        }
    }
}
