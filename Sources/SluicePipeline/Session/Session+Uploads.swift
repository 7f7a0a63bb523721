import Logging
import SluiceCore
import SluicePorts
import SluiceValues
import SluiceWire

/// The uploads of a session: commits, flushes, acknowledgements and announced positions.
extension Session {
    func upload(_ upload: PBUpload) async throws {
        guard let file, let user else { return }
        if upload.compensation > 0 { try await services.clients.acknowledgeCompensations(id: file.id, upTo: upload.compensation) }
        // All changesets of the message are judged by one permission snapshot and one view, as they are after the last suspension.
        let permissions = boundPermissions()
        let schema = permissions.schema
        let writer = Committer.Writer(
            client: file.id, session: file.session, user: user.user, permissions: permissions, view: machine.views.known,
            compensation: upload.compensation, seen: replica.seen, numbering: machine.uploads.numbering)
        for message in upload.changesets {
            // A session that failed meanwhile writes no more.
            guard machine.isOpen else { return }
            var changeset = try SessionMessages.changeset(message, schema: schema.schema)
            completion?.complete(&changeset)
            // A resend: acknowledge it again without effect.
            guard try machine.take(changeset: changeset.number) else {
                let lsn = try await services.snapshots.currentLSN()
                services.observer.uploaded(undone: 0, nanoseconds: nil)
                await acknowledge(Acknowledgement(changeset: changeset.number, lsn: lsn, isCommit: false))
                continue
            }
            let begin = services.environment.monotonicNanoseconds()
            let outcome = try await services.committer.commit(changeset, by: writer)
            services.observer.uploaded(
                undone: outcome.rejected.count, nanoseconds: services.environment.monotonicNanoseconds() - begin)
            note(outcome.rejected)
            let compensation = outcome.compensation.map {
                SessionMessages.compensation(id: $0, writes: outcome.rejected)
            }
            await acknowledge(
                Acknowledgement(
                    changeset: changeset.number, lsn: outcome.lsn, isCommit: true, compensation: compensation, futile: outcome.futile))
        }
    }

    /// Logs one line for a changeset, however many of its writes were rejected. The database has the others.
    private func note(_ rejected: [WriteRejection]) {
        guard let first = rejected.first else { return }
        logger.log(
            level: rejected.contains { $0.cause == .database } ? .warning : .info, "Writes were undone.",
            metadata: [
                "count": "\(rejected.count)", "changeset": "\(first.changeset)", "type": "\(first.object.type)",
                "key": "\(ExtendedJSON.json(first.object.key).text.prefix(200))", "reason": "\(first.reason)",
                "rule": "\(first.rule ?? "")",
            ])
    }

    /// Acknowledges a changeset once it survives a crash. The next changeset is processed meanwhile.
    private func acknowledge(_ next: Acknowledgement) async {
        perform(machine.handle(.committed(next)))
        // Backpressure: the client's next messages wait for the disk.
        if machine.uploads.isFull { await tasks.flushing?.value }
    }

    /// Sends acknowledgements until none is left: one wait for the disk covers all changesets committed before it.
    func flush() async {
        defer { tasks.flushing = nil }
        // Loop: a changeset committed during the wait is not covered by it.
        while case let durable = machine.nextFlush(), let last = durable.last {
            do {
                try await services.committer.durable()
            } catch {
                fail(SluiceError(error, otherwise: .internalError, "Committed changesets could not be flushed to disk."))
                return
            }
            // Compensating writes precede the acknowledgement, after which the client drops its changeset.
            for message in durable.compactMap(\.compensation) { send(message) }
            machine.compensationsSent()
            send(SessionMessages.uploadAck(of: durable, lsn: last.lsn))
            await announce(AwaitedPosition(lsn: last.lsn, isCommit: last.isCommit))
        }
    }

    /// Waits until the changesets and batches of the messages handled so far have their acknowledgements, or the session has ended.
    ///
    /// A barrier may wait for other gateways, so its answer is not awaited.
    package func answered() async {
        while machine.isOpen, let task = tasks.flushing ?? tasks.taking { await task.value }
    }

    /// Notifies the client once delivery has passed a position. If no view is live, the notification is deferred.
    func announce(_ position: AwaitedPosition) async {
        // Before the first view, a position would claim rows that the client lacks.
        while machine.views.isInStep, let target = subscriber {
            if await services.fanout.announce(position.lsn, isCommit: position.isCommit, to: target) { return }
            // If another subscriber has replaced this one meanwhile, try again with that one.
            if target == subscriber { break }
        }
        machine.deferAnnouncement(of: position)
    }
}
