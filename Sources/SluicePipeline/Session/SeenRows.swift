import SluiceCore
import SluiceWire

/// What a client's file had seen of the database at its positions, by its bootstraps.
///
/// A row that was there at such a point, and that the client makes all the same, was out of its view.
package struct SeenRows: Sendable {
    private struct Point: Sendable {
        /// The file shows the bootstrap from here on, at the latest.
        var position: LSN
        var point: SnapshotPoint
    }

    private var points: [Point] = []

    init() {}

    /// What the client says of its last bootstrap.
    init(_ held: PBHeld) {
        guard !held.cluster.isEmpty, held.lsn > 0, let transaction = SnapshotPoint.transaction(told: held.transaction) else { return }
        add(SnapshotPoint(cluster: held.cluster, transaction: transaction), at: LSN(rawValue: held.lsn))
    }

    mutating func add(_ point: SnapshotPoint, at position: LSN) {
        points.append(Point(position: position, point: point))
        // Changesets that are older than that are merged like any other.
        if points.count > 16 { points.removeFirst() }
    }

    /// Whether a row that this transaction wrote last was there when the file stood at `base`.
    func includes(_ writer: UInt32, at base: LSN) -> Bool {
        guard let now = points.last?.point, let then = points.last(where: { $0.position <= base })?.point,
            then.cluster == now.cluster, then.isNear(now.transaction)
        else { return false }
        return writer &- UInt32(truncatingIfNeeded: then.transaction) >= 1 << 31
    }
}
