import SluiceCore
import SluiceReplica
import SluiceWire

/// The uploads of the client replica: subscription sets, changesets, asymmetric objects, barriers.
extension SyncStateMachine {
    mutating func localChange() {
        session?.mustReadSets = true
        session?.mustReadChangesets = true
        session?.mustReadIngest = true
        pump()
    }

    /// Sends everything that can be sent now. Called after each event that may have made room.
    mutating func pump() {
        guard phase == .open, session != nil else { return }
        readMore()
        // Before the first read of the sets, the right view is unknown.
        guard session?.sets.isEmpty == false else { return }
        while advance() {}
        readMore()
        if session?.hasUnsentSet == false { sendMarks() }
        if session?.isUploaded == true { finishUploads() }
    }

    // MARK: Reading the file

    private mutating func readMore() {
        guard var session, session.asked == nil else { return }
        let canTake = session.queue.isEmpty
        let wantsIngest = session.mustReadIngest && session.ingestInFlight.count < Limits.ingestWindow
        guard session.mustReadSets || session.mustReadChangesets && canTake || wantsIngest else { return }
        // If there is room, every read of the sets reads the changesets after them: a set must not be sent before the changesets made
        // before it.
        let query = LocalQuery(
            changesetsAfter: canTake ? session.readThrough : nil, maximumBytes: SyncSession.uploadMessage,
            ingestAfter: wantsIngest ? session.ingestThrough : nil, ingestTaken: session.ingestTaken)
        session.asked = query
        session.isStale = false
        session.mustReadSets = false
        if canTake { session.mustReadChangesets = false }
        if wantsIngest { session.mustReadIngest = false }
        // A wait that begins during the read may follow a set that this read does not see.
        session.marksReading = downloadWaits
        self.session = session
        actions.append(.read(connection, query))
    }

