import SluiceCore
import SluicePorts
import SluiceWire

/// Barriers: they notify a client that it has everything committed before its request.
extension Session {
    /// The number of pending barriers above which the session stops reading messages.
    private static let mostMarks = 1_024

    /// Queues a barrier. Later messages are handled meanwhile.
    func reach(_ mark: PBMark) async {
        marks.append(mark.id)
        if marking == nil {
            // Unstructured because: later messages need not wait for the barrier.
            // It ends with the bootstrap that it waits for, or by the deadline of the delivery.
            marking = Task { await self.answerMarks() }
        }
        if marks.count >= Self.mostMarks { await marking?.value }
    }

    /// Answers all pending barriers together.
    private func answerMarks() async {
        defer { marking = nil }
        while !marks.isEmpty, state.phase == .open {
            let ids = marks
            marks = []
            do {
                // The position is read after the request, so that everything committed before the request precedes it.
                let lsn = try await services.snapshots.currentLSN()
                try await services.fanout.passed(lsn, milliseconds: 30_000)
                await settled()
                await announce(lsn, isCommit: false)
                // Changesets uploaded before the barrier are acknowledged before its answer.
                await acknowledging?.value
            } catch {
                return fail(SluiceError(error, otherwise: .timeout, "A barrier was not reached."))
            }
            for id in ids where state.phase == .open { send(SessionMessages.markReached(id)) }
        }
    }

    /// Waits until the view's members reflect everything delivered so far.
    /// One search that began after the call suffices, however many follow.
    private func settled() async {
        let begun = looks.begun
        while state.phase == .open {
            await markRulesAvailable()
            guard isBuilding || watch?.channel.isStale == true, looks.over <= begun else { return }
            membersChanged()
            await bootstrap?.value
        }
    }
}
