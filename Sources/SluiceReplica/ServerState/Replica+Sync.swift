package import SluiceCore

/// The sync engine's calls. Each is one transaction on the writer queue, so that calls take effect in their order. A call that throws has
/// changed nothing.
extension Replica {
    /// The identity that the gateway allotted. `nil` before the first session.
    package func identity() async throws(SluiceError) -> ReplicaIdentity? {
        try await read { parts throws(SluiceError) in parts.server.identity }
    }

    /// `true` if the file contains writes of another user than the one who opened it. That user may never have had a session with it.
    package func isForeign() async throws(SluiceError) -> Bool {
        try await read { parts throws(SluiceError) in parts.server.isForeign }
    }

    /// Stores the identity of the first `Welcome`. Durable.
    package func setIdentity(_ identity: ReplicaIdentity) async throws(SluiceError) {
        try await commit(isDurable: true) { parts throws(SluiceError) in parts.server.setIdentity(identity) }
    }

    /// Records the gateway's clock, in milliseconds since 1970. Later local writes get times that are not behind it.
    package func observe(_ milliseconds: Int64) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in parts.server.observe(milliseconds) }
    }

    /// Returns the unacknowledged changesets numbered above `number`, ascending.
    /// - Parameter maximumBytes: the bound on their stored size. The first one is returned even if it is larger.
    package func pendingChangesets(after number: UInt64, maximumBytes: Int) async throws(SluiceError) -> [Changeset] {
        try await read { parts throws(SluiceError) in
            try parts.local.unacknowledged(after: number, maximumBytes: maximumBytes)
        }
    }

    /// Renumbers the changesets to upload if the gateway's last changeset `number`, made at `time`, is not this file's.
    ///
    /// A file that was restored from a backup, or copied, has another changeset of that number, or none yet. Its changesets get numbers
    /// above, so that the gateway does not mistake them for uploaded ones.
    /// - Parameter time: zero if unknown.
    package func renumberPending(after number: UInt64, time: HybridTime) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.local.renumber(after: number, time: time) }
    }

    /// Marks the changesets up to `number` as committed on the server at `lsn`. They stay pending until the replica has applied `lsn`,
    /// which may be the case already.
    /// - Parameter futile: writes without effect. The replica shows their objects as deleted at once.
    package func acknowledgeUpload(upTo number: UInt64, lsn: LSN, futile: [FutileWrite] = []) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in
            try parts.local.acknowledge(upTo: number, lsn: lsn, futile: futile)
        }
    }

    /// Returns a set by version. One that is no longer kept is superseded and empty.
    package func syncSubscriptionSet(version: UInt64) async throws(SluiceError) -> StoredSubscriptionSet {
        try await read { parts throws(SluiceError) in try parts.subscriptions.set(version: version) }
    }

    /// Records the gateway's answer. A complete set supersedes all older ones. An error leaves older ones unchanged.
    package func setSubscriptionState(version: UInt64, _ state: SubscriptionState) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.subscriptions.setState(version: version, state) }
    }

    /// Begins to stage a bootstrap. The set `version` becomes bootstrapping if it was pending. Drops staged rows of other classes.
    /// - Parameters:
    ///   - types: the classes whose earlier staged rows are kept for `stageKept`.
    ///   - checkpoint: the gateway's resume offer for those rows, returned by `checkpoint()`.
    package func beginBootstrap(version: UInt64, keeping types: [Int] = [], checkpoint: [UInt8] = []) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in
            try parts.server.beginBootstrap(version: version, keeping: types, checkpoint: checkpoint)
        }
    }

    /// Stages rows of one class until the end of the bootstrap. A row replaces a staged row with its key. Takes about 2 µs a row.
    /// - Parameters:
    ///   - type: the index in `schema.types`.
    ///   - rows: rows of `buffer`, with cells in the order of the class's properties. Absent cells read as the default.
    ///   - checkpoint: the resume offer that covers them, for `checkpoint()`. Empty keeps the last one.
    package func stage(type: Int, rows: [RowRef], of buffer: RowBuffer, checkpoint: [UInt8] = []) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in
            try parts.server.staging.stage(type: type, rows: rows, of: buffer, checkpoint: checkpoint)
        }
    }

    /// Stages the write times of rows until the end of the bootstrap, for the objects with pending changes.
    /// - Parameters:
    ///   - times: they are merged with those staged earlier for the same row.
    ///   - numbers: the numbers that they use for properties, in the order of the class's properties. Empty if they are its own.
    package func stageTimes(type: Int, _ times: [StagedTimes], numbers: [UInt32] = []) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in
            try parts.server.staging.stageTimes(type: type, times, numbers: numbers)
        }
    }

    /// Stages removals until the end of the bootstrap: objects that left the view during it, or with the new set. A row with the same key
    /// that is staged later overrides the removal.
    /// - Parameter reasons: the reasons, in the order of the keys. Empty if unknown.
    package func stageRemoval(type: Int, keys: [Value], reasons: [LeftObject.Reason] = []) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in
            try parts.server.staging.stageRemoval(type: type, keys: keys, reasons: reasons)
        }
    }

    /// Records objects of the view that stay as the replica has them, or as they were staged before the bootstrap was resumed. A row or a
    /// removal with the same key overrides this.
    package func stageKept(type: Int, keys: [Value]) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.server.staging.stageKept(type: type, keys: keys) }
    }

    /// Shows the staged rows in one transaction. Objects of `types` that were neither staged nor kept leave the view. The replica is then
    /// at `lsn` for the set `version`. The set becomes complete, unless `completes` is `false` and the caller sets the state later.
    /// - Parameters:
    ///   - held: the gateway's client view record, which `held()` returns to the next session.
    ///   - taken: the staged rows and removals reflect pending changesets up to this number. Their changes are no longer applied on top
    ///     of these objects. Changes to other objects wait for the acknowledgement, as the gateway may reject them.
    package func endBootstrap(
        version: UInt64, lsn: LSN, types: [Int], held: [UInt8] = [], taken: UInt64 = 0, completes: Bool = true
    ) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in
            try parts.server.endBootstrap(version: version, lsn: lsn, types: types, held: held, taken: taken, completes: completes)
        }
    }

    /// The client view record of the last bootstrap. Empty if there was none, or the replica's classes have changed.
    package func held() async throws(SluiceError) -> [UInt8] {
        try await read { parts throws(SluiceError) in parts.server.held }
    }

    /// The resume offer of an unfinished bootstrap. Empty if no staged rows can be resumed.
    package func checkpoint() async throws(SluiceError) -> [UInt8] {
        try await read { parts throws(SluiceError) in parts.server.checkpoint }
    }

    /// Applies server transactions, all or none. Skips commits at or before the applied position. Changes of the replica's own changesets
    /// to objects that their commits do not name wait for the acknowledgement, as the gateway may reject them.
    package func apply(_ batch: ReplicaBatch) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.server.apply(batch) }
    }

    /// The number of the last compensation applied, for `Upload`.
    package func lastCompensation() async throws(SluiceError) -> UInt64 {
        try await read { parts throws(SluiceError) in parts.local.compensations.last }
    }

    /// Undoes the named changesets' writes to the named objects. These show the server's state again, with later local writes.
    /// - Returns: the report for the app, with the intended values. `nil` if compensation `id` was applied before.
    @discardableResult
    package func applyCompensation(id: UInt64, writes: [CompensatingWrite]) async throws(SluiceError) -> CompensationReport? {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.local.compensations.apply(id: id, writes: writes) }
    }

    /// Undoes a changeset that no message can carry. The changeset stays, empty.
    /// - Parameter error: `writeTooLarge`, for the app.
    /// - Returns: the report for the app. `nil` if the changeset has no changes left.
    @discardableResult
    package func setAside(changeset number: UInt64, _ error: SluiceError) async throws(SluiceError) -> CompensationReport? {
        try await commit(isDurable: true) { parts throws(SluiceError) in try parts.local.compensations.setAside(changeset: number, error) }
    }

    /// Returns the next asymmetric objects to send, numbered above `number`, or `nil` if there are none.
    /// - Parameters:
    ///   - taken: the highest batch that the gateway has. A new batch is numbered above it: a file restored from a backup may know
    ///     fewer.
    ///   - maximumObjects, maximumBytes: bounds of a batch, applied when it is formed.
    package func pendingIngest(
        after number: UInt64, taken: UInt64 = 0, maximumObjects: Int = Limits.ingestRulesObjects,
        maximumBytes: Int = Limits.ingestBatchBytes
    ) async throws(SluiceError) -> IngestBatch? {
        try await commit(isDurable: true) { parts throws(SluiceError) in
            try parts.ingest.nextBatch(after: number, taken: taken, maximumObjects: maximumObjects, maximumBytes: maximumBytes)
        }
    }

    /// Deletes objects of a batch that no message can carry, and returns others of it to the queue. The batch keeps its number.
    /// - Returns: the report for the app. `nil` if no object was deleted.
    @discardableResult
    package func shortenIngest(_ cut: IngestCut) async throws(SluiceError) -> CompensationReport? {
        try await commit(isDurable: true) { parts throws(SluiceError) in try parts.ingest.shorten(cut) }
    }

    /// Deletes the batches up to `number`, which the ingest log has.
    /// - Returns: the report for the app. `nil` if no object was rejected.
    @discardableResult
    package func acknowledgeIngest(
        upTo number: UInt64, refused: [CompensatingWrite] = []
    ) async throws(SluiceError) -> CompensationReport? {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.ingest.acknowledge(upTo: number, refused: refused) }
    }

    /// Returns the compensating writes that were not reported to the app, oldest first.
    package func unreportedRefusals() async throws(SluiceError) -> [CompensationReport] {
        try await read { parts throws(SluiceError) in try parts.local.compensations.reports.all() }
    }

    /// Deletes a report after the app has received it.
    package func reported(_ id: UInt64) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.local.compensations.reports.forget(id) }
    }

    /// Forgets the server, for a gateway that does not know this replica. Identity and position are dropped. Pending writes stay and are
    /// numbered from 1 again. The newest subscription set becomes pending. Rows stay visible until the next bootstrap replaces them.
    /// - Parameter reset: the effect of that bootstrap's end on the pending writes, for a client reset.
    package func forgetServer(reset: ReplicaReset? = nil) async throws(SluiceError) {
        try await commit(isDurable: true) { parts throws(SluiceError) in try parts.server.reset.begin(reset) }
    }

    /// The client reset under way, which the next bootstrap ends, and the number of resets begun since the last that ended.
    package func resetUnderWay() async throws(SluiceError) -> (reset: ReplicaReset?, count: UInt64) {
        try await read { parts throws(SluiceError) in parts.server.reset.underWay }
    }

}
