package import SluiceCore
package import SluiceQuery

/// A query over one class as the device runs it.
package struct ReplicaQuery: Sendable {
    package struct SortKey: Sendable, Hashable {
        package var property: Int
        package var ascending: Bool

        package init(property: Int, ascending: Bool) {
            self.property = property
            self.ascending = ascending
        }
    }

    package var type: Int
    /// Nil: every row.
    package var predicate: Predicate?
    /// The most significant first; rows that are equal in all keep the table's order.
    package var sort: [SortKey]
    package var limit: Int?

    package init(
        type: Int, predicate: Predicate? = nil, sort: [SortKey] = [], limit: Int? = nil
    ) {
        self.type = type
        self.predicate = predicate
        self.sort = sort
        self.limit = limit
    }

    /// The keys of the objects that match, in order. O(rows of the class): about 1 µs a row that matches, less for one that
    /// SQLite can rule out itself.
    package func run(on store: RowStore) throws(SluiceError) -> [Value] {
        var keys = try sorted(try matches(in: store))
        if let limit, keys.count > limit { keys.removeSubrange(limit...) }
        return keys
    }

    /// Whether one object matches.
    package func matches(_ row: Row) -> Bool { predicate?.matches(row) ?? true }

    private struct Match {
        var key: Value
        var sortValues: [Value]
    }

    private func matches(in store: RowStore) throws(SluiceError) -> [Match] {
        let properties = sort.map(\.property)
        var matches: [Match] = []
        if let condition = try condition(in: store.layouts[type]) {
            try store.select(type: type, where: condition, properties: properties) { key, values in
                matches.append(Match(key: key, sortValues: values))
            }
            return matches
        }
        let key = store.layouts[type].key
        try store.scan(type: type) { row throws(SluiceError) in
            if let predicate, !predicate.matches(row) { return }
            matches.append(Match(key: row.value(key) ?? .null, sortValues: properties.map { row.value($0) ?? .null }))
        }
        return matches
    }

    /// The predicate as SQL; nil when SQL cannot say exactly the same. Floating-point columns keep NaN and -0 in a form
    /// of their own, so conditions on them are evaluated on rows.
    private func condition(in layout: TableLayout) throws(SluiceError) -> SQLCondition? {
        guard let predicate else { return SQLCondition(text: "1", parameters: []) }
        let isExact = predicate.properties.allSatisfy { property in
            switch layout.kinds[property] {
            case .float, .double, .coded: false
            default: true
            }
        }
        guard isExact else { return nil }
        do throws(SluiceError) {
            return try predicate.sql(.sqlite)
        } catch {
            if error.code == .queryUnsupported { return nil }
            throw error
        }
    }

    private func sorted(_ matches: [Match]) throws(SluiceError) -> [Value] {
        if sort.isEmpty { return matches.map(\.key) }
        let order = matches.indices.sorted { left, right in
            for (index, key) in sort.enumerated() {
                let (l, r) = (matches[left].sortValues[index], matches[right].sortValues[index])
                if l == r { continue }
                if ReplicaQuery.isLess(l, r) { return key.ascending }
                if ReplicaQuery.isLess(r, l) { return !key.ascending }
            }
            return left < right
        }
        return order.map { matches[$0].key }
    }

    /// Null first, then by value; text by its bytes.
    static func isLess(_ left: Value, _ right: Value) -> Bool {
        switch (left, right) {
        case (.null, .null): false
        case (.null, _): true
        case (_, .null): false
        case (.bool(let l), .bool(let r)): !l && r
        case (.int(let l), .int(let r)): l < r
        case (.float(let l), .float(let r)): l < r || l.isNaN && !r.isNaN
        case (.double(let l), .double(let r)): l < r || l.isNaN && !r.isNaN
        case (.string(let l), .string(let r)): l.utf8.lexicographicallyPrecedes(r.utf8)
        case (.binary(let l), .binary(let r)): l.lexicographicallyPrecedes(r)
        case (.timestamp(let l), .timestamp(let r)): l < r
        case (.objectId(let l), .objectId(let r)): l < r
        case (.uuid(let l), .uuid(let r)): l < r
        default: false
        }
    }
}

/// The result of a query as it was last delivered, kept up to date change by change.
package struct LiveQuery {
    package let query: ReplicaQuery
    package private(set) var keys: [Value]

    /// Runs the query for the first time.
    package init(_ query: ReplicaQuery, on store: RowStore) throws(SluiceError) {
        self.query = query
        keys = try query.run(on: store)
    }

    /// Runs the query again when the change concerns its class.
    /// - Parameters:
    ///   - change: everything that was committed since the last run and that `store` sees.
    ///   - store: must see at least that.
    /// - Returns: how the result differs; nil when it does not.
    package mutating func update(_ change: ReplicaChange, on store: RowStore) throws(SluiceError) -> CollectionDiff? {
        guard let types = change.types[query.type] else { return nil }
        let fresh = try query.run(on: store)
        let diff = CollectionDiff(from: keys, to: fresh) { types.contains($0) }
        keys = fresh
        return diff.isEmpty ? nil : diff
    }
}
