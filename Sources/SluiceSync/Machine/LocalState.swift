package import SluiceCore
package import SluiceReplica
import SluiceWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The state of the client replica when a session begins.
package struct LocalState: Hashable, Sendable {
    package var identity: ReplicaIdentity?
    package var applied: AppliedPosition
    package var records: ServerRecords
    package var compensation: UInt64
    /// The lowest changeset that is not acknowledged. `nil` if there is none.
    package var firstUnacknowledged: UInt64?
    /// A lower bound of the base positions of all changesets still to send.
    package var oldestBase: LSN
    package var resets: ResetProgress
    /// `true` if the replica belongs to another user.
    package var isForeign: Bool

    package init(
        identity: ReplicaIdentity? = nil, applied: AppliedPosition = AppliedPosition(lsn: .zero, version: 0),
        records: ServerRecords = ServerRecords(), compensation: UInt64 = 0, firstUnacknowledged: UInt64? = nil,
        oldestBase: LSN = .zero, resets: ResetProgress = ResetProgress(), isForeign: Bool = false
    ) {
        self.isForeign = isForeign
        self.identity = identity
        self.applied = applied
        self.records = records
        self.compensation = compensation
        self.firstUnacknowledged = firstUnacknowledged
        self.oldestBase = oldestBase
        self.resets = resets
    }
}

/// The gateway's records that the client replica keeps unchanged for the next `Hello`.
package struct ServerRecords: Hashable, Sendable {
    /// The client view record: the gateway's last `PBHeld`, encoded. Empty if there is none.
    package var held: [UInt8]
    /// The resume offer: the gateway's last `PBCheckpoint`, encoded. Empty if there is none.
    package var checkpoint: [UInt8]

    package init(held: [UInt8] = [], checkpoint: [UInt8] = []) {
        self.held = held
        self.checkpoint = checkpoint
    }
}

/// The client resets of a replica.
package struct ResetProgress: Hashable, Sendable {
    package var underWay: ReplicaReset?
    /// The number of resets begun since the last that ended.
    package var begun: UInt64

    package init(underWay: ReplicaReset? = nil, begun: UInt64 = 0) {
        self.underWay = underWay
        self.begun = begun
    }
}

/// The pending data of the client replica, the answer to `SyncAction.read`.
package struct LocalPending: Hashable, Sendable {
    /// The set that the replica is complete for and every later one, ascending, never empty. Read before the changesets, so that those
    /// made before a set are not missed.
    package var sets: [StoredSubscriptionSet]
    package var changesets: [Changeset]
    package var ingest: IngestBatch?

    package init(sets: [StoredSubscriptionSet], changesets: [Changeset] = [], ingest: IngestBatch? = nil) {
        self.sets = sets
        self.changesets = changesets
        self.ingest = ingest
    }
}

extension PBHello {
    /// Describes the client replica to the gateway.
    init(_ state: LocalState) {
        self.init()
        if let identity = state.identity {
            client = identity.client.rawValue
            secret = Data(identity.secret)
        }
        appliedLsn = state.applied.lsn.rawValue
        appliedVersion = state.applied.version
        witness = Data(state.applied.witness)
        oldestBase = state.oldestBase.rawValue
        // An unreadable record counts as none: the gateway then sends everything.
        let records = state.records
        if !records.held.isEmpty, let known = try? WireProtocol.decode(PBHeld.self, from: records.held) { held = known }
        if !records.checkpoint.isEmpty, let known = try? WireProtocol.decode(PBCheckpoint.self, from: records.checkpoint) {
            checkpoint = known
        }
    }
}
