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
    /// The client view record: the gateway's last `PBHeld`, encoded. Empty if there is none.
    package var held: [UInt8]
    /// The resume offer: the gateway's last `PBCheckpoint`, encoded. Empty if there is none.
    package var checkpoint: [UInt8]
    package var compensation: UInt64
    /// The lowest changeset that is not acknowledged. `nil` if there is none.
    package var firstUnacknowledged: UInt64?
    /// A lower bound of the base positions of all changesets still to send.
    package var oldestBase: LSN
    /// The client reset under way, and the number of resets begun since the last that ended.
    package var reset: ReplicaReset?
    package var resets: UInt64
    /// `true` if the replica belongs to another user.
    package var isForeign: Bool

    package init(
        identity: ReplicaIdentity? = nil, applied: AppliedPosition = AppliedPosition(lsn: .zero, version: 0),
        held: [UInt8] = [], checkpoint: [UInt8] = [], compensation: UInt64 = 0, firstUnacknowledged: UInt64? = nil, oldestBase: LSN = .zero,
        reset: ReplicaReset? = nil, resets: UInt64 = 0, isForeign: Bool = false
    ) {
        self.isForeign = isForeign
        self.identity = identity
        self.applied = applied
        self.held = held
        self.checkpoint = checkpoint
        self.compensation = compensation
        self.firstUnacknowledged = firstUnacknowledged
        self.oldestBase = oldestBase
        self.reset = reset
        self.resets = resets
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
        if !state.held.isEmpty, let known = try? WireProtocol.decode(PBHeld.self, from: state.held) { held = known }
        if !state.checkpoint.isEmpty, let known = try? WireProtocol.decode(PBCheckpoint.self, from: state.checkpoint) { checkpoint = known }
    }
}
