package import SluiceCore

/// What the gateway allotted to this file at its first session.
package struct ReplicaIdentity: Hashable, Sendable {
    package var client: ClientID
    package var secret: [UInt8]

    package init(client: ClientID, secret: [UInt8]) {
        self.client = client
        self.secret = secret
    }
}

/// What the file holds: everything up to `lsn`, for the subscription set `version` (0: nothing yet).
package struct AppliedPosition: Hashable, Sendable {
    package var lsn: LSN
    package var version: UInt64
    /// By what the gateway knows `lsn` again; empty when the last bootstrap ended there, whose `held` has it.
    package var witness: [UInt8]

    package init(lsn: LSN, version: UInt64, witness: [UInt8] = []) {
        self.lsn = lsn
        self.version = version
        self.witness = witness
    }
}

/// A change of the view, its row in the `rows` of the batch.
package struct ReplicaRowChange: Sendable {
    package enum Event: UInt8, Sendable { case entered, updated, deleted, leftQuery, lostPermission }

    /// Index into `Replica.schema.types`.
    package var type: Int
    package var event: Event
    /// The whole row for entered and updated, cells in the order of the replica's own `ObjectType`.
    package var row: RowRef?
    /// The primary key for the others.
    package var key: Value?
    /// The encoded write times, in the arena of the batch's rows; empty for SQL.
    package var times: Range<UInt32>

    package init(type: Int, event: Event, row: RowRef? = nil, key: Value? = nil, times: Range<UInt32> = 0..<0) {
        self.type = type
        self.event = event
        self.row = row
        self.key = key
        self.times = times
    }
}

/// Transactions of the server as they are applied: whole, in commit order. Reusable; `removeAll` keeps the capacity.
package struct ReplicaBatch: Sendable {
    package var rows = RowBuffer()
    package var changes: [ReplicaRowChange] = []
    /// Each transaction's position and the indices of its changes.
    package var commits: [ReplicaCommit] = []
    /// Everything up to here has been said.
    package var lsn: LSN = .zero
    /// By what the gateway knows the position again; empty for nothing.
    package var witness: [UInt8] = []
    /// The numbers by which write times name properties, by type and in the order of its properties; empty when they are the file's own.
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
    /// When it was committed, microseconds since 1970; 0 when that is not known.
    package var time: Int64
    /// The file's own changeset that it is; 0: none.
    package var changeset: UInt64
    /// The time that a client's writes merge with; zero for SQL.
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
    /// A `WriteTimes`, encoded; empty for a row that only SQL wrote.
    package var times: [UInt8]
    /// When the row was last committed, milliseconds since 1970.
    package var commitTime: Int64

    package init(key: Value, times: [UInt8], commitTime: Int64) {
        self.key = key
        self.times = times
        self.commitTime = commitTime
    }
}

/// A write that the gateway refused or undid.
package struct RefusedWrite: Hashable, Sendable {
    /// The one that carried it.
    package var changeset: UInt64
    package var object: ObjectKey
    /// Of `ErrorCode`'s table, as the gateway sent it.
    package var code: UInt16
    /// Of `RefusalCause`, or what a newer gateway says; empty for asymmetric objects.
    package var cause: String
    package var reason: String
    /// The fields at fault; empty where it is the whole object.
    package var fields: [String]
    /// What the app wanted to write, by property: as the gateway has it, and as the file has it where it does.
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

/// A write to an object that others had deleted, without the device knowing: nothing came of it.
package struct FutileWrite: Hashable, Sendable {
    /// The one that carried it.
    package var changeset: UInt64
    package var object: ObjectKey

    package init(changeset: UInt64, object: ObjectKey) {
        self.changeset = changeset
        self.object = object
    }
}

/// Refused writes that the app has not been told about yet. It survives a restart until `Replica.reported(_:)`.
package struct WriteRefusal: Hashable, Sendable {
    /// Number in this file, 1 and up.
    package var id: UInt64
    package var writes: [RefusedWrite]

    package init(id: UInt64, writes: [RefusedWrite]) {
        self.id = id
        self.writes = writes
    }
}

/// Asymmetric objects that travel as one and are acknowledged as one.
package struct IngestBatch: Hashable, Sendable {
    /// 1 and up; a batch keeps its number and its objects until it is acknowledged.
    package var number: UInt64
    package var objects: [ObjectChange]

    package init(number: UInt64, objects: [ObjectChange]) {
        self.number = number
        self.objects = objects
    }
}

/// An object that the server took off the device.
package struct LeftObject: Hashable, Sendable {
    package enum Reason: Int64, Hashable, Sendable {
        case deleted = 1
        case leftQuery = 2
        case lostPermission = 3
        /// It is not in the view that a bootstrap brought, and nobody knows which of the others it is.
        case leftView = 0
    }

    /// The most of one commit that are told.
    package static let most = 20_000

    package var object: ObjectKey
    package var reason: Reason

    package init(object: ObjectKey, reason: Reason) {
        self.object = object
        self.reason = reason
    }
}

/// What a client reset does with the writes that the gateway does not have.
package enum ReplicaReset: UInt64, Hashable, Sendable {
    case recover = 1
    case discard = 2
    /// As `discard`, of a file of another user: the asymmetric objects go as well, which would be sent in the new user's name.
    case disown = 3
}

/// The last changeset and the last asymmetric object of a point in time.
package struct UploadMark: Hashable, Sendable {
    package var changeset: UInt64
    package var object: UInt64
}

package enum SubscriptionState: Hashable, Sendable {
    /// Not yet sent, or not yet answered.
    case pending
    case bootstrapping
    case complete
    case error(code: UInt16, message: String)
    /// A newer set is complete, or this one's version is no longer kept.
    case superseded
}

/// One subscription of a set.
package struct StoredSubscription: Hashable, Sendable {
    /// Of one that gets its number when it is stored.
    package static let unnumbered: UInt64 = 0

    /// Stays the same while a subscription's query is replaced.
    package var id: UInt64
    package var name: String?
    package var type: String
    /// Canonical query text.
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

/// A version of the subscription set as the store keeps it. Version 0 is the empty set that every file begins with.
package struct StoredSubscriptionSet: Hashable, Sendable {
    package var version: UInt64
    package var state: SubscriptionState
    package var subscriptions: [StoredSubscription]
    /// The last changeset that was made before the set: those up to it are uploaded before the set is sent (SUB-3).
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

/// What one commit did to what apps see.
package struct ReplicaChange: Sendable {
    /// Of the state that the commit made.
    package var version: UInt64
    /// By type index.
    package var types: [Int: TypeChange]

    package init(version: UInt64, types: [Int: TypeChange]) {
        self.version = version
        self.types = types
    }

    /// Joins a later change to this one.
    package mutating func merge(_ later: ReplicaChange) {
        version = max(version, later.version)
        types.merge(later.types) { $0.merging($1) }
    }
}

/// Which objects of a class a commit touched.
package struct TypeChange: Sendable, Hashable {
    /// Beyond this many keys only the fact is kept.
    package static let keyLimit = 20_000

    /// Keys of rows inserted, updated or deleted; empty when `isWhole`.
    package var keys: Set<Value>
    /// So much changed that any row of the class may have.
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
