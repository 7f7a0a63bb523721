package import SluiceCore

/// A part of a subscription as the predicate index stores it: under one key, or under all of them.
package struct IndexEntry: Hashable, Sendable {
    /// The value of the indexed property (`.null` is a key too); nil is every row, where the type lacks the property or the condition
    /// does not pin it.
    package var key: Value?
    /// What remains to be tested on the rows of that key: normalised, so that equal conditions written in another order are equal.
    package var residual: BoundPredicate

    package init(key: Value?, residual: BoundPredicate) {
        self.key = key
        self.residual = residual
    }
}

extension Predicate {
    /// Splits the condition by the indexed property: a row satisfies the condition if and only if it satisfies the residual of an
    /// entry with its key, or of an entry for every row. No entry at all: no row does.
    package func indexForm(indexedProperty: Int?) -> [IndexEntry] {
        let parts = IndexForm(property: indexedProperty).entries(bound.normalized)
        var seen: Set<IndexEntry> = []
        var entries: [IndexEntry] = []
        for part in parts {
            let entry = IndexEntry(key: part.key, residual: part.residual.normalized)
            if entry.residual != .constant(false), seen.insert(entry).inserted { entries.append(entry) }
        }
        return entries
    }
}

private struct IndexForm {
    let property: Int?

    func entries(_ predicate: BoundPredicate) -> [IndexEntry] {
        guard property != nil else { return [IndexEntry(key: nil, residual: predicate)] }
        switch predicate {
        case .constant(false): return []
        case .or(let parts): return parts.flatMap(entries)
        case .and(let parts): return conjunction(parts)
        case .test(let subject, let test):
            return keys(subject, test)?.map { IndexEntry(key: $0, residual: .constant(true)) } ?? whole(predicate)
        case .constant, .not, .properties: return whole(predicate)
        }
    }

    private func whole(_ predicate: BoundPredicate) -> [IndexEntry] { [IndexEntry(key: nil, residual: predicate)] }

    /// The keys that a comparison allows; nil when it is none of the indexed property.
    private func keys(_ subject: Subject, _ test: Test) -> [Value]? {
        guard case .property(property) = subject, !test.foldsCase else { return nil }
        switch (test.comparison, test.value) {
        case (.equal, let value): return [value]
        case (.isIn, .list(let values)): return values
        default: return nil
        }
    }

    /// Takes the part that pins the property to the fewest keys and leaves the others to be tested.
    private func conjunction(_ parts: [BoundPredicate]) -> [IndexEntry] {
        var best: (index: Int, entries: [IndexEntry])?
        for (index, part) in parts.enumerated() {
            let candidate = entries(part)
            guard candidate.allSatisfy({ $0.key != nil }), candidate.count < best?.entries.count ?? .max else { continue }
            best = (index, candidate)
        }
        guard let best else { return whole(.conjunction(parts)) }
        var rest = parts
        rest.remove(at: best.index)
        let remaining = BoundPredicate.conjunction(rest)
        return best.entries.map { IndexEntry(key: $0.key, residual: .conjunction([$0.residual, remaining])) }
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
