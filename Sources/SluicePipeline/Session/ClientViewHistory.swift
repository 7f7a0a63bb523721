import SluiceCore
import SluicePorts
import SluiceWire

/// The rows that a client replica had seen at its positions, derived from its bootstraps.
///
/// A row that existed at such a point, and that the client creates nevertheless, was outside of its view.
package struct ClientViewHistory: Sendable {
    private struct Point: Sendable {
        /// The position from which the replica certainly shows the bootstrap.
        var position: LSN
        var point: SnapshotPoint
    }

    private var points: [Point] = []

    init() {}

    /// Decodes the client's record of its last bootstrap.
    init(_ held: PBHeld) {
        guard !held.cluster.isEmpty, held.lsn > 0, let transaction = SnapshotPoint.transaction(told: held.transaction) else { return }
        add(SnapshotPoint(cluster: held.cluster, transaction: transaction), at: LSN(rawValue: held.lsn))
    }

    mutating func add(_ point: SnapshotPoint, at position: LSN) {
        points.append(Point(position: position, point: point))
        // Changesets with a base older than these points are merged like any other.
        if points.count > 16 { points.removeFirst() }
    }

    /// Returns `true` if a row last written by transaction `writer` existed when the replica was at `base`.
    func includes(_ writer: UInt32, at base: LSN) -> Bool {
        guard let now = points.last?.point, let then = points.last(where: { $0.position <= base })?.point,
            then.cluster == now.cluster, then.isNear(now.transaction)
        else { return false }
        // Numbers wrap at 32 bits, so compare by their distance on the circle.
        return writer &- UInt32(truncatingIfNeeded: then.transaction) >= 1 << 31
    }
}

/// A session's knowledge of its client replica: the rows that it has, and the rows that it has staged.
struct ReplicaRecord {
    /// The client view record; nil if unknown.
    var held: ClientViewRecord?
    /// The offer of the client's Hello; nil once a bootstrap has begun, or if its history is unproven.
    var offer: ResumeOffer?
    /// The staged rows of unfinished bootstraps.
    var progress = BootstrapProgress()
    var seen = ClientViewHistory()
}

/// A client's offer to resume its last session from the log.
struct ResumeOffer {
    var held: PBHeld
    /// The position that the replica shows.
    var applied: LSN
    /// A transaction that proves the history of `applied`.
    var anchor: HistoryAnchor
}
