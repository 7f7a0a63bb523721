import SluiceCore
import SluiceReplica
import SluiceSync
import Synchronization

/// A file on a device that is full when a bootstrap is to be shown, so many times.
final class FailingReplica: SyncReplica {
    private let file: Replica
    private let failures: Mutex<Int>

    init(_ file: Replica, failures: Int) {
        self.file = file
        self.failures = Mutex(failures)
    }

    func endBootstrap(
        version: UInt64, lsn: LSN, types: [Int], held: [UInt8], taken: UInt64, completes: Bool
    ) async throws(SluiceError) {
        let fails = failures.withLock { left in
            defer { left = max(left - 1, 0) }
            return left > 0
        }
        if fails { throw SluiceError(.deviceFull, "The disk is full.") }
        try await file.endBootstrap(version: version, lsn: lsn, types: types, held: held, taken: taken, completes: completes)
    }

    // MARK: What goes on as ever

    var schema: Schema { file.schema }

    func isForeign() async throws(SluiceError) -> Bool { try await file.isForeign() }
    func identity() async throws(SluiceError) -> ReplicaIdentity? { try await file.identity() }
    func setIdentity(_ identity: ReplicaIdentity) async throws(SluiceError) { try await file.setIdentity(identity) }
    func appliedPosition() async throws(SluiceError) -> AppliedPosition { try await file.appliedPosition() }
    func observe(_ milliseconds: Int64) async throws(SluiceError) { try await file.observe(milliseconds) }
    func lastCompensation() async throws(SluiceError) -> UInt64 { try await file.lastCompensation() }
    func forgetServer(reset: ReplicaReset?) async throws(SluiceError) { try await file.forgetServer(reset: reset) }
    func resetUnderWay() async throws(SluiceError) -> (reset: ReplicaReset?, count: UInt64) { try await file.resetUnderWay() }

    func latestSubscriptionSet() async throws(SluiceError) -> StoredSubscriptionSet { try await file.latestSubscriptionSet() }
    func syncSubscriptionSet(version: UInt64) async throws(SluiceError) -> StoredSubscriptionSet {
        try await file.syncSubscriptionSet(version: version)
    }
    func setSubscriptionState(version: UInt64, _ state: SubscriptionState) async throws(SluiceError) {
        try await file.setSubscriptionState(version: version, state)
    }

    func pendingChangesets(after number: UInt64, maximumBytes: Int) async throws(SluiceError) -> [Changeset] {
        try await file.pendingChangesets(after: number, maximumBytes: maximumBytes)
    }
    func renumberPending(after number: UInt64, time: HybridTime) async throws(SluiceError) {
        try await file.renumberPending(after: number, time: time)
    }
    func acknowledgeUpload(upTo number: UInt64, lsn: LSN, futile: [FutileWrite]) async throws(SluiceError) {
        try await file.acknowledgeUpload(upTo: number, lsn: lsn, futile: futile)
    }
    func applyCompensation(id: UInt64, writes: [CompensatingWrite]) async throws(SluiceError) -> CompensationReport? {
        try await file.applyCompensation(id: id, writes: writes)
    }
    func setAside(changeset number: UInt64, _ error: SluiceError) async throws(SluiceError) -> CompensationReport? {
        try await file.setAside(changeset: number, error)
    }
    func unreportedRefusals() async throws(SluiceError) -> [CompensationReport] { try await file.unreportedRefusals() }
    func reported(_ id: UInt64) async throws(SluiceError) { try await file.reported(id) }

    func pendingIngest(
        after number: UInt64, taken: UInt64, maximumObjects: Int, maximumBytes: Int
    ) async throws(SluiceError) -> IngestBatch? {
        try await file.pendingIngest(after: number, taken: taken, maximumObjects: maximumObjects, maximumBytes: maximumBytes)
    }
    func shortenIngest(_ cut: IngestCut) async throws(SluiceError) -> CompensationReport? { try await file.shortenIngest(cut) }
    func acknowledgeIngest(upTo number: UInt64, refused: [CompensatingWrite]) async throws(SluiceError) -> CompensationReport? {
        try await file.acknowledgeIngest(upTo: number, refused: refused)
    }

    func beginBootstrap(version: UInt64, keeping types: [Int], checkpoint: [UInt8]) async throws(SluiceError) {
        try await file.beginBootstrap(version: version, keeping: types, checkpoint: checkpoint)
    }
    func stage(type: Int, rows: [RowRef], of buffer: RowBuffer, checkpoint: [UInt8]) async throws(SluiceError) {
        try await file.stage(type: type, rows: rows, of: buffer, checkpoint: checkpoint)
    }
    func stageTimes(type: Int, _ times: [StagedTimes], numbers: [UInt32]) async throws(SluiceError) {
        try await file.stageTimes(type: type, times, numbers: numbers)
    }
    func stageRemoval(type: Int, keys: [Value], reasons: [LeftObject.Reason]) async throws(SluiceError) {
        try await file.stageRemoval(type: type, keys: keys, reasons: reasons)
    }
    func stageKept(type: Int, keys: [Value]) async throws(SluiceError) { try await file.stageKept(type: type, keys: keys) }
    func held() async throws(SluiceError) -> [UInt8] { try await file.held() }
    func checkpoint() async throws(SluiceError) -> [UInt8] { try await file.checkpoint() }
    func apply(_ batch: ReplicaBatch) async throws(SluiceError) { try await file.apply(batch) }

    func onLocalChange(_ handler: @escaping @Sendable () -> Void) -> UInt64 { file.onLocalChange(handler) }
    func removeObserver(_ number: UInt64) { file.removeObserver(number) }
}
