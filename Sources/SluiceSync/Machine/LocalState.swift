package import SluiceCore
package import SluiceReplica

/// What the file held when a session began.
package struct LocalState: Hashable, Sendable {
    package var identity: ReplicaIdentity?
    package var applied: AppliedPosition
    package var compensation: UInt64
    /// The lowest changeset that is not acknowledged; nil when there is none.
    package var firstUnacknowledged: UInt64?

    package init(
        identity: ReplicaIdentity? = nil, applied: AppliedPosition = AppliedPosition(lsn: .zero, version: 0),
        compensation: UInt64 = 0, firstUnacknowledged: UInt64? = nil
    ) {
        self.identity = identity
        self.applied = applied
        self.compensation = compensation
        self.firstUnacknowledged = firstUnacknowledged
    }
}

extension StoredSubscriptionSet {
    var isRefused: Bool { if case .error = state { true } else { false } }
}

/// What is waiting in the file: the answer to `SyncAction.read`.
package struct LocalPending: Hashable, Sendable {
    /// Read before the changesets, so that those made before the set are among them.
    package var latest: StoredSubscriptionSet
    /// The set that the file is complete for, when that is another one.
    package var active: StoredSubscriptionSet?
    package var changesets: [Changeset]
    package var ingest: IngestBatch?

    package init(
        latest: StoredSubscriptionSet, active: StoredSubscriptionSet? = nil, changesets: [Changeset] = [],
        ingest: IngestBatch? = nil
    ) {
        self.latest = latest
        self.active = active
        self.changesets = changesets
        self.ingest = ingest
    }
}
