import Logging
import SluiceCore
import SluiceWire

extension Session {
    /// Goes on where the client's last session ended, with what the log has since.
    /// - Returns: the live subscriber; nil when a bootstrap is needed.
    func resume(_ view: View, _ runner: BootstrapRunner) async throws -> Fanout.Handle? {
        guard let greeting = greeting.take(), let held, held.isAll(of: view), greeting.held.lsn > 0,
            greeting.applied.rawValue >= greeting.held.lsn
        else { return nil }
        let (lsn, point) = try await services.snapshots.place()
        guard point.cluster == held.point.cluster else { return nil }
        // Like any bootstrap it brings what was committed before it was asked for. A gateway may also be behind the one that the
        // client has been with.
        try await services.fanout.passed(max(lsn, greeting.applied), milliseconds: BootstrapRunner.patience)
        // Not before: a gateway that has just begun knows it when it has read the log, and this is when all come back.
        guard let complete = await services.feed.completeSince, greeting.applied >= complete else { return nil }
        let now = HeldView(view, at: point)
        // From the transaction that is known to be the same on. Behind it the client has seen none; but a position is no more than a
        // number, and in a restored database something else may have happened before it.
        let id = try await runner.resume(view, replacing: subscriber, held: now, after: greeting.witness.lsn, services.resume) {
            self.writable = view
        }
        guard let id else { return nil }
        self.held = now
        seen.add(point, at: await services.fanout.watermark)
        logger.debug("A session goes on from the log.")
        return id
    }
}
