import SluiceCore
import SluiceWire

/// What tells a client that it has everything up to the moment at which it asked.
extension Session {
    /// Marks that may wait for their answer before no more messages are handled.
    private static let mostMarks = 1_024

    /// Has a mark answered; messages behind it are handled meanwhile.
    func reach(_ mark: PBMark) async {
        marks.append(mark.id)
        if marking == nil {
            // Unstructured because: later messages need not wait for the mark. It ends with the bootstrap that it waits for, or by
            // the deadline of what was delivered.
            marking = Task { await self.answerMarks() }
        }
        if marks.count >= Self.mostMarks { await marking?.value }
    }

    /// Answers all marks that wait at a time together.
    private func answerMarks() async {
        defer { marking = nil }
        while !marks.isEmpty, state.phase == .open {
            let ids = marks
            marks = []
            do {
                let lsn = try await services.snapshots.currentLSN()
                try await services.fanout.passed(lsn, milliseconds: 30_000)
                await settled()
                await announce(lsn, isCommit: false)
                // What was uploaded before the mark is acknowledged before it is answered.
                await acknowledging?.value
            } catch {
                return fail(error as? SluiceError ?? SluiceError(.timeout, "A mark was not reached.", detail: "\(error)"))
            }
            for id in ids where state.phase == .open { send(SessionMessages.markReached(id)) }
        }
    }

    /// Returns when the view has the members that what was delivered by now decides on: it waits for one look at them that began
    /// later, however many follow.
    private func settled() async {
        let begun = looks.begun
        while state.phase == .open {
            await settleDoubt()
            guard isBuilding || watch?.channel.isStale == true, looks.over <= begun else { return }
            membersChanged()
            await bootstrap?.value
        }
    }
}
