package import SluiceCore
package import SluiceReplica

/// The engine's port to the client replica, implemented by `Replica`. The engine calls the parts of the replica in its transactions.
package protocol SyncReplica: Sendable {
    var schema: Schema { get }

    /// Runs the body between transactions. It must not write.
    func read<R: Sendable>(
        _ body: @escaping @Sendable (ReplicaParts) throws(SluiceError) -> R
    ) async throws(SluiceError) -> R

    /// Runs the body as one transaction. Transactions take effect in the order of the calls. One that throws has changed nothing.
    /// - Parameter isDurable: `true` to wait for the disk.
    func commit<R: Sendable>(
        isDurable: Bool, _ body: @escaping @Sendable (ReplicaParts) throws(SluiceError) -> R
    ) async throws(SluiceError) -> R

    /// Registers a handler, called after each commit that gives the engine something to send. Returns the observer's number.
    func onLocalChange(_ handler: @escaping @Sendable () -> Void) -> UInt64
    func removeObserver(_ number: UInt64)
}

extension Replica: SyncReplica {}

extension ReplicaParts {
    /// Returns the state that a session begins with.
    func localState() throws(SluiceError) -> LocalState {
        let (reset, begun) = server.reset.underWay
        // Before the first pending changeset is read: if another process writes one in between, its base is not older than this position.
        let applied = server.applied
        let first = try local.unacknowledged(after: 0, maximumBytes: 1).first
        return LocalState(
            identity: server.identity, applied: applied, records: ServerRecords(held: server.held, checkpoint: server.checkpoint),
            compensation: local.compensations.last, firstUnacknowledged: first?.number,
            oldestBase: min(first?.base ?? applied.lsn, applied.lsn), resets: ResetProgress(underWay: reset, begun: begun),
            isForeign: server.isForeign)
    }

    /// Returns the sets and changesets of a query. The sets are read first: a set must never be known without the changesets made before
    /// it.
    func pending(_ query: LocalQuery) throws(SluiceError) -> LocalPending {
        var pending = LocalPending(sets: try openSets())
        if let number = query.changesetsAfter {
            pending.changesets = try local.unacknowledged(after: number, maximumBytes: query.maximumBytes)
        }
        return pending
    }

    /// The number of newest sets that are considered. If an app commits more while offline, its older writes are sent in the oldest of
    /// these.
    private static var openSetLimit: UInt64 { 100 }

    private func openSets() throws(SluiceError) -> [StoredSubscriptionSet] {
        let latest = try subscriptions.latest()
        let applied = server.applied.version
        var sets: [StoredSubscriptionSet] = []
        let first = min(max(applied, latest.version - min(latest.version, Self.openSetLimit)), latest.version)
        for version in (applied < first ? [applied] : []) + Array(first..<latest.version) {
            let set = try subscriptions.set(version: version)
            if set.state != .superseded { sets.append(set) }
        }
        return sets + [latest]
    }
}
