import SluiceCore
import SluicePorts

// The uploads, confirmations and marks of the sessions.
extension RealmConnection {
    // MARK: Uploads

    /// Waits until the messages received so far are handled and their uploads have answers, or the connection has ended.
    package func settled() async {
        while !machine.isClosed {
            await handling.ended()
            await performed()
            guard let number = answering.first else { return }
            await tasks[number]?.task.value
            answering.remove(number)
        }
    }

    /// Starts a task that answers the uploads of a session.
    func startAnswering(_ owner: RealmSessionID, _ body: @escaping @Sendable () async -> Void) {
        // Those that have ended leave nothing to wait for.
        answering = answering.filter { tasks[$0] != nil }
        answering.insert(start(owner, body))
    }

    func integrate(_ upload: RealmUploadMessage, for id: RealmSessionID) {
        guard let session = sessions[id], let file = session.file else { return }
        if upload.entries.isEmpty, !session.isIntegrating, session.view?.confirm(upload.progress.serverVersion) ?? false {
            return confirm(upload.progress, of: file, session, id)
        }
        session.add(upload)
        guard !session.isIntegrating else { return }
        session.isIntegrating = true
        startAnswering(id) { await self.integrateAll(id) }
    }

    /// Removes the uploads of the next turn, and returns them as one, with their number.
    private func takeUploads(_ id: RealmSessionID) -> (upload: RealmUploadMessage, count: Int)? {
        guard let waiting = sessions[id]?.uploads, let first = waiting.first else { return nil }
        var upload = first.message
        let others = waiting.dropFirst().prefix { $0.turn == first.turn }
        for other in others {
            upload.progress = other.message.progress
            upload.entries += other.message.entries
        }
        sessions[id]?.uploads.removeFirst(1 + others.count)
        return (upload, 1 + others.count)
    }

    /// Applies the uploads of a session in order.
    private func integrateAll(_ id: RealmSessionID) async {
        let (writes, store, user) = (services.writes, services.store, user)
        do {
            while let session = sessions[id], let file = session.file, let (upload, count) = takeUploads(id) {
                let come = session.confirmations.come
                // It may wait for the end of a view in slices.
                let step = "The upload of version \(upload.progress.clientVersion)"
                let result = try await within(services.waits.integrate, of: id, step) {
                    try await writes.integrate(upload, of: file, user: user)
                }
                services.observer.integrated(rejected: result.rejected.count)
                guard sessions[id] != nil else { return }
                try await within(services.waits.store, "Storing the progress of file \(file.file)") {
                    try await store.record(upload.progress, of: file)
                }
                let (server, client) = (result.integrated.serverVersion, result.integrated.clientVersion)
                try await wait(for: \.settled, until: server, of: id, services.waits.view, "The change of version \(server)")
                try await untilAcknowledged(result.previous, id)
                var integrated = result.integrated
                // With the confirmations that came before.
                let confirmations = sessions[id]?.takeConfirmations(upTo: come) ?? 0
                integrated.uploads = count + confirmations
                await submit(.integrated(id, integrated))
                // Entries made after the upload may follow now.
                session.acknowledged.reach(client)
            }
            sessions[id]?.isIntegrating = false
        } catch {
            await fail(id, error)
        }
    }

    // MARK: Confirmations

    /// Answers an upload without changesets once its progress is stored.
    private func confirm(_ progress: RealmUploadProgress, of file: RealmFileSession, _ session: FileSession, _ id: RealmSessionID) {
        // Most entries are confirmed while an earlier confirmation is being stored.
        services.store.confirmed(upTo: progress.serverVersion, of: file)
        session.confirmations.come += 1
        session.confirmed = progress
        guard !session.isConfirming else { return }
        session.isConfirming = true
        startAnswering(id) { await self.confirmAll(id) }
    }

    private func confirmAll(_ id: RealmSessionID) async {
        let store = services.store
        do {
            while let session = sessions[id], let file = session.file, session.confirmations.come > session.confirmations.answered {
                let (number, progress) = (session.confirmations.come, session.confirmed)
                // The store has a deadline for all files: a timer for each would cost more than the write.
                try await store.recordSoon(progress, of: file)
                // Others may have been answered with changesets meanwhile.
                guard let count = sessions[id]?.takeConfirmations(upTo: number), count > 0 else { continue }
                await submit(
                    .integrated(
                        id,
                        RealmIntegratedUpload(
                            clientVersion: progress.clientVersion, serverVersion: progress.serverVersion, uploads: count)))
            }
            sessions[id]?.isConfirming = false
        } catch {
            await fail(id, error)
        }
    }

    // MARK: Marks

    func catchUp(_ request: UInt64, for id: RealmSessionID) {
        guard sessions[id]?.view != nil else { return }
        sessions[id]?.mark = request
        guard sessions[id]?.isCatchingUp == false else { return }
        sessions[id]?.isCatchingUp = true
        start(id) { await self.answerMarks(id) }
    }

    private func answerMarks(_ id: RealmSessionID) async {
        do {
            while let session = sessions[id], let view = session.view, let request = session.mark {
                sessions[id]?.mark = nil
                let newest = try await within(services.waits.view, "The newest version for mark \(request)") {
                    try await view.newestVersion()
                }
                try await wait(for: \.reached, until: newest, of: id, services.waits.view, "The change of version \(newest)")
                await submit(.caughtUp(id, request: request))
            }
            sessions[id]?.isCatchingUp = false
        } catch {
            await fail(id, error)
        }
    }
}
