import SluiceCore
import SluicePorts
import SluiceRealm
import SluiceWire

// The bootstraps of the hidden session.
extension BridgeStream {
    /// Handles the end of a bootstrap.
    mutating func end(_ end: PBBootstrapEnd) throws(SluiceError) -> [RealmViewEvent] {
        guard let collected = collection.take(), collected.version == end.version, let subscription = subscriptions[end.version] else {
            throw SluiceError(.internalError, "A bootstrap of version \(end.version) ended that had not begun.")
        }
        passAll(upTo: end.changeset)
        content.client = max(content.client, end.changeset)
        let before = takePassed()
        subscriptions[end.version]?.isComplete = true
        if let request = subscription.request, !subscription.isComplete {
            return before + (try finish(request, subscription, collected, end))
        }
        return before + (try refresh(subscription, collected, end))
    }

    // MARK: Requested views

    /// Yields a view that the connection asked for.
    private mutating func finish(
        _ request: Request, _ subscription: Subscription, _ collected: BridgeCollection, _ end: PBBootstrapEnd
    ) throws(SluiceError) -> [RealmViewEvent] {
        // The session has sent a view that the client does not get.
        guard request.number == wanted else { return fallBehind() }
        if hasRefreshed { isRecordStale = true }
        guard !collected.isTooLarge else {
            finished = request.number
            let text = "Invalid query: the subscriptions select more than \(BridgeCollection.mostBytes) bytes of objects"
            needed = Subscription(query: replica.query, request: nil, forgets: true)
            return fallBehind() + [.refused(queryVersion: request.view.query.version, text)]
        }
        let isFull = request.view.isFull || isUncertain
        guard !(isFull || isRecordStale) || (subscription.forgets && collected.kept.isEmpty) else {
            needed = Subscription(query: subscription.query, request: request, forgets: true)
            return fallBehind()
        }
        let form: BridgeCollection.Form = isFull ? .full : changes(end)
        if form == .full || form == .difference { try requireContent() }
        finished = request.number
        content.revertEntries()
        for object in repaired { repairs[object] = .some(nil) }
        repaired = []
        fallback = Fallback(content: content, replica: replica, queryVersion: request.view.query.version)
        let place = BridgeContent.Place(version: max(end.lsn, content.last), time: now)
        let opening = content.declarations(always: request.view.hasSchema) + content.prepareContainers(place)
        let groups = try collected.instructions(form, &content, place)
        take(end, place, request.view.query)
        return try parts(([opening] + groups).pieces(maximum: Self.entryBytes), place, request.view.query.version)
    }

    /// The form of a bootstrap that need not erase everything.
    private func changes(_ end: PBBootstrapEnd) -> BridgeCollection.Form {
        guard end.resumed else { return .difference }
        return isOlder ? .restoration : .changes
    }

    private func parts(
        _ pieces: [[RealmInstruction]], _ place: BridgeContent.Place, _ queryVersion: UInt64
    ) throws(SluiceError) -> [RealmViewEvent] {
        var events: [RealmViewEvent] = []
        for (index, piece) in pieces.enumerated() {
            let isLast = index == pieces.count - 1
            events.append(
                .part(
                    RealmBootstrapPart(
                        queryVersion: queryVersion, serverVersion: place.version, clientVersion: content.client,
                        entries: [try entry(piece, place)], estimate: Double(index + 1) / Double(pieces.count), isLast: isLast,
                        replica: isLast ? state.bytes : nil)))
        }
        return events
    }

    /// Records that the client has a view, unless it does not take it.
    private mutating func take(_ end: PBBootstrapEnd, _ place: BridgeContent.Place, _ query: RealmQuerySet) {
        content.last = max(content.last, place.version)
        steps.add(content.last, LSN(rawValue: end.lsn), time: HybridTime(rawValue: end.writeTime))
        replica.lsn = max(replica.lsn, LSN(rawValue: end.lsn))
        // The view record has the anchor of its position.
        replica.witness = []
        // Encoding fails only beyond 2 GiB. Without a record, the next session begins with a bootstrap.
        replica.held = (try? WireProtocol.encode(end.held)) ?? []
        replica.query = query
        (isBehind, isRecordStale, isOlder, isUncertain) = (false, false, false, false)
    }

