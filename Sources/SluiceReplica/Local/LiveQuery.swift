package import SluiceCore

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
