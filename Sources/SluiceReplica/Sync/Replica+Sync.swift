package import SluiceCore

/// What the sync engine asks of the replica. Each call is one transaction on the writer queue, so calls take effect in
/// the order in which they are made; a call that throws has changed nothing.
extension Replica {
    /// What the gateway allotted to this file; nil before the first session.
    package func identity() async throws(SluiceError) -> ReplicaIdentity? {
        try await onWriter { writer throws(SluiceError) in writer.meta.identity }
    }

    /// Whether the file holds what another user than the one who opened it has written, who may never have been in a session with it.
    package func isForeign() async throws(SluiceError) -> Bool {
        try await onWriter { writer throws(SluiceError) in writer.owner.map { $0 != writer.meta.owner } ?? false }
    }

    /// Keeps the identity of the first Welcome.
    package func setIdentity(_ identity: ReplicaIdentity) async throws(SluiceError) {
        try await commit(isDurable: true) { writer throws(SluiceError) in writer.meta.identity = identity }
    }

    /// Takes note of the gateway's clock, milliseconds since 1970: local writes get later times from then on.
    package func observe(_ milliseconds: Int64) async throws(SluiceError) {
        try await commit { writer throws(SluiceError) in writer.observe(milliseconds) }
    }

    package func appliedPosition() async throws(SluiceError) -> AppliedPosition {
        try await onWriter { writer throws(SluiceError) in writer.meta.applied }
    }

    /// Changesets that are not acknowledged yet and numbered above `number`, ascending.
    /// - Parameter maximumBytes: a bound on their stored size; the first is returned even when it alone is larger.
    package func pendingChangesets(after number: UInt64, maximumBytes: Int) async throws(SluiceError) -> [Changeset] {
        try await onWriter { writer throws(SluiceError) in
            try writer.unacknowledgedChangesets(after: number, maximumBytes: maximumBytes)
        }
    }

    /// The gateway's last changeset of this file has this number and was made at this time. A file that was restored from a backup, or
    /// copied, has another of that number, or none yet: what it has to upload gets numbers behind it, so that it is not taken for what
    /// was uploaded.
    /// - Parameter time: zero when it is not known.
    package func renumberPending(after number: UInt64, time: HybridTime) async throws(SluiceError) {
        try await commit { writer throws(SluiceError) in try writer.renumber(after: number, time: time) }
    }

    /// The changesets up to `number` are committed on the server at `lsn`. They stop counting as pending when the file
    /// has applied `lsn`, which may be now.
    /// - Parameter futile: what came to nothing: the file shows that at once.
    package func acknowledgeUpload(upTo number: UInt64, lsn: LSN, futile: [FutileWrite] = []) async throws(SluiceError) {
        try await commit { writer throws(SluiceError) in try writer.acknowledge(upTo: number, lsn: lsn, futile: futile) }
    }

    /// The newest subscription set, whatever its state. Its subscriptions' `type` and `query` are what Subscribe sends.
    package func latestSubscriptionSet() async throws(SluiceError) -> StoredSubscriptionSet {
        try await onWriter { writer throws(SluiceError) in try writer.connection.latestSubscriptionSet() }
    }

    /// A set by version; one that is no longer kept is superseded and empty.
    package func syncSubscriptionSet(version: UInt64) async throws(SluiceError) -> StoredSubscriptionSet {
        try await onWriter { writer throws(SluiceError) in try writer.connection.subscriptionSet(version: version) }
    }

    /// Records the server's answer. A complete set supersedes all older ones; an error leaves older ones as they are.
    package func setSubscriptionState(version: UInt64, _ state: SubscriptionState) async throws(SluiceError) {
        try await commit { writer throws(SluiceError) in try writer.setSubscriptionState(version: version, state) }
    }

    /// Forgets what was staged and begins anew; the set `version` becomes bootstrapping unless it is complete.
    /// - Parameters:
    ///   - types: what was staged of these stays aside: `stageKept` brings it back.
    ///   - checkpoint: what that is in the gateway's words, for `checkpoint()`.
    package func beginBootstrap(version: UInt64, keeping types: [Int] = [], checkpoint: [UInt8] = []) async throws(SluiceError) {
        try await commit { writer throws(SluiceError) in
            try writer.beginBootstrap(version: version, keeping: types, checkpoint: checkpoint)
        }
    }

