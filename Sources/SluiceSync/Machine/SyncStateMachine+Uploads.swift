import SluiceCore
import SluiceReplica
import SluiceWire

/// What the file has for the gateway: subscription sets, changesets, asymmetric objects, marks.
extension SyncStateMachine {
    mutating func localChange() {
        session?.mustReadSets = true
        session?.mustReadChangesets = true
        session?.mustReadIngest = true
        pump()
    }

    /// Does whatever can be done now: called after everything that may have made room.
    mutating func pump() {
        guard phase == .open, session != nil else { return }
        readMore()
        guard session?.latest != nil else { return }
        subscribe()
        uploadMore()
        readMore()
        if session?.hasUnsentSet == false { sendMarks() }
        if session?.isUploaded == true { finishUploads() }
    }

    // MARK: Reading the file

    private mutating func readMore() {
        guard var session, session.asked == nil else { return }
        let canTake = session.queue.isEmpty
        let wantsIngest = session.mustReadIngest && session.ingestInFlight.count < SyncSession.ingestWindow
        guard session.mustReadSets || session.mustReadChangesets && canTake || wantsIngest else { return }
        // Whenever sets are read and there is room, changesets are read after them: a set must not be sent before the
        // changesets that were made before it.
        let query = LocalQuery(
            changesetsAfter: canTake ? session.readThrough : nil, maximumBytes: SyncSession.uploadMessage,
            ingestAfter: wantsIngest ? session.ingestThrough : nil)
        session.asked = query
        session.isStale = false
        session.mustReadSets = false
        if canTake { session.mustReadChangesets = false }
        if wantsIngest { session.mustReadIngest = false }
        self.session = session
        actions.append(.read(connection, query))
    }

    mutating func read(_ pending: LocalPending) {
        guard let asked = session?.asked else { return }
        let isStale = session?.isStale == true
        session?.asked = nil
        session?.isStale = false
        session?.latest = pending.latest
        session?.active = pending.active
        do throws(SluiceError) {
            if asked.changesetsAfter != nil, !isStale { try enqueue(pending.changesets) }
            if asked.ingestAfter != nil { try ingest(pending.ingest) }
        } catch {
            end(error, .stopped(error))
            return
        }
        pump()
    }

    private mutating func enqueue(_ changesets: [Changeset]) throws(SluiceError) {
        guard let schema = session?.schema?.schema else { return }
        session?.isExhausted = changesets.isEmpty
        for changeset in changesets {
            let message = try PBChangeset(changeset, schema: schema)
            session?.queue.append((message, try WireProtocol.encode(message).count))
            session?.readThrough = changeset.number
        }
        if !changesets.isEmpty { session?.mustReadChangesets = true }
    }

    private mutating func ingest(_ batch: IngestBatch?) throws(SluiceError) {
        guard let batch, let schema = session?.schema?.schema else {
            session?.isIngestExhausted = true
            return
        }
        var message = PBIngest()
        message.number = batch.number
        for object in batch.objects { message.objects.append(try PBObjectChange(object, schema: schema)) }
        session?.isIngestExhausted = false
        session?.mustReadIngest = true
        session?.ingestThrough = batch.number
        session?.ingestInFlight.append(batch.number)
        send(.ingest(message))
    }

    // MARK: Subscriptions

    private mutating func subscribe() {
        guard let session, let latest = session.latest else { return }
        if session.subscribed > 0 {
            if session.hasUnsentSet, session.unsentBeforeLatest == false { subscribe(latest) }
            return
        }
        guard latest.version > 0 else { return }
        let active = session.active.flatMap { $0.version > 0 ? $0 : nil }
        if latest.isRefused {
            if let active { subscribe(active) }
        } else if let active, session.unsentBeforeLatest != false {
            // What was written under the older set is only allowed in its view. Until a read has told whether there is
            // any, nothing is sent.
            if session.unsentBeforeLatest == true { subscribe(active) }
        } else {
            subscribe(latest)
        }
    }

    private mutating func subscribe(_ set: StoredSubscriptionSet) {
        session?.subscribed = set.version
        session?.awaiting = set.version
        var message = PBSubscribe()
        message.version = set.version
        message.queries = set.subscriptions.map { subscription in
            var query = PBQuery()
            query.type = subscription.type
            query.text = subscription.query
            return query
        }
        send(.subscribe(message))
    }

    // MARK: Changesets

    /// The highest changeset that may be sent now.
    private func uploadLimit(_ session: SyncSession) -> UInt64 {
        guard session.awaiting == nil, let latest = session.latest, !session.isStuck else { return 0 }
        // Without a view of its own the gateway refuses every write.
        guard session.settled > 0 || latest.version == 0 else { return 0 }
        return session.hasUnsentSet ? latest.changesetsBefore : .max
    }

    private mutating func uploadMore() {
        guard let session else { return }
        let limit = uploadLimit(session)
        while let next = self.session?.queue.first, next.message.number <= limit {
            let room = SyncSession.uploadWindow - (self.session?.inFlightBytes ?? 0)
            guard room > 0, next.bytes <= room || self.session?.inFlight.isEmpty == true else { return }
            let taken = takeMessage(limit: limit, room: room)
            if taken.isEmpty { return }
            upload(taken)
        }
        // The set that waited for the last of these can go now.
        if session.hasUnsentSet, session.subscribed > 0 { subscribe() }
    }

    /// Takes as many changesets as fit one message, at least one.
    private mutating func takeMessage(limit: UInt64, room: Int) -> [PBChangeset] {
        var taken: [PBChangeset] = []
        var bytes = 0
        while let next = session?.queue.first, next.message.number <= limit {
            if next.bytes + 64 > session?.maximumMessageBytes ?? 0 {
                if taken.isEmpty { stick(next.message.number, bytes: next.bytes) }
                break
            }
            if !taken.isEmpty, bytes + next.bytes > min(SyncSession.uploadMessage, room) { break }
            bytes += next.bytes
            taken.append(next.message)
            session?.queue.removeFirst()
            session?.sentThrough = next.message.number
            session?.inFlight.append(SyncSession.Upload(number: next.message.number, bytes: next.bytes))
        }
        return taken
    }

    private mutating func stick(_ number: UInt64, bytes: Int) {
        session?.isStuck = true
        let maximum = session?.maximumMessageBytes ?? 0
        actions.append(
            .report(
                .warning(
                    SluiceError(
                        .limitsExceeded, "Transaction \(number) has \(bytes) bytes, more than a message of \(maximum) can carry."))))
    }

    mutating func upload(_ changesets: [PBChangeset]) {
        var message = PBUpload()
        message.changesets = changesets
        message.compensation = session?.local.compensation ?? 0
        send(.upload(message))
    }
}
