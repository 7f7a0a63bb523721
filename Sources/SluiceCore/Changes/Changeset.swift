/// A client's transaction, as the SDK stores it until its acknowledgement and as the gateway merges it.
package struct Changeset: Hashable, Sendable {
    /// The number from 1, without gaps within a client replica.
    package var number: UInt64
    /// The commit time on the device.
    package var time: HybridTime
    /// The server position that the device had applied when it committed.
    package var base: LSN
    /// The changes in the order in which they were made. An object may occur more than once.
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

/// The changes of a transaction to one object. Properties are named: numbers belong to the wire, indices to rows.
package struct ObjectChange: Hashable, Sendable {
    package enum Kind: UInt8, Hashable, Sendable {
        /// Creates the object, or merges the values into an existing one.
        case create
        case set
        case delete
    }

    package var object: ObjectKey
    package var kind: Kind
    /// The written values without the primary key. Empty for a delete.
    package var values: [String: Value]
    /// The names in `values` that are defaults of a creation. They lose against explicit values.
    package var defaults: Set<String>
    /// The amounts added to integers.
    package var counters: [String: Int64]
    /// The edits inside values, in their order. They apply after `values` and `counters`.
    package var edits: [Edit]
    /// The hashes of the server's values that the device knew when it made the change, by changed property. Empty for objects that the
    /// device did not receive from the server.
    package var seen: [String: ValueHash]
    /// The writer's own changes that its lists lack, by property. Only writers in the gateway's process have them.
    package var discarded: [String: DiscardedChanges] = [:]

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

/// The changesets of a client whose effects its lists lack, because it took the server's list instead.
///
/// A client of Realm's protocol discards its pending edits of a list for a list that it receives as a whole. The gateway merges these edits
/// all the same. The client's later indices refer to a list without them, until its base includes them.
package struct DiscardedChanges: Hashable, Sendable {
    /// The number of the last of the changesets.
    package var changeset: UInt64
    /// The first tag of later changesets.
    package var nextTag: UInt64
    /// `true` if clears are among the discarded changes. Replacements of an embedded object are not: the later one wins.
    package var hasClears: Bool
    /// `true` if the next changeset creates the object, and the client has not received the row that the server may have. Its lists have
    /// its own later changes alone, whatever its base includes.
    package var isBeforeCreation = false

    package init(changeset: UInt64, nextTag: UInt64, hasClears: Bool = true) {
        (self.changeset, self.nextTag, self.hasClears) = (changeset, nextTag, hasClears)
    }

    /// Creates the changes before the creation of an object.
    /// - Parameters:
    ///   - changeset: The number of the changeset that creates the object.
    ///   - firstTag: The first tag of this changeset.
    package init(creation changeset: UInt64, firstTag: UInt64) {
        // Earlier clears are known: they belong to an earlier copy of the object.
        self.init(changeset: max(changeset, 1) - 1, nextTag: firstTag, hasClears: false)
        isBeforeCreation = true
    }
}
