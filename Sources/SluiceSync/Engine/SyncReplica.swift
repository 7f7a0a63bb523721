package import SluiceCore
package import SluiceReplica

/// The engine's port to the client replica, implemented by `Replica`. Each call is one transaction. A call that throws changed nothing.
package protocol SyncReplica: Sendable {
    var schema: Schema { get }

    func isForeign() async throws(SluiceError) -> Bool
    func identity() async throws(SluiceError) -> ReplicaIdentity?
    func setIdentity(_ identity: ReplicaIdentity) async throws(SluiceError)
    func appliedPosition() async throws(SluiceError) -> AppliedPosition
    func observe(_ milliseconds: Int64) async throws(SluiceError)
    func lastCompensation() async throws(SluiceError) -> UInt64
    func forgetServer(reset: ReplicaReset?) async throws(SluiceError)
    func resetUnderWay() async throws(SluiceError) -> (reset: ReplicaReset?, count: UInt64)

    func latestSubscriptionSet() async throws(SluiceError) -> StoredSubscriptionSet
    func syncSubscriptionSet(version: UInt64) async throws(SluiceError) -> StoredSubscriptionSet
    func setSubscriptionState(version: UInt64, _ state: SubscriptionState) async throws(SluiceError)

    func pendingChangesets(after number: UInt64, maximumBytes: Int) async throws(SluiceError) -> [Changeset]
    func renumberPending(after number: UInt64, time: HybridTime) async throws(SluiceError)
    func acknowledgeUpload(upTo number: UInt64, lsn: LSN, futile: [FutileWrite]) async throws(SluiceError)
    func applyCompensation(id: UInt64, writes: [CompensatingWrite]) async throws(SluiceError) -> CompensationReport?
    func setAside(changeset number: UInt64, _ error: SluiceError) async throws(SluiceError) -> CompensationReport?
    func unreportedRefusals() async throws(SluiceError) -> [CompensationReport]
    func reported(_ id: UInt64) async throws(SluiceError)

    func pendingIngest(
        after number: UInt64, taken: UInt64, maximumObjects: Int, maximumBytes: Int
    ) async throws(SluiceError) -> IngestBatch?
    func shortenIngest(_ cut: IngestCut) async throws(SluiceError) -> CompensationReport?
    func acknowledgeIngest(upTo number: UInt64, refused: [CompensatingWrite]) async throws(SluiceError) -> CompensationReport?

    func beginBootstrap(version: UInt64, keeping types: [Int], checkpoint: [UInt8]) async throws(SluiceError)
    func stage(type: Int, rows: [RowRef], of buffer: RowBuffer, checkpoint: [UInt8]) async throws(SluiceError)
    func stageTimes(type: Int, _ times: [StagedTimes], numbers: [UInt32]) async throws(SluiceError)
    func stageRemoval(type: Int, keys: [Value], reasons: [LeftObject.Reason]) async throws(SluiceError)
    func stageKept(type: Int, keys: [Value]) async throws(SluiceError)
    func endBootstrap(version: UInt64, lsn: LSN, types: [Int], held: [UInt8], taken: UInt64, completes: Bool) async throws(SluiceError)
    func held() async throws(SluiceError) -> [UInt8]
    func checkpoint() async throws(SluiceError) -> [UInt8]
    func apply(_ batch: ReplicaBatch) async throws(SluiceError)

    /// Registers a handler, called after each commit that gives the engine something to send. Returns the observer's number.
    func onLocalChange(_ handler: @escaping @Sendable () -> Void) -> UInt64
    func removeObserver(_ number: UInt64)
}

extension Replica: SyncReplica {}

extension SyncReplica {
    func localState() async throws(SluiceError) -> LocalState {
        let (reset, resets) = try await resetUnderWay()
        // Before the first pending changeset is read: a changeset written in between has a base that is not older than this position.
        let applied = try await appliedPosition()
        let first = try await pendingChangesets(after: 0, maximumBytes: 1).first
        return LocalState(
            identity: try await identity(), applied: applied, held: try await held(), checkpoint: try await checkpoint(),
            compensation: try await lastCompensation(),
            firstUnacknowledged: first?.number, oldestBase: min(first?.base ?? applied.lsn, applied.lsn), reset: reset, resets: resets,
            isForeign: try await isForeign())
    }

    /// Reads the sets before the changesets: a set must never be known without the changesets made before it.
    func pending(_ query: LocalQuery) async throws(SluiceError) -> LocalPending {
        var pending = LocalPending(sets: try await openSets())
        if let number = query.changesetsAfter {
            pending.changesets = try await pendingChangesets(after: number, maximumBytes: query.maximumBytes)
        }
        if let number = query.ingestAfter {
            pending.ingest = try await pendingIngest(
                after: number, taken: query.ingestTaken, maximumObjects: Limits.ingestRulesObjects,
                maximumBytes: Limits.ingestBatchBytes)
        }
        return pending
    }

    /// The number of newest sets that are considered. If an app commits more while offline, its older writes are sent in the oldest of
    /// these.
    private static var openSetLimit: UInt64 { 100 }

    private func openSets() async throws(SluiceError) -> [StoredSubscriptionSet] {
        let latest = try await latestSubscriptionSet()
        let applied = try await appliedPosition().version
        var sets: [StoredSubscriptionSet] = []
        let first = min(max(applied, latest.version - min(latest.version, Self.openSetLimit)), latest.version)
        for version in (applied < first ? [applied] : []) + Array(first..<latest.version) {
            let set = try await syncSubscriptionSet(version: version)
            if set.state != .superseded { sets.append(set) }
        }
        return sets + [latest]
    }
}
