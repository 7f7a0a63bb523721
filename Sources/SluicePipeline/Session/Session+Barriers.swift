import SluiceCore
import SluicePorts
import SluiceWire

/// Barriers: they notify a client that it has everything committed before its request.
extension Session {
    /// Queues a barrier. Later messages are handled meanwhile.
    func reach(_ mark: PBMark) async {
        perform(machine.handle(.barrier(mark.id)))
        if machine.barriers.isFull { await tasks.answering?.value }
    }

    /// Answers all pending barriers together.
    func answerBarriers() async {
        defer { tasks.answering = nil }
        while case let ids = machine.nextBarriers(), !ids.isEmpty {
            do {
                // The position is read after the request, so that everything committed before the request precedes it.
                let lsn = try await services.snapshots.currentLSN()
                try await services.fanout.passed(lsn, milliseconds: 30_000)
                await settled()
                await announce(AwaitedPosition(lsn: lsn, isCommit: false))
                // Changesets uploaded before the barrier are acknowledged before its answer.
                await tasks.flushing?.value
            } catch {
                return fail(SluiceError(error, otherwise: .timeout, "A barrier was not reached."))
            }
            for id in ids where machine.isOpen { send(SessionMessages.markReached(id)) }
        }
    }

    /// Waits until the view's members reflect everything delivered so far.
    /// One search that began after the call suffices, however many follow.
    private func settled() async {
        let since = machine.views.generation
        while machine.isOpen {
            await rulesAvailable()
            guard !machine.views.isSettled(since: since, isStale: isStale) else { return }
            membersChanged()
            await tasks.work?.value
        }
    }
}
