package import SluiceCore

/// The effect of one commit on the shown objects.
package struct ReplicaChange: Sendable {
    /// The version of the state after the commit.
    package var version: UInt64
    /// The changes by type index.
    package var types: [Int: TypeChange]

    package init(version: UInt64, types: [Int: TypeChange]) {
        self.version = version
        self.types = types
    }

    /// Merges a later change into this one.
    package mutating func merge(_ later: ReplicaChange) {
        version = max(version, later.version)
        types.merge(later.types) { $0.merging($1) }
    }
}

/// The objects of a class that a commit changed.
package struct TypeChange: Sendable, Hashable {
    /// The maximum number of keys. Beyond it, the whole class counts as changed.
    package static let keyLimit = 20_000

    /// The keys of rows inserted, updated or deleted. Empty if `isWhole`.
    package var keys: Set<Value>
    /// `true` if any row of the class may have changed.
    package var isWhole: Bool

    package init(keys: Set<Value> = [], isWhole: Bool = false) {
        self.keys = keys
        self.isWhole = isWhole
    }

    package mutating func insert(_ key: Value) {
        guard !isWhole else { return }
        keys.insert(key)
        if keys.count > TypeChange.keyLimit { self = TypeChange(isWhole: true) }
    }

    package func merging(_ other: TypeChange) -> TypeChange {
        if isWhole || other.isWhole || keys.count + other.keys.count > TypeChange.keyLimit { return TypeChange(isWhole: true) }
        return TypeChange(keys: keys.union(other.keys))
    }

    package func contains(_ key: Value) -> Bool { isWhole || keys.contains(key) }
}
