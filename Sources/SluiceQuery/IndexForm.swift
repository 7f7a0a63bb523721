package import SluiceCore

/// A part of a subscription as the predicate index stores it: under one key, or under all of them.
package struct IndexEntry: Hashable, Sendable {
    /// The value of the indexed property (`.null` is a key too); nil is every row, where the type lacks the property or the condition
    /// does not pin it.
    package let key: Value?
    /// What remains to be tested on the rows of that key: normalised, so that equal conditions written in another order are equal.
    package let residual: BoundPredicate

    /// The residual compiled; entries of one subscription share it.
    package let program: Program

    /// - Parameter type: the object type of the rows.
    package init(key: Value?, residual: BoundPredicate, type: ObjectType) {
        self.init(key: key, residual: residual, program: residual.compile(for: type))
    }

    fileprivate init(key: Value?, residual: BoundPredicate, program: Program) {
        self.key = key
        self.residual = residual
        self.program = program
    }

    package static func == (lhs: IndexEntry, rhs: IndexEntry) -> Bool { lhs.key == rhs.key && lhs.residual == rhs.residual }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(key)
    }
}

extension Predicate {
    /// Splits the condition by the indexed property: a row satisfies the condition if and only if it satisfies the residual of an
    /// entry with its key, or of an entry for every row. No entry at all: no row does.
    package func indexForm(indexedProperty: Int?) -> [IndexEntry] {
        var entries: [IndexEntry] = []
        var seen: Set<IndexEntry> = []
        let pinned = indexedProperty.flatMap { type.properties[$0].isExactKey ? $0 : nil }
        for group in IndexForm(property: pinned).groups(bound.normalized) {
            let residual = group.residual.normalized
            if residual == .constant(false) { continue }
            let program = residual.compile(for: type)
            for key in group.keys?.map(Optional.some) ?? [nil] {
                let entry = IndexEntry(key: key, residual: residual, program: program)
                if seen.insert(entry).inserted { entries.append(entry) }
            }
        }
        return entries
    }
}

extension Property {
    /// Whether equal values of the type have equal bytes, which the key of an index needs; numbers with a fraction do not.
    fileprivate var isExactKey: Bool {
        guard collection == .none else { return false }
        return switch type {
        case .bool, .int, .string, .binary, .timestamp, .objectId, .uuid: true
        case .float, .double, .decimal, .mixed, .link, .embedded: false
        }
    }
}

/// Keys that share a residual; nil is every row.
private struct IndexGroup {
    var keys: [Value]?
    var residual: BoundPredicate
}

private struct IndexForm {
    let property: Int?

    /// Bounds what pushing one part of an AND into the groups of another may cost, in comparisons.
    private static let budget = 16_384

    func groups(_ predicate: BoundPredicate) -> [IndexGroup] {
        guard property != nil else { return [IndexGroup(keys: nil, residual: predicate)] }
        switch predicate {
        case .constant(false): return []
        case .or(let parts): return disjunction(parts)
        case .and(let parts): return conjunction(parts)
        case .test(let subject, let test):
            guard let keys = keys(subject, test) else { break }
            return [IndexGroup(keys: keys, residual: .constant(true))]
        case .constant, .not, .properties: break
        }
        return [IndexGroup(keys: nil, residual: predicate)]
    }

    /// The keys that a comparison allows; nil when it is none of the indexed property.
    private func keys(_ subject: Subject, _ test: Test) -> [Value]? {
        guard case .property(property) = subject, !test.foldsCase else { return nil }
        switch (test.comparison, test.value) {
        case (.equal, let value): return [value]
        case (.isIn, .list(let values)): return values
        default: return nil
        }
    }

    /// All groups of the parts; those without a residual become one.
    private func disjunction(_ parts: [BoundPredicate]) -> [IndexGroup] {
        var bare: [Value] = []
        var groups: [IndexGroup] = []
        for group in parts.flatMap({ self.groups($0) }) {
            if let keys = group.keys, group.residual == .constant(true) { bare += keys } else { groups.append(group) }
        }
        if !bare.isEmpty { groups.append(IndexGroup(keys: bare, residual: .constant(true))) }
        return groups
    }

    /// Takes the part that pins the property to the fewest keys and leaves the others to be tested.
    private func conjunction(_ parts: [BoundPredicate]) -> [IndexGroup] {
        var best: (index: Int, groups: [IndexGroup], count: Int)?
        for (index, part) in parts.enumerated() {
            let candidate = groups(part)
            guard candidate.allSatisfy({ $0.keys != nil }) else { continue }
            let count = candidate.reduce(0) { $0 + ($1.keys?.count ?? 0) }
            if count < best?.count ?? .max { best = (index, candidate, count) }
        }
        guard let best else { return [IndexGroup(keys: nil, residual: .conjunction(parts))] }
        var rest = parts
        rest.remove(at: best.index)
        let remaining = BoundPredicate.conjunction(rest)
        if best.groups.count > 1, best.groups.count * remaining.leafCount > IndexForm.budget {
            let keys = Set(best.groups.flatMap { $0.keys ?? [] })
            return [IndexGroup(keys: Array(keys), residual: .conjunction(parts))]
        }
        return best.groups.map { IndexGroup(keys: $0.keys, residual: .conjunction([$0.residual, remaining])) }
    }
}

extension BoundPredicate {
    /// The same condition with the parts of every AND and OR sorted and without duplicates.
    package var normalized: BoundPredicate {
        switch self {
        case .constant, .test, .properties: self
        case .not(let inner): .negation(inner.normalized)
        case .and(let parts): .conjunction(BoundPredicate.sorted(parts))
        case .or(let parts): .disjunction(BoundPredicate.sorted(parts))
        }
    }

    private static func sorted(_ parts: [BoundPredicate]) -> [BoundPredicate] {
        let keyed = Set(parts.map(\.normalized)).map { (key: $0.sortKey, part: $0) }
        return keyed.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.part)
    }

    /// Bytes that are different for different conditions; their order is arbitrary and fixed.
    private var sortKey: [UInt8] {
        var bytes: [UInt8] = []
        appendSortKey(to: &bytes)
        return bytes
    }

    private func appendSortKey(to bytes: inout [UInt8]) {
        func append(_ number: Int) { withUnsafeBytes(of: UInt32(truncatingIfNeeded: number).bigEndian) { bytes.append(contentsOf: $0) } }
        switch self {
        case .constant(let value): bytes += [0, value ? 1 : 0]
        case .test(let subject, let test):
            bytes += [1, subject.sortKey]
            append(subject.property)
            bytes += [test.comparison.rawValue, test.foldsCase ? 1 : 0, ValueCoding.tag(of: test.value).rawValue]
            let content = ValueCoding.encode(test.value)
            append(content.count)
            bytes += content
        case .properties(let left, let comparison, let right, let foldsCase):
            bytes += [2, comparison.rawValue, foldsCase ? 1 : 0]
            append(left)
            append(right)
        case .not(let inner):
            bytes.append(3)
            inner.appendSortKey(to: &bytes)
        case .and(let parts), .or(let parts):
            if case .and = self { bytes.append(4) } else { bytes.append(5) }
            append(parts.count)
            for part in parts { part.appendSortKey(to: &bytes) }
        }
    }
}

extension Subject {
    fileprivate var sortKey: UInt8 {
        switch self {
        case .property: 0
        case .elements(_, .any): 1
        case .elements(_, .all): 2
        case .elements(_, .none): 3
        case .count: 4
        }
    }
}