    mutating func read(_ pending: LocalPending) {
        guard let asked = session?.asked else { return }
        let isStale = session?.isStale == true
        session?.asked = nil
        session?.isStale = false
        session?.sets = pending.sets
        let marks = session?.marksReading ?? []
        session?.marksRead.formUnion(marks)
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
            let bytes = try WireProtocol.encode(message).count
            guard bytes + UploadSize.frame <= session?.maximumMessageBytes ?? 0 else {
                // The replica replaces it by an empty changeset, which the next read returns.
                setAside(changeset, bytes: bytes)
                break
            }
            session?.queue.append((message, bytes))
            session?.readThrough = changeset.number
        }
        if !changesets.isEmpty { session?.mustReadChangesets = true }
    }

    private mutating func ingest(_ batch: IngestBatch?) throws(SluiceError) {
        guard let batch, let schema = session?.schema?.schema else {
            session?.isIngestExhausted = true
            return
        }
        session?.isIngestExhausted = false
        session?.mustReadIngest = true
        var message = PBIngest()
        message.number = batch.number
        for object in batch.objects { message.objects.append(try PBObjectChange(object, schema: schema)) }
        let bytes = try WireProtocol.encode(message).count
        guard bytes + UploadSize.frame <= session?.maximumMessageBytes ?? 0 else {
            // The next read returns the shorter batch.
            try shorten(batch, message.objects)
            return
        }
        session?.ingestThrough = batch.number
        session?.ingestInFlight.append(batch.number)
        send(.ingest(message))
    }

    /// Removes from a batch the objects that no message can carry, and reports them to the gateway. Objects that fit another message
    /// return to the queue. The batch keeps its number: the gateway has not taken it, as it accepts no larger message.
    private mutating func shorten(_ batch: IngestBatch, _ messages: [PBObjectChange]) throws(SluiceError) {
        let maximum = session?.maximumMessageBytes ?? 0
        var cut = IngestCut(batch: batch.number)
        var total = UploadSize.ingestFrame
        var first: SluiceError?
        for (index, (object, message)) in zip(batch.objects, messages).enumerated() {
            let bytes = try WireProtocol.encode(message).count + UploadSize.ingestObject
            if UploadSize.ingestFrame + bytes > maximum {
                let error = UploadBound.tooLarge(object.object.type, bytes: bytes, maximum: maximum)
                first = first ?? error
                cut.dropped.append(index)
                cut.refused.append(
                    CompensatingWrite(
                        changeset: batch.number, object: object.object, code: error.code.rawValue, reason: error.message,
                        values: object.values))
            } else if total + bytes > maximum {
                cut.returned.append(index)
            } else {
                total += bytes
            }
        }
        actions.append(.shortenIngest(cut))
        if let first { report(first, undone: cut.refused.map(\.object), changeset: batch.number) }
    }

    // MARK: Subscriptions

    /// Sends the next set, or one message of changesets. - Returns: `false` if nothing can be sent now.
    private mutating func advance() -> Bool {
        guard let session, let target = session.target else { return false }
        if let set = target.set, set.version > session.subscribed {
            subscribe(set)
            return true
        }
        // Without its view the gateway rejects every write, and during a bootstrap nothing is uploaded.
        guard session.awaiting == nil else { return false }
        guard session.settled == target.set?.version ?? 0 else {
            // A newer set was rejected, and a session that sent a higher version accepts no lower one. Begin a new session.
            if target.set != nil { restart() }
            return false
        }
        guard let next = session.queue.first, next.message.number <= target.limit else { return false }
        // One changeset larger than the window goes out alone, when nothing is in flight.
        let room = SyncSession.uploadWindow - session.inFlightBytes
        guard room > 0, next.bytes <= room || session.inFlight.isEmpty else { return false }
        let taken = takeMessage(limit: target.limit, room: room)
        if !taken.isEmpty { upload(taken) }
        return true
    }

    private mutating func subscribe(_ set: StoredSubscriptionSet) {
        session?.subscribed = set.version
        session?.unanswered.append(set)
        var message = PBSubscribe()
        message.version = set.version
        message.queries = set.subscriptions.map { subscription in
            var query = PBQuery()
            query.type = subscription.type
            query.text = subscription.query
            query.limit = UInt32(clamping: subscription.options.limit)
            query.sort = Self.message(subscription.options.sort)
            query.distinct = subscription.options.distinct.map { part in
                var distinct = PBDistinct()
                distinct.paths = part.paths
                distinct.sort = Self.message(part.sort)
                return distinct
            }
            query.include = subscription.options.includes
            return query
        }
        message.pending = pendingObjects()
        send(.subscribe(message))
    }

    private static func message(_ sort: [SubscriptionOptions.SortKey]) -> [PBSortKey] {
        sort.map { key in
            var message = PBSortKey()
            message.path = key.path
            message.descending = key.isDescending
            return message
        }
    }

    /// Returns the objects of the queued changesets. The bootstrap carries the write times of their rows.
    private func pendingObjects() -> [PBPendingObjects] {
        var named: [String: [PBValue]] = [:]
        var known: Set<PBObjectChange> = []
        for change in session?.queue.flatMap({ $0.message.changes }) ?? [] where known.count < Limits.pendingObjects {
            var object = PBObjectChange()
            object.type = change.type
            object.primaryKey = change.primaryKey
            if known.insert(object).inserted { named[change.type, default: []].append(change.primaryKey) }
        }
        return named.sorted { $0.key < $1.key }.map { type, keys in
            var objects = PBPendingObjects()
            objects.type = type
            objects.keys = keys
            return objects
        }
    }

    // MARK: Changesets

    /// Removes as many changesets from the queue as fit one message, at least one.
    private mutating func takeMessage(limit: UInt64, room: Int) -> [PBChangeset] {
        var taken: [PBChangeset] = []
        var bytes = 0
        while let next = session?.queue.first, next.message.number <= limit {
            if !taken.isEmpty, bytes + next.bytes > min(SyncSession.uploadMessage, room) { break }
            bytes += next.bytes
            taken.append(next.message)
            session?.queue.removeFirst()
            session?.sentThrough = next.message.number
            session?.inFlight.append(SyncSession.Upload(number: next.message.number, bytes: next.bytes))
        }
        return taken
    }

    /// Undoes a changeset that no message can carry, and reports it to the gateway. The next read returns it empty, before those after
    /// it.
    private mutating func setAside(_ changeset: Changeset, bytes: Int) {
        let maximum = session?.maximumMessageBytes ?? 0
        let error = SluiceError(
            .writeTooLarge,
            "The write transaction \(changeset.number) has \(bytes) bytes to upload. One upload may have \(maximum) bytes.",
            fix: "Write the objects in several transactions.")
        actions.append(.setAside(changeset.number, error))
        var objects: [ObjectKey] = []
        for change in changeset.changes where objects.count < Limits.reportedWrites && !objects.contains(change.object) {
            objects.append(change.object)
        }
        report(error, undone: objects, changeset: changeset.number)
        session?.mustReadChangesets = true
    }

    mutating func upload(_ changesets: [PBChangeset]) {
        var message = PBUpload()
        message.changesets = changesets
        message.compensation = session?.local.compensation ?? 0
        send(.upload(message))
    }
}
