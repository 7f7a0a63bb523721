import Logging
import SluiceCore
import SluicePorts
import SluiceWire

extension Session {
    /// Resumes the client's last session with the log's changes since.
    /// - Returns: the live subscriber; nil if a bootstrap is needed.
    func resume(_ view: View, _ number: UInt64, _ runner: BootstrapRunner) async throws -> Fanout.Handle? {
        guard let offer = replica.offer.take() else { return nil }
        guard let held = replica.held, held.isAll(of: view), offer.held.lsn > 0, offer.applied.rawValue >= offer.held.lsn else {
            return cannotResume("the client's view record is of another view")
        }
        let (lsn, point) = try await services.snapshots.place()
        guard point.cluster == held.point.cluster else { return cannotResume("the database has another history") }
        // Like any bootstrap, this must include everything committed before the request.
        // This gateway may also be behind the client's previous one.
        try await services.fanout.passed(max(lsn, offer.applied), milliseconds: BootstrapRunner.patience)
        // Not earlier: a starting gateway knows it only after reading the log, and that is when every client reconnects.
        guard let complete = await services.feed.completeSince, offer.applied >= complete else {
            return cannotResume("the log begins behind position \(offer.applied)")
        }
        let now = ClientViewRecord(view, at: point)
        // Start from the anchor transaction, because the client has seen none after it.
        // A position alone is only a number: in a restored database, other commits may precede it.
        let id = try await runner.resume(view, replacing: subscriber, held: now, after: offer.anchor.lsn, services.resume) {
            self.perform(self.machine.handle(.ending(number: number, view)))
        }
        guard let id else { return cannotResume("the log lacks changes since position \(offer.anchor.lsn), or has too many") }
        replica.held = now
        replica.seen.add(point, at: await services.fanout.watermark)
        logger.debug("A session resumes from the log.")
        return id
    }

    /// Records why the session reads the tables.
    private func cannotResume(_ reason: String) -> Fanout.Handle? {
        logger.debug("A session cannot resume from the log.", metadata: ["reason": "\(reason)"])
        return nil
    }
}
