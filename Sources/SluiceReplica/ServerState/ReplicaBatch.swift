package import SluiceCore

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
