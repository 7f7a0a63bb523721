package import SluiceCore
package import SluiceValues

/// The identity that the gateway allotted to this client replica in its first session.
package struct ReplicaIdentity: Hashable, Sendable {
    package var client: ClientID
    package var secret: [UInt8]

    package init(client: ClientID, secret: [UInt8]) {
        self.client = client
        self.secret = secret
    }
}

/// The position that the replica is complete for: everything up to `lsn`, for the subscription set `version` (0: nothing yet).
package struct AppliedPosition: Hashable, Sendable {
    package var lsn: LSN
    package var version: UInt64
    /// The history anchor of `lsn`, opaque. Empty if the last bootstrap ended there; then the client view record contains it.
    package var witness: [UInt8]

    package init(lsn: LSN, version: UInt64, witness: [UInt8] = []) {
        self.lsn = lsn
        self.version = version
        self.witness = witness
    }
}

/// A change of the view. Its row is in the `rows` of the batch.
package struct ReplicaRowChange: Sendable {
    package enum Event: UInt8, Sendable { case entered, updated, deleted, leftQuery, lostPermission }

    /// The index in `Replica.schema.types`.
    package var type: Int
    package var event: Event
    /// The whole row for `entered` and `updated`, with cells in the order of the replica's `ObjectType`.
    package var row: RowRef?
    /// The primary key for the other events.
    package var key: Value?
    /// The encoded write times, in the arena of the batch's rows. Empty for SQL.
    package var times: Range<UInt32>

    package init(type: Int, event: Event, row: RowRef? = nil, key: Value? = nil, times: Range<UInt32> = 0..<0) {
        self.type = type
        self.event = event
        self.row = row
        self.key = key
        self.times = times
    }
}

/// Server transactions to apply: whole, in commit order. Reusable; `removeAll` keeps the capacity.
package struct ReplicaBatch: Sendable {
    package var rows = RowBuffer()
    package var changes: [ReplicaRowChange] = []
    /// The transactions' positions and ranges of changes.
    package var commits: [ReplicaCommit] = []
    /// The batch, with those before it, covers all commits up to this position.
    package var lsn: LSN = .zero
    /// The history anchor of `lsn`, opaque. Empty if the gateway sent none.
    package var witness: [UInt8] = []
    /// The numbers that write times use for properties, by type in the order of its properties. Empty if they are the replica's own.
    package var numbers: [[UInt32]] = []

    package init() {}

    package mutating func removeAll() {
        rows.removeAll()
        changes.removeAll(keepingCapacity: true)
        commits.removeAll(keepingCapacity: true)
    }
}

package struct ReplicaCommit: Sendable {
    package var lsn: LSN
    package var changes: Range<Int>
    /// The commit's time, in microseconds since 1970. 0 if unknown.
    package var time: Int64
    /// The replica's own changeset that the transaction committed. 0: none.
    package var changeset: UInt64
    /// The time of a client's writes. Zero for SQL.
    package var writeTime: HybridTime

    package init(lsn: LSN, changes: Range<Int>, time: Int64 = 0, changeset: UInt64 = 0, writeTime: HybridTime = .zero) {
        self.lsn = lsn
        self.changes = changes
        self.time = time
        self.changeset = changeset
        self.writeTime = writeTime
    }
}

/// The write times of a row of a bootstrap.
package struct StagedTimes: Hashable, Sendable {
    /// The primary key of the row.
    package var key: Value
    /// The encoded `WriteTimes`. Empty for a row that only SQL has written.
    package var times: [UInt8]
    /// The time of the row's last commit, in milliseconds since 1970.
    package var commitTime: Int64

    package init(key: Value, times: [UInt8], commitTime: Int64) {
        self.key = key
        self.times = times
        self.commitTime = commitTime
    }
}

/// A compensating write: a write that the gateway rejected, and that the replica has undone.
package struct CompensatingWrite: Hashable, Sendable {
    /// The changeset that carried it.
    package var changeset: UInt64
    package var object: ObjectKey
    /// A code of `ErrorCode`'s table, as the gateway sent it.
    package var code: UInt16
    /// A `RejectionCause`, or one that only a newer gateway knows. Empty for asymmetric objects.
    package var cause: String
    package var reason: String
    /// The fields at fault. Empty if the whole object is.
    package var fields: [String]
    /// The app's intended values, by property: the gateway's, overridden by the replica's own if it still has them.
    package var values: [String: Value]

    package init(
        changeset: UInt64 = 0, object: ObjectKey, code: UInt16, cause: String = "", reason: String, fields: [String] = [],
        values: [String: Value] = [:]
    ) {
        self.changeset = changeset
        self.object = object
        self.code = code
        self.cause = cause
        self.reason = reason
        self.fields = fields
        self.values = values
    }
}