    /// Puts rows of one type aside until the end of the bootstrap; a row with a key that is staged already replaces it.
    /// Costs about 2 µs a row.
    /// - Parameters:
    ///   - type: index into `schema.types`.
    ///   - rows: rows of `buffer`, cells in the order of that type's properties, absent cells read as the default.
    ///   - checkpoint: how far the bootstrap has come with them, for `checkpoint()`; empty leaves it as it is.
    package func stage(type: Int, rows: [RowRef], of buffer: RowBuffer, checkpoint: [UInt8] = []) async throws(SluiceError) {
        try await commit { writer throws(SluiceError) in
            try writer.stage(type: type, rows: rows, of: buffer)
            if !checkpoint.isEmpty { writer.meta.checkpoint = checkpoint }
        }
    }

    /// Puts the write times of rows aside until the end of the bootstrap, for the objects with pending changes.
    /// - Parameters:
    ///   - times: they follow those that were staged of the same row.
    ///   - numbers: the numbers by which they name properties, in the order of the type's properties; empty when they are its own.
    package func stageTimes(type: Int, _ times: [StagedTimes], numbers: [UInt32] = []) async throws(SluiceError) {
        try await commit { writer throws(SluiceError) in try writer.stageTimes(type: type, times, numbers: numbers) }
    }

    /// Puts removals aside until the end of the bootstrap: objects that left the view while it ran, or with the new set. A
    /// row of the same key that is staged later counts again.
    /// - Parameter reasons: why, in the order of the keys; empty when nothing is known.
    package func stageRemoval(type: Int, keys: [Value], reasons: [LeftObject.Reason] = []) async throws(SluiceError) {
        try await commit { writer throws(SluiceError) in try writer.stageRemoval(type: type, keys: keys, reasons: reasons) }
    }

    /// Notes that objects are in the view as the file has them, or as they were staged before the bootstrap went on. A row, or a
    /// removal, of the same key counts instead.
    package func stageKept(type: Int, keys: [Value]) async throws(SluiceError) {
        try await commit { writer throws(SluiceError) in try writer.stageKept(type: type, keys: keys) }
    }

    /// Shows what was staged, at once: objects of `types` that were neither staged nor kept leave the view, the file is at
    /// `lsn` for the set `version`, which becomes complete unless `completes` is false (the caller then sets the state
    /// itself, after its mark).
    /// - Parameters:
    ///   - held: what the gateway says that the file has now; `held()` gives it back to the next session.
    ///   - taken: what pending changesets up to this number did to objects that were staged, or named as removals, is in that, and is not
    ///     shown over it any more. What they did to others waits for the acknowledgement: it may be refused.
    package func endBootstrap(
        version: UInt64, lsn: LSN, types: [Int], held: [UInt8] = [], taken: UInt64 = 0, completes: Bool = true
    ) async throws(SluiceError) {
        try await commit { writer throws(SluiceError) in
            try writer.endBootstrap(version: version, lsn: lsn, types: types, held: held, taken: taken, completes: completes)
        }
    }

    /// What the gateway said at the end of the last bootstrap; empty when there was none or the file's classes have changed.
    package func held() async throws(SluiceError) -> [UInt8] {
        try await onWriter { writer throws(SluiceError) in writer.meta.held }
    }

    /// What the gateway last said of how far an unfinished bootstrap has come; empty when nothing is staged that another could go on
    /// from.
    package func checkpoint() async throws(SluiceError) -> [UInt8] {
        try await onWriter { writer throws(SluiceError) in writer.meta.checkpoint }
    }

    /// Applies transactions of the server, all or none. Commits at or before the applied position are skipped. What the file's own
    /// changesets did to other objects than their commits name waits for the acknowledgement: it may be refused.
    package func apply(_ batch: ReplicaBatch) async throws(SluiceError) {
        try await commit { writer throws(SluiceError) in try writer.apply(batch) }
    }

    /// The highest compensation applied; it goes into Upload.
    package func lastCompensation() async throws(SluiceError) -> UInt64 {
        try await onWriter { writer throws(SluiceError) in writer.meta.compensation }
    }

