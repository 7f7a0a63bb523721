import SluiceCore
import SluicePorts

// The views, bootstraps and changes of a session.
extension RealmSession {
    // MARK: Views

    /// Begins a view. A bootstrap under way is superseded.
    mutating func build(_ query: RealmQuerySet) -> [RealmConnectionAction] {
        var actions: [RealmConnectionAction] = phase == .bootstrapping ? [.superseded(id, queryVersion: wanted)] : []
        // The client appends the new parts to those that it has, so the new ones must erase what the old ones had.
        if partial == query.version { needsFull = true }
        partsModel = nil
        phase = .bootstrapping
        parts = 0
        wanted = query.version
        client.stream.beginBootstrap(queryVersion: query.version)
        actions.append(.store(id, .beginBootstrap(queryVersion: query.version)))
        built += 1
        let isRepeated = query.version == current.version
        let request = RealmViewRequest(
            query: query, isFull: needsFull, hasSchema: needsSchema, isRepeated: isRepeated, number: built,
            received: sent)
        actions.append(.buildView(id, request))
        return actions
    }

    /// Builds the view again for new permissions. Before protocol 14 only a client reset does that.
    mutating func permissionsChanged() -> [RealmConnectionAction] {
        guard phase == .steady || phase == .bootstrapping else { return [] }
        guard settings.version >= 14 else { return reset(.serverPermissionsChanged, "The user's permissions changed.") }
        return build(open.first { $0.version == wanted } ?? current)
    }

    /// Refuses a query set. The view before it stays in force.
    mutating func queryFailed(_ version: UInt64, _ message: String, now: Int64) -> [RealmConnectionAction] {
        guard phase == .bootstrapping else { return [] }
        guard let index = open.firstIndex(where: { $0.version == version }) else {
            // A query error for a complete set ends the client's process.
            return version == wanted ? reset(.badClientFileIdent, "A subscription is no longer valid: \(message)") : []
        }
        guard version != wanted || parts == 0 else {
            return fail(.otherSessionError, .transient, "The subscriptions could not be served.")
        }
        open.remove(at: index)
        let text = message.hasPrefix("Invalid query") ? message : "Invalid query: \(message)"
        let error = RealmQueryError(session: id.session, queryVersion: version, message: text)
        let actions: [RealmConnectionAction] = [.send(.queryError(error))]
        guard version == wanted else { return actions }
        // The client still waits for the sets that this one had superseded.
        if let previous = open.last { return actions + build(previous) }
        if needsFull || partial != nil { return actions + build(current) }
        client.stream.cancelBootstrap()
        wanted = current.version
        phase = .steady
        return actions + [.store(id, .cancelBootstrap)] + takeWaiting(after: 0, now: now)
    }

    /// Sends the next part of a bootstrap.
    mutating func bootstrap(_ part: RealmBootstrapPart, now: Int64) -> [RealmConnectionAction] {
        guard phase == .bootstrapping || phase == .steady else { return [] }
        guard phase == .bootstrapping, part.queryVersion == wanted else { return [.superseded(id, queryVersion: part.queryVersion)] }
        // A part of an earlier request, which may lack what this one must erase. That request is superseded already.
        guard part.request ?? built == built else { return [] }
        var model = partsModel ?? client.model
        partsModel = nil
        latest = max(latest, part.serverVersion)
        let download = RealmDownload(
            session: id.session,
            progress: progress(RealmDownloadCursor(serverVersion: part.serverVersion, clientVersion: part.clientVersion)),
            queryVersion: part.queryVersion, batch: part.isLast ? .lastInBatch : .moreToCome, estimate: estimate(part),
            entries: part.entries.map { RealmDownloadEntry($0.entry) })
        do throws(SluiceError) {
            for entry in part.entries { try model.send(entry.operations) }
            try check?.check(download)
        } catch {
            return defect(error)
        }
        parts += 1
        // The set that came before this part. Marks and changes wait for its view.
        let next = isReplacing ? open.last : nil
        isReplacing = false
        var actions: [RealmConnectionAction] = [.send(.download(download))]
        if part.isLast {
            client.model = model
            actions = complete(part) + actions
            dropWaiting(upTo: part.serverVersion)
            if next == nil { actions += takeWaiting(after: part.serverVersion, now: now) }
        } else {
            partsModel = model
            partial = part.queryVersion
        }
        return next.map { actions + build($0) } ?? actions
    }

    private mutating func complete(_ part: RealmBootstrapPart) -> [RealmConnectionAction] {
        let (version, serverVersion) = (part.queryVersion, part.serverVersion)
        client.stream.completeBootstrap(queryVersion: version, serverVersion: serverVersion)
        if let query = open.last(where: { $0.version == version }) { current = query }
        open.removeAll { $0.version <= version }
        (needsFull, needsSchema, partial) = (false, false, nil)
        sent = max(sent, serverVersion)
        position = max(position, serverVersion)
        phase = .steady
        let view = RealmClientRecord.View(queryVersion: version, serverVersion: serverVersion, replica: part.replica)
        return [.store(id, .completeBootstrap(view))]
    }

    /// Takes the entries that arrived during a bootstrap, without those that it covers.
    private mutating func takeWaiting(after version: UInt64, now: Int64) -> [RealmConnectionAction] {
        dropWaiting(upTo: version)
        let entries = waiting
        waiting = []
        waitingBytes = 0
        var actions = add(entries, now: now)
        if phase == .steady { actions += flush(always: needsAcknowledgement) }
        if phase == .steady { actions += answerMark() }
        return actions
    }

