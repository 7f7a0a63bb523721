/// A client's transaction: what the SDK stores while it waits, and what the gateway merges.
package struct Changeset: Hashable, Sendable {
    /// 1 and up, without gaps within a client file.
    package var number: UInt64
    /// When it was committed on the device.
    package var time: HybridTime
    /// The server position that the device had applied by then.
    package var base: LSN
    /// In the order they were made; an object may appear more than once.
    package var changes: [ObjectChange]

    package init(number: UInt64, time: HybridTime, base: LSN, changes: [ObjectChange]) {
        self.number = number
        self.time = time
        self.base = base
        self.changes = changes
    }
}

/// The identity of an object: its class and primary key.
package struct ObjectKey: Hashable, Sendable {
    package var type: String
    package var key: Value

    package init(type: String, key: Value) {
        self.type = type
        self.key = key
    }
}

/// What a transaction did to one object. Properties go by name: numbers belong to the wire, indices to rows.
package struct ObjectChange: Hashable, Sendable {
    package enum Kind: UInt8, Hashable, Sendable {
        /// Idempotent: values merge into an object that is already there (CR-4).
        case create
        case set
        case delete
    }

    package var object: ObjectKey
    package var kind: Kind
    /// The values written, the primary key left out; empty for a delete.
    package var values: [String: Value]
    /// Those of `values` that are defaults given at creation (they lose against explicit values, CR-6).
    package var defaults: Set<String>
    /// Amounts added to integers (CR-8).
    package var counters: [String: Int64]
    /// What was done inside of values, in its order; it comes after `values` and `counters`.
    package var edits: [Edit]
    /// Of properties that it changes: what the server had there when the change was made, as far as the device knew. Nothing of objects
    /// that the device had not from the server.
    package var seen: [String: ValueHash]

    package init(
        object: ObjectKey, kind: Kind, values: [String: Value] = [:], defaults: Set<String> = [],
        counters: [String: Int64] = [:], edits: [Edit] = [], seen: [String: ValueHash] = [:]
    ) {
        self.object = object
        self.kind = kind
        self.values = values
        self.defaults = defaults
        self.counters = counters
        self.edits = edits
        self.seen = seen
    }
}
