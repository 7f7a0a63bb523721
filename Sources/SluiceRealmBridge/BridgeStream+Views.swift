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
        // Within an upload, a version without changes takes effect with the next one, for which the view must not wait.
        if own.isEmpty { content.client = max(content.client, end.changeset) }
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
        guard request.number == wanted else {
            abandonSlices()
            return fallBehind()
        }
        var collected = collected
        if let slices { return try finish(slices, request, &collected, end) }
        guard !collected.isTooLarge else {
            finished = request.number
            let text = "Invalid query: the subscriptions select more than \(bounds.viewObjects) objects"
            needed = Subscription(query: replica.query, request: nil, forgets: true)
            return fallBehind() + [.refused(queryVersion: request.view.query.version, text)]
        }
        // What the client has made since the begin must not be void by an erasure.
        let canTake = canTake(request, subscription, collected) && (isFull(request) || !collected.isEncoded(anyOf: content.memory.view))
        guard canTake, !collected.isDropped else {
            needed = Subscription(query: subscription.query, request: request, forgets: true)
            return fallBehind()
        }
        let form: BridgeCollection.Form = isFull(request) ? .full : changes(end)
        try requireContent(form)
        finished = request.number
        // A version that the client has not seen: its changes of the view's objects are void if they do not know it.
        let place = BridgeContent.Place(version: max(end.lsn, content.last + 1), time: now)
        let opening = beginView(request, place)
        var pieces = collected.takePieces()
        try pieces.open(with: opening, known: try content.takeStanding())
        try collected.write(form, &content, place, leftovers: leftovers ?? [], to: &pieces)
        take(end, place, request.view.query)
        let all = pieces.take()
        fallback?.isCut = all.count > 1
        return parts(all, place, request.view)
    }

    /// Handles the begin of a bootstrap, or its repetition.
    mutating func begin(_ version: UInt64, rows: UInt64) {
        guard collection?.version != version else {
            collection?.restart()
            return
        }
        abandonSlices()
        let request = subscriptions[version]?.request
        let isFirst = content.isExact && !isOlder && !hasMade && content.memory.view.isEmpty
        let isEncoded = request.map { ($0.view.isFull || isFirst) && $0.number == wanted } ?? false
        collection = BridgeCollection(version: version, bounds, expected: rows, isEncoded: isEncoded)
        expected = rows
    }

    func isFull(_ request: Request) -> Bool { request.view.isFull || uncertain > request.view.received }

    /// Returns `false` if the session must send the view again, without the rows that it takes for the client's.
    mutating func canTake(_ request: Request, _ subscription: Subscription, _ collected: BridgeCollection) -> Bool {
        if refreshed > request.view.received { isRecordStale = true }
        return !(isFull(request) || isRecordStale) || (subscription.forgets && collected.kept.isEmpty)
    }

    /// Takes the entries back that the connection has dropped, and remembers the state before a view.
    /// - Returns: The instructions that the view begins with.
    mutating func beginView(_ request: Request, _ place: BridgeContent.Place) -> [RealmInstruction] {
        content.revertEntries(after: request.view.received)
        for (object, version) in repaired where version > request.view.received { repairs[object] = .whole }
        (repaired, refreshed) = ([:], 0)
        fallback = Fallback(content: content, replica: replica, request: request, uncertain: uncertain, version: place.version)
        return content.declarations(place, always: request.view.hasSchema) + content.prepareContainers(place)
    }

    /// The form of a bootstrap that need not erase everything.
    func changes(_ end: PBBootstrapEnd) -> BridgeCollection.Form {
        guard end.resumed else { return .difference }
        return isOlder || hasMade ? .restoration : .changes
    }

    /// Returns the parts of a view.
    /// - Parameter isWhole: `false` if the last one follows later.
    mutating func parts(
        _ pieces: [BridgePiece], _ place: BridgeContent.Place, _ view: RealmViewRequest, isWhole: Bool = true
    ) -> [RealmViewEvent] {
        var events: [RealmViewEvent] = []
        for (index, piece) in pieces.enumerated() {
            let isLast = isWhole && index == pieces.count - 1
            let share = slices.map(\.share) ?? Double(index + 1) / Double(pieces.count)
            if isLast { viewState = StoredState(replica: state.whole, view: place.version) }
            events.append(
                .part(
                    RealmBootstrapPart(
                        queryVersion: view.query.version, serverVersion: place.version, clientVersion: content.client,
                        entries: [entry(piece, place)], estimate: isLast ? 1 : share, isLast: isLast,
                        replica: isLast ? viewState?.replica.bytes : nil, request: view.number)))
        }
        return events
    }

    /// Records that the client has a view, unless it does not take it.
    mutating func take(_ end: PBBootstrapEnd, _ place: BridgeContent.Place, _ query: RealmQuerySet) {
        content.last = max(content.last, place.version)
        // The times of the rows' commits are not known, but they have passed.
        let time = max(HybridTime(rawValue: end.writeTime), HybridTime(milliseconds: now))
        steps.add(content.last, LSN(rawValue: end.lsn), time: time)
        replica.lsn = max(replica.lsn, LSN(rawValue: end.lsn))
        // The view record has the anchor of its position.
        replica.witness = []
        // Encoding fails only beyond 2 GiB. Without a record, the next session begins with a bootstrap.
        replica.held = (try? WireProtocol.encode(end.held)) ?? []
        replica.query = query
        (isBehind, isRecordStale, isOlder, uncertain, hasMade) = (false, false, false, 0, false)
        refreshed = place.version
        // The rows may be of another view.
        reading = nil
        // The view has what the client's earlier changesets made, except for what is still to be put right.
        content.lists.receiveCreations(upTo: content.client, at: content.last, except: Set(repairs.keys))
    }

    /// Checks that the objects of the client are known, so that those outside of a view can be erased.
    /// - Throws: `badClientFile`: the client replaces its file and recovers its own changes.
    func requireContent(_ form: BridgeCollection.Form) throws(SluiceError) {
        guard form == .full || form == .difference else { return }
        if form == .full, leftovers == nil {
            throw SluiceError(
                .badClientFile, "An unfinished bootstrap of client file \(content.file) has more than \(bounds.partObjects) objects.",
                fix: "The client replaces its file. Subscribe to fewer objects if its connections are short.")
        }
        guard isOlder || !content.isExact else { return }
        throw SluiceError(
            .badClientFile, "The change log no longer reaches back to the last state of client file \(content.file).",
            fix: "Keep the change log for longer than clients are offline. The client replaces its file.")
    }

    mutating func fallBehind() -> [RealmViewEvent] {
        (isBehind, isRecordStale) = (true, true)
        return []
    }

    /// Ends the wait for the answer to the last view.
    /// - Parameter superseded: The query versions of views that the client did not take, with the last request of each.
    /// - Returns: `true` if the client has taken a view. Its state is stored.
    @discardableResult mutating func settleView(superseded: [UInt64: UInt64]) -> Bool {
        guard let before = fallback else { return false }
        if superseded[before.request.view.query.version] ?? 0 >= before.request.number {
            restore(before)
            return false
        }
        // The last part is still to come.
        guard slices == nil else { return false }
        (fallback, leftovers) = (nil, [])
        if let viewState { keep(viewState) }
        return true
    }

    /// Goes back to the state before a view that the client does not take. It may have parts of it.
    mutating func restore(_ before: Fallback) {
        leftovers = unfinished
        (content, replica) = (content.restored(before.content), before.replica)
        uncertain = before.uncertain
        (fallback, slices) = (nil, nil)
        _ = fallBehind()
    }

    /// Records that the client has all entries up to a version.
    mutating func confirmEntries(upTo version: UInt64) {
        // The state before a view may return, with what the client has made since.
        guard fallback == nil else { return }
        content.confirmEntries(upTo: version)
        if !repaired.isEmpty { repaired = repaired.filter { $0.value > version } }
        if refreshed <= version { refreshed = 0 }
        if uncertain <= version { uncertain = 0 }
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
        // Too large for one entry: the connection asks for the view again, as a bootstrap.
        guard !collected.isTooLarge, !collected.isDropped else {
            if changes(end) == .restoration, !collected.isTooLarge { adopt(collected.dropped) }
            return fallBehind() + [.permissionsChanged]
        }
        let form = changes(end)
        try requireContent(form)
        let before = content
        let place = BridgeContent.Place(version: max(end.lsn, content.last + 1), time: now)
        let declared = content.declarations(place)
        var collected = collected
        var pieces = collected.takePieces()
        try pieces.open(with: declared, known: try content.takeStanding())
        try collected.write(form, &content, place, to: &pieces)
        let all = pieces.take()
        guard all.count == 1, let piece = all.first else {
            content = before
            if form == .restoration { adopt(collected.named) }
            return fallBehind() + [.permissionsChanged]
        }
        var events: [RealmViewEvent] = []
        if !piece.isEmpty {
            events.append(.changes([entry(piece, place)]))
            content.last = place.version
        }
        let previous = refreshed
        take(end, BridgeContent.Place(version: max(content.last, end.lsn), time: place.time), replica.query)
        refreshed = piece.isEmpty ? previous : place.version
        if form == .restoration { uncertain = place.version }
        return events + [.advanced(content.last)]
    }

    /// Adds objects that the client may hold to a content that is older than its stream. A full bootstrap must follow.
    private mutating func adopt(_ objects: Set<ObjectKey>) {
        for object in objects { content.make(object, isHeld: true) }
        (isOlder, uncertain) = (false, .max)
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
