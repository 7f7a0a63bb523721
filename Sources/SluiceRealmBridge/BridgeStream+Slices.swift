import SluiceCore
import SluicePorts
import SluiceRealm
import SluiceWire

// The slices of a bootstrap that exceeds one entry.
extension BridgeStream {
    /// A bootstrap whose first slices were yielded.
    struct Slices {
        let view: RealmViewRequest
        /// The version and time of all slices.
        let place: BridgeContent.Place
        let isFull: Bool
        /// The estimated share of the view that the client has with the last slice.
        var share = 0.0
    }

    /// Yields the collected rows as a slice once they exceed one entry.
    ///
    /// The rows of a slice are dropped here, so that the memory of a view is bounded by one entry and the keys of its objects. All slices
    /// have the same version, the next free one, because the position of the end is not known yet.
    /// - Throws: `queryTooLarge` beyond the objects of a view, if the client has slices already.
    mutating func cut() throws(SluiceError) -> [RealmViewEvent] {
        guard let version = collection?.version, collection?.isFull == true || collection?.isTooLarge == true else { return [] }
        guard let subscription = subscriptions[version], let request = subscription.request, !subscription.isComplete,
            request.number == wanted
        else {
            // The connection does not want these rows. The end decides on what follows.
            abandonSlices()
            collection?.drop()
            return []
        }
        guard collection?.isTooLarge != true else {
            if slices == nil { return [] }
            throw SluiceError(
                .queryTooLarge, "The subscriptions select more than \(bounds.viewObjects) objects.", fix: "Subscribe to fewer objects.")
        }
        var opening: [RealmInstruction] = []
        if slices == nil {
            guard let collected = collection, canTake(request, subscription, collected) else {
                collection?.drop()
                return []
            }
            opening = try beginSlices(request)
        }
        guard var slices, var collected = collection.take() else { return [] }
        var pieces = collected.takePieces()
        try pieces.open(with: opening, known: try content.takeStanding())
        try collected.slice(&content, slices.place, to: &pieces)
        // It never goes back, not even if the bootstrap begins again. The number of rows may be unknown.
        slices.share = max(slices.share, expected > 0 ? min(Double(collected.namedCount) / Double(expected), 0.99) : 0.5)
        (self.slices, collection) = (slices, collected)
        return parts(pieces.take(), slices.place, slices.view, isWhole: false)
    }

    private mutating func beginSlices(_ request: Request) throws(SluiceError) -> [RealmInstruction] {
        let isFull = isFull(request)
        try requireContent(isFull ? .full : .difference)
        let place = BridgeContent.Place(version: content.last + 1, time: now)
        let opening = beginView(request, place)
        fallback?.isCut = true
        content.last = place.version
        slices = Slices(view: request.view, place: place, isFull: isFull)
        // The commits up to the end belong to the view before. The rows have them.
        isBehind = true
        return opening
    }

    /// Yields the last part of a view in slices, and the position of its end.
    mutating func finish(
        _ slices: Slices, _ request: Request, _ collected: inout BridgeCollection, _ end: PBBootstrapEnd
    ) throws(SluiceError) -> [RealmViewEvent] {
        let form: BridgeCollection.Form = slices.isFull ? .full : changes(end)
        try requireContent(form)
        try collected.check(content)
        finished = request.number
        var pieces = collected.takePieces()
        try collected.write(form, &content, before: fallback?.content.memory, slices.place, leftovers: leftovers ?? [], to: &pieces)
        take(end, slices.place, request.view.query)
        let events = parts(pieces.take(), slices.place, slices.view)
        self.slices = nil
        return events + advanced(to: LSN(rawValue: end.lsn))
    }

    /// Goes back to the state before a view in slices that the connection no longer wants.
    mutating func abandonSlices() {
        if slices != nil, let before = fallback { restore(before) }
    }

    /// The objects in parts of unfinished bootstraps; nil if they are too many. O(objects of the client).
    var unfinished: Set<ObjectKey>? {
        guard let leftovers, let fallback, fallback.isCut else { return leftovers }
        // The parts have one version, and nothing else has it. The objects that they erase are among them, which changes nothing.
        let all = leftovers.union(content.memory.barriers.objects(at: fallback.version))
        return all.count <= bounds.viewObjects ? all : nil
    }

    /// The objects that the view of the next connection must erase; nil if they are too many to be stored.
    ///
    /// That connection begins with a view of the set that the client has. The client then drops the parts of every other set, and appends
    /// to those of this set.
    var storedParts: Set<ObjectKey>? {
        let parts = fallback?.request.view.isRepeated ?? false ? unfinished : leftovers
        return parts.flatMap { $0.count <= bounds.partObjects ? $0 : nil }
    }
}