/// A write to an object that was deleted by others, unknown to the device. It had no effect.
package struct FutileWrite: Hashable, Sendable {
    /// The changeset that carried it.
    package var changeset: UInt64
    package var object: ObjectKey

    package init(changeset: UInt64, object: ObjectKey) {
        self.changeset = changeset
        self.object = object
    }
}

/// Compensating writes that were not reported to the app yet. They survive a restart until `Replica.reported(_:)`.
package struct CompensationReport: Hashable, Sendable {
    /// The number in this replica, from 1.
    package var id: UInt64
    package var writes: [CompensatingWrite]

    package init(id: UInt64, writes: [CompensatingWrite]) {
        self.id = id
        self.writes = writes
    }
}

/// Asymmetric objects that are sent and acknowledged together.
package struct IngestBatch: Hashable, Sendable {
    /// The number, from 1. A batch keeps its number and its objects until it is acknowledged, unless no message can carry it.
    package var number: UInt64
    package var objects: [ObjectChange]

    package init(number: UInt64, objects: [ObjectChange]) {
        self.number = number
        self.objects = objects
    }
}

/// The objects to remove from a batch that no message can carry. Positions are those in `IngestBatch.objects`.
package struct IngestCut: Hashable, Sendable {
    package var batch: UInt64
    /// The positions of objects that alone are larger than a message. They are deleted.
    package var dropped: [Int] = []
    /// The report of the deleted objects, for the app.
    package var refused: [CompensatingWrite] = []
    /// The positions of objects that fit another message. They return to the queue.
    package var returned: [Int] = []

    package init(batch: UInt64) { self.batch = batch }
}

/// An object that the server removed from the device.
package struct LeftObject: Hashable, Sendable {
    package enum Reason: Int64, Hashable, Sendable {
        case deleted = 1
        case leftQuery = 2
        case lostPermission = 3
        /// It is not in the view of a bootstrap, for an unknown one of the other reasons.
        case leftView = 0
    }

    /// The maximum number of objects reported for one commit.
    package static let most = 20_000

    package var object: ObjectKey
    package var reason: Reason

    package init(object: ObjectKey, reason: Reason) {
        self.object = object
        self.reason = reason
    }
}

/// The effect of a client reset on the writes that the gateway does not have.
package enum ReplicaReset: UInt64, Hashable, Sendable {
    case recover = 1
    case discard = 2
    /// As `discard`, for the file of another user. Also drops the asymmetric objects, which would be sent in the new user's name.
    case disown = 3
}

/// An upload cursor: the last changeset and the last asymmetric object at a point in time.
package struct UploadCursor: Hashable, Sendable {
    package var changeset: UInt64
    package var object: UInt64
}

package enum SubscriptionState: Hashable, Sendable {
    /// Not sent, or not answered.
    case pending
    case bootstrapping
    case complete
    case error(code: UInt16, message: String)
    /// A newer set is complete, or this version is no longer kept.
    case superseded
}

/// One subscription of a set.
package struct StoredSubscription: Hashable, Sendable {
    /// The id of a subscription that gets its number when it is stored.
    package static let unnumbered: UInt64 = 0

    /// The id. It stays the same when the subscription's query is replaced.
    package var id: UInt64
    package var name: String?
    package var type: String
    /// The canonical query text.
    package var query: String
    package var created: Timestamp
    package var updated: Timestamp
    package var options: SubscriptionOptions

    package init(
        id: UInt64, name: String?, type: String, query: String, created: Timestamp, updated: Timestamp,
        options: SubscriptionOptions = SubscriptionOptions()
    ) {
        self.id = id
        self.name = name
        self.type = type
        self.query = query
        self.created = created
        self.updated = updated
        self.options = options
    }
}

/// A version of the subscription set, as stored. Version 0 is the empty set of a new replica.
package struct StoredSubscriptionSet: Hashable, Sendable {
    package var version: UInt64
    package var state: SubscriptionState
    package var subscriptions: [StoredSubscription]
    /// The last changeset made before the set. Changesets up to it are uploaded before the set is sent, as they belong to the older view.
    package var changesetsBefore: UInt64

    package init(
        version: UInt64, state: SubscriptionState, subscriptions: [StoredSubscription], changesetsBefore: UInt64 = 0
    ) {
        self.version = version
        self.state = state
        self.subscriptions = subscriptions
        self.changesetsBefore = changesetsBefore
    }
}

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