    /// Takes back what the changesets named wrote to the objects named: they show the server's state again, with what was written later.
    /// - Returns: what to tell the app, with the values that were wanted; nil when compensation `id` has been applied before.
    @discardableResult
    package func applyCompensation(id: UInt64, writes: [RefusedWrite]) async throws(SluiceError) -> WriteRefusal? {
        try await commit { writer throws(SluiceError) in try writer.applyCompensation(id: id, writes: writes) }
    }

    /// Takes back what a changeset wrote, since no message can carry it. The changeset stays, empty.
    /// - Parameter error: `writeTooLarge`, for the app.
    /// - Returns: the refusal to tell the app; nil if nothing of the changeset is left.
    @discardableResult
    package func setAside(changeset number: UInt64, _ error: SluiceError) async throws(SluiceError) -> WriteRefusal? {
        try await commit(isDurable: true) { writer throws(SluiceError) in try writer.setAside(number, error) }
    }

    /// The next asymmetric objects to send, numbered above `number`; nil when there are none.
    /// - Parameters:
    ///   - taken: the highest number of a batch that the gateway has of this file, which was restored from a backup when it knows of fewer:
    ///     a batch that is formed gets a higher one.
    ///   - maximumObjects, maximumBytes: bounds on a batch; they count when it is formed.
    package func pendingIngest(
        after number: UInt64, taken: UInt64 = 0, maximumObjects: Int = Limits.ingestRulesObjects,
        maximumBytes: Int = Limits.ingestBatchBytes
    ) async throws(SluiceError) -> IngestBatch? {
        try await commit(isDurable: true) { writer throws(SluiceError) in
            try writer.nextIngestBatch(after: number, taken: taken, maximumObjects: maximumObjects, maximumBytes: maximumBytes)
        }
    }

    /// The batches up to `number` are in the log; they are forgotten here.
    /// - Returns: what to tell the app; nil when nothing was refused.
    @discardableResult
    package func acknowledgeIngest(
        upTo number: UInt64, refused: [RefusedWrite] = []
    ) async throws(SluiceError) -> WriteRefusal? {
        try await commit { writer throws(SluiceError) in try writer.acknowledgeIngest(upTo: number, refused: refused) }
    }

    /// Refusals that the app has not been told about, oldest first.
    package func unreportedRefusals() async throws(SluiceError) -> [WriteRefusal] {
        try await onWriter { writer throws(SluiceError) in try writer.refusals() }
    }

    /// The app has been told.
    package func reported(_ id: UInt64) async throws(SluiceError) {
        try await commit { writer throws(SluiceError) in try writer.forgetRefusal(id) }
    }

    /// Begins the server's side anew, for a gateway that does not know this file: identity and position are forgotten,
    /// pending writes stay and are numbered from 1 again, the newest subscription set is pending. Rows stay visible until
    /// the bootstrap that follows replaces them.
    /// - Parameter reset: what the end of that bootstrap does with the pending writes, for a client reset.
    package func forgetServer(reset: ReplicaReset? = nil) async throws(SluiceError) {
        try await commit(isDurable: true) { writer throws(SluiceError) in try writer.forgetServer(reset: reset) }
    }

    /// The client reset under way, which the next bootstrap ends; and how often one was begun since the last that ended.
    package func resetUnderWay() async throws(SluiceError) -> (reset: ReplicaReset?, count: UInt64) {
        try await onWriter { writer throws(SluiceError) in (ReplicaReset(rawValue: writer.meta.reset), writer.meta.resets) }
    }

    /// Bytes of what was written and is not acknowledged.
    /// - Parameter limit: the changesets and asymmetric objects that count; nil: all.
    package func unsentBytes(upTo limit: UploadMark? = nil) async throws(SluiceError) -> UInt64 {
        try await onWriter { writer throws(SluiceError) in try writer.unsentBytes(upTo: limit) }
    }

    /// What has been written by now.
    package func uploadMark() async throws(SluiceError) -> UploadMark {
        try await onWriter { writer throws(SluiceError) in try writer.uploadMark() }
    }
}