    /// Checks that the objects of the client are known, so that those outside of a view can be erased.
    /// - Throws: `badClientFile`: the client replaces its file and recovers its own changes.
    private func requireContent() throws(SluiceError) {
        guard isOlder || !content.isExact else { return }
        throw SluiceError(
            .badClientFile, "The change log no longer reaches back to the last state of client file \(content.file).",
            fix: "Keep the change log for longer than clients are offline. The client replaces its file.")
    }

    private mutating func fallBehind() -> [RealmViewEvent] {
        (isBehind, isRecordStale) = (true, true)
        return []
    }

    /// Ends the wait for the answer to the last view.
    /// - Parameter superseded: The query versions of views that the client did not take.
    mutating func settleView(superseded: Set<UInt64>) {
        guard let before = fallback else {
            if !isBuilding { confirmEntries() }
            return
        }
        fallback = nil
        guard superseded.contains(before.queryVersion) else { return confirmEntries() }
        // Versions and the progress of uploads never go back.
        let (last, client) = (content.last, content.client)
        (content, replica) = (before.content, before.replica)
        (content.last, content.client) = (last, client)
        _ = fallBehind()
    }

    /// Records that the client has all entries so far. While it waits for a view, it may have dropped them.
    private mutating func confirmEntries() {
        content.confirmEntries()
        (repaired, hasRefreshed, isUncertain) = ([], false, false)
    }

    // MARK: Other views

    /// Yields the changes of a view that the session built by itself: another session's view resumed, other members, or other permissions.
    private mutating func refresh(
        _ subscription: Subscription, _ collected: BridgeCollection, _ end: PBBootstrapEnd
    ) throws(SluiceError) -> [RealmViewEvent] {
        // The client does not have the view whose change this is.
        if subscription.isComplete, isBehind { return [] }
        // The connection would drop the changes, and the view record of the session names them from here on.
        // After an older state they are needed all the same: they tell what the client may hold.
        if isBuilding, !isOlder { return fallBehind() }
        guard !isRecordStale || (subscription.forgets && collected.kept.isEmpty) else {
            needed = Subscription(query: subscription.query, request: nil, forgets: true)
            return fallBehind()
        }
        let form = changes(end)
        if form == .difference { try requireContent() }
        hasRefreshed = true
        let before = content
        let place = BridgeContent.Place(version: max(end.lsn, content.last + 1), time: now)
        let declared = content.declarations()
        let groups = try collected.instructions(form, &content, place)
        let pieces = ([declared] + groups).pieces(maximum: Self.entryBytes)
        guard pieces.count == 1, let instructions = pieces.first, !collected.isTooLarge else {
            // Too large for one entry: the connection asks for the view again, as a bootstrap.
            content = before
            return fallBehind() + [.permissionsChanged]
        }
        var events: [RealmViewEvent] = []
        if !instructions.isEmpty {
            events.append(.changes([try entry(instructions, place)]))
            content.last = place.version
        }
        take(end, BridgeContent.Place(version: max(content.last, end.lsn), time: place.time), replica.query)
        isUncertain = form == .restoration
        return events + [.advanced(content.last)]
    }

    /// Handles a refused set. The view before it continues.
    mutating func refuse(_ version: UInt64, _ error: SluiceError) throws(SluiceError) -> [RealmViewEvent] {
        guard let subscription = subscriptions.removeValue(forKey: version) else { return [] }
        guard let request = subscription.request else {
            throw SluiceError(
                .badClientFile, "A subscription of client file \(content.file) is no longer valid: \(error.message)", cause: .error(error))
        }
        guard request.number == wanted else { return [] }
        finished = request.number
        // The client goes back to its view, which the session may have left.
        if isBehind { needed = Subscription(query: replica.query, request: nil, forgets: true) }
        return [.refused(queryVersion: request.view.query.version, RealmQueryBody.queryErrorText(error))]
    }
}
