import SluiceCore
import SluiceMerge
import SluiceReplica
import SluiceSync
import SluiceWire

/// What must hold all the time.
extension Simulation {
    mutating func check(_ index: Int) {
        let file = clients[index].file
        checkOrder(index, file)
        for key in file.objects.keys.sorted() { checkLatest(index, key, file) }
        let active = file.sets.first { $0.version == file.applied.version }
        guard let active, active.version == file.latest.version else { return }
        let stores = Set(active.subscriptions.map(\.query))
        // What the app wrote, and nobody else, never goes away or back, as long as its store is subscribed to.
        guard let key = clients[index].own.keys.sorted().randomElement(using: &random), !file.refusedObjects.contains(key),
            let item = clients[index].own[key] ?? nil, stores.contains(item.store)
        else { return }
        if file.shown(key) != item {
            clients[index].note(.readYourWrites, "\(key) shows \(String(describing: file.shown(key))), not \(item)")
        }
    }

    /// Transactions are seen whole, and nothing older than what was seen.
    private mutating func checkOrder(_ index: Int, _ file: SimulatedFile) {
        let values = Simulation.pair.map { file.server[$0]?.value }
        if values[0] != values[1] { clients[index].note(.atomicVisibility, "half a transaction: \(values)") }
        // With the device's own writes on top: two of one transaction are shown together, of whichever device it is.
        let twins = Simulation.twins.map { file.shown($0)?.value }
        if twins[0] != twins[1] { clients[index].note(.atomicVisibility, "half a transaction: \(twins)") }
        if let value = values[0].flatMap({ Int64($0) }) {
            if value < clients[index].seenPair { clients[index].note(.monotonicReads, "\(value) after \(clients[index].seenPair)") }
            clients[index].seenPair = value
        }
        let seen = clients[index].seen
        if file.applied.lsn < seen.lsn || file.applied.version < seen.version {
            clients[index].note(.monotonicReads, "the position went back from \(seen) to \(file.applied)")
        }
        clients[index].seen = file.applied
    }
}

extension Simulation {
    /// Of the values that a device knows for an item it shows the latest: the last of its own that the gateway does not have, or the
    /// server's, by the times and numbers of their writers. What it wrote over a value that it had seen is later than that.
    private mutating func checkLatest(_ index: Int, _ key: Int64, _ file: SimulatedFile) {
        guard !file.untimed.contains(key), let item = file.server[key],
            let own = file.pending.flatMap(\.changeset.pending).filter({ $0.change.object.key == .int(key) }).unmixed,
            let written = gateway.history[key]?.filter({ $0.lsn <= file.applied.lsn.rawValue }), let last = written.last,
            last.value == item.value, let stamp = last.stamp
        else { return }
        // Its own write to an item that another client has deleted since, and one made anew, is void.
        let isVoid = written.contains { entry in
            guard entry.value == nil, entry.lsn > own.base.rawValue, let deletion = entry.stamp else { return false }
            return deletion.client != file.client
        }
        let isOwnLater = !isVoid && stamp <= WriteStamp(time: own.time, client: file.client)
        if isOwnLater { latestOwn += 1 } else { latestOfOthers += 1 }
        let latest = isOwnLater ? own.value : item.value
        if file.shown(key)?.value != latest {
            let shown = String(describing: file.shown(key)?.value)
            clients[index].note(.latestShown, "\(key) shows \(shown), not \(latest): \(own.time) of its own, \(stamp) of the server")
        }
    }
}

extension [PendingChange] {
    /// The last value that changes set which do nothing but that; nil when they do other things, or none sets one.
    fileprivate var unmixed: (value: String, time: HybridTime, base: LSN)? {
        guard allSatisfy({ $0.change.kind != .delete && $0.change.edits.isEmpty && $0.change.counters.isEmpty }),
            let last = last(where: { $0.change.values["value"] != nil }), case .string(let value)? = last.change.values["value"]
        else { return nil }
        return (value, last.time, last.base)
    }
}

/// What the gateway does to sessions.
extension Simulation {
    mutating func expireTokens() {
        tokens += 1
        gateway.validToken = "token-\(tokens)"
        for session in gateway.sessions.keys where gateway.sessions[session]?.isOpen == true {
            gateway.fail(session, .tokenExpired, .refreshUser)
        }
    }

    mutating func sessionError(_ index: Int) {
        guard let session = clients[index].session else { return }
        let errors: [(ErrorCode, SessionAction)] = [(.internalError, .transient), (.shuttingDown, .transient), (.resync, .transient)]
        let (code, action) = errors[below(errors.count)]
        gateway.fail(session, code, action)
    }
}
