import SluiceCore
package import SluiceQuery

/// What one session sees of one type: its subscriptions of the type, ORed, within what it may read.
package struct TypeView: Sendable {
    /// Index in `Schema.types`.
    package var type: Int
    package var predicate: Predicate
    /// By property index; nil is everything.
    package var mask: [Bool]?
    /// Stands for what the client is sent of a row: where it is read from, the properties that the client has, the mask.
    package var form: Fingerprint

    package init(type: Int, predicate: Predicate, mask: [Bool]?, form: Fingerprint = Fingerprint()) {
        self.type = type
        self.predicate = predicate
        self.mask = mask
        self.form = form
    }
}

/// A subscription set bound to the schema and cut to the session's permissions.
package struct View: Sendable {
    package var version: UInt64
    package var types: [TypeView]
    /// The partitions of the log in which its changes lie.
    package var partitions: [LogPartition]

    package init(version: UInt64, types: [TypeView], partitions: [LogPartition]) {
        self.version = version
        self.types = types
        self.partitions = partitions
    }

    package static let empty = View(version: 0, types: [], partitions: [])

    package func type(_ index: Int) -> TypeView? { types.first { $0.type == index } }
}