    /// Drops the entries that a bootstrap covers, and keeps their compensating writes.
    private mutating func dropWaiting(upTo version: UInt64) {
        for covered in waiting where covered.entry.serverVersion <= version {
            if let compensation = covered.entry.compensation { client.stream.keep(compensation) }
        }
        waiting.removeAll { $0.entry.serverVersion <= version }
        waitingBytes = waiting.reduce(0) { $0 + $1.entry.cost }
    }

    // MARK: Changes

    mutating func append(_ entries: [OutgoingEntry], now: Int64) -> [RealmConnectionAction] {
        switch phase {
        case .allotting, .bound, .opening, .ended: return []
        case .bootstrapping:
            waiting += entries
            waitingBytes += entries.reduce(0) { $0 + $1.entry.cost }
            let bounds = client.stream.bounds
            return waitingBytes > bounds.bytes || waiting.count > bounds.entries ? lose() : []
        case .steady:
            let actions = add(entries, now: now)
            return phase == .steady ? actions + flush(always: false) : actions
        }
    }

    /// Checks entries and adds them to the stream.
    private mutating func add(_ entries: [OutgoingEntry], now: Int64) -> [RealmConnectionAction] {
        do throws(SluiceError) {
            for next in entries {
                guard next.entry.serverVersion > sent else {
                    throw SluiceError(
                        .internalError, "A change of version \(next.entry.serverVersion) comes after version \(sent) was sent.")
                }
                try client.model.send(next.operations)
                guard try client.stream.append(next.entry, now: now) else { return lose() }
            }
        } catch {
            return defect(error)
        }
        return []
    }

    /// Gives the stream up: the client is reset, and recovers its own changes.
    private mutating func lose() -> [RealmConnectionAction] {
        client.stream.lose()
        return [.store(id, .lose)] + reset(.badClientFileIdent, "The client has confirmed no change for too long.")
    }

    mutating func advanced(to version: UInt64) -> [RealmConnectionAction] {
        guard isOpened, phase != .ended else { return [] }
        position = max(position, version)
        latest = max(latest, version)
        return []
    }

    /// Sends the entries that were not sent in this session, in messages of bounded size.
    ///
    /// - Parameters:
    ///   - always: Sends a message without entries if there are none, as the acknowledgement of uploads.
    ///   - advances: `false` if a message without entries repeats the server version of the one before.
    mutating func flush(always: Bool, advances: Bool = true) -> [RealmConnectionAction] {
        guard phase == .steady else { return [] }
        let entries = client.stream.entries
        var start = entries.endIndex
        while start > entries.startIndex, entries[start - 1].serverVersion > sent { start -= 1 }
        guard start < entries.endIndex || always else { return [] }
        let reached = start < entries.endIndex || advances ? position : sent
        var actions: [RealmConnectionAction] = start < entries.endIndex ? compensations(client.stream.record.compensations) : []
        repeat {
            let end = batchEnd(entries, from: start)
            let batch = entries[start..<end]
            actions += compensations(batch.compactMap(\.compensation))
            let isLast = end == entries.endIndex
            let last = batch.last.map { RealmDownloadCursor(serverVersion: $0.serverVersion, clientVersion: $0.clientVersion) }
            // Only the last message may name versions beyond its entries: the client would skip the entries of the next.
            let whole = RealmDownloadCursor(
                serverVersion: max(reached, sent, last?.serverVersion ?? 0), clientVersion: applied)
            actions += send(batch.map { RealmDownloadEntry($0) }, isLast ? whole : last ?? whole)
            start = end
        } while start < entries.endIndex && phase == .steady
        return actions
    }

    /// Returns the end of the entries that fit one message; at least one.
    private func batchEnd(_ entries: [RealmStreamEntry], from start: Int) -> Int {
        var end = start
        var bytes = 0
        while end < entries.endIndex, end == start || bytes + entries[end].changeset.count <= settings.batchBytes {
            bytes += entries[end].changeset.count
            end += 1
        }
        return end
    }

    private mutating func send(_ entries: [RealmDownloadEntry], _ cursor: RealmDownloadCursor) -> [RealmConnectionAction] {
        latest = max(latest, cursor.serverVersion)
        let download = RealmDownload(
            session: id.session, progress: progress(cursor), queryVersion: current.version, batch: .steadyState, entries: entries)
        do throws(SluiceError) { try check?.check(download) } catch { return defect(error) }
        sent = cursor.serverVersion
        needsAcknowledgement = false
        return [.send(.download(download))]
    }

    /// Returns the notices of compensating writes that were not sent in this session. They precede the entries that put objects back.
    private mutating func compensations(_ list: [RealmCompensation]) -> [RealmConnectionAction] {
        var actions: [RealmConnectionAction] = []
        for compensation in list where compensation.serverVersion > compensated {
            compensated = compensation.serverVersion
            actions.append(.send(.error(RealmServerError(session: id.session, compensation))))
        }
        return actions
    }

    private func progress(_ cursor: RealmDownloadCursor) -> RealmProgress {
        RealmProgress(
            download: cursor, latest: RealmServerVersion(version: latest, salt: settings.salt), upload: client.stream.record.upload)
    }

    /// Returns the share of a bootstrap that the client has. Before version 12 the field is an integer, a number of bytes.
    private func estimate(_ part: RealmBootstrapPart) -> Double { settings.version < 12 ? 0 : part.estimate }
}
