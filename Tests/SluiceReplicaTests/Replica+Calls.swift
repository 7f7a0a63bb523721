import SluiceCore
import SluiceReplica

/// The calls of the sync engine, each in a transaction of its own.
extension Replica {
    func identity() async throws(SluiceError) -> ReplicaIdentity? {
        try await read { parts throws(SluiceError) in parts.server.identity }
    }

    func isForeign() async throws(SluiceError) -> Bool {
        try await read { parts throws(SluiceError) in parts.server.isForeign }
    }

    func setIdentity(_ identity: ReplicaIdentity) async throws(SluiceError) {
        try await commit(isDurable: true) { parts throws(SluiceError) in parts.server.setIdentity(identity) }
    }

    func observe(_ milliseconds: Int64) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in parts.server.observe(milliseconds) }
    }

    func pendingChangesets(after number: UInt64, maximumBytes: Int) async throws(SluiceError) -> [Changeset] {
        try await read { parts throws(SluiceError) in
            try parts.local.unacknowledged(after: number, maximumBytes: maximumBytes)
        }
    }

    func renumberPending(after number: UInt64, time: HybridTime) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.local.renumber(after: number, time: time) }
    }

    func acknowledgeUpload(upTo number: UInt64, lsn: LSN, futile: [FutileWrite] = []) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in
            try parts.local.acknowledge(upTo: number, lsn: lsn, futile: futile)
        }
    }

    func setSubscriptionState(version: UInt64, _ state: SubscriptionState) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.subscriptions.setState(version: version, state) }
    }

    func beginBootstrap(version: UInt64, keeping types: [Int] = [], checkpoint: [UInt8] = []) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in
            try parts.server.beginBootstrap(version: version, keeping: types, checkpoint: checkpoint)
        }
    }

    func stage(type: Int, rows: [RowRef], of buffer: RowBuffer, checkpoint: [UInt8] = []) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in
            try parts.server.staging.stage(type: type, rows: rows, of: buffer, checkpoint: checkpoint)
        }
    }

    func stageTimes(type: Int, _ times: [StagedTimes], numbers: [UInt32] = []) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in
            try parts.server.staging.stageTimes(type: type, times, numbers: numbers)
        }
    }

    func stageRemoval(type: Int, keys: [Value], reasons: [LeftObject.Reason] = []) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in
            try parts.server.staging.stageRemoval(type: type, keys: keys, reasons: reasons)
        }
    }

    func stageKept(type: Int, keys: [Value]) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.server.staging.stageKept(type: type, keys: keys) }
    }

    func endBootstrap(
        version: UInt64, lsn: LSN, types: [Int], held: [UInt8] = [], taken: UInt64 = 0, completes: Bool = true
    ) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in
            try parts.server.endBootstrap(version: version, lsn: lsn, types: types, held: held, taken: taken, completes: completes)
        }
    }

    func held() async throws(SluiceError) -> [UInt8] {
        try await read { parts throws(SluiceError) in parts.server.held }
    }

    func checkpoint() async throws(SluiceError) -> [UInt8] {
        try await read { parts throws(SluiceError) in parts.server.checkpoint }
    }

    func apply(_ batch: ReplicaBatch) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.server.apply(batch) }
    }

    func lastCompensation() async throws(SluiceError) -> UInt64 {
        try await read { parts throws(SluiceError) in parts.local.compensations.last }
    }

    @discardableResult
    func applyCompensation(id: UInt64, writes: [CompensatingWrite]) async throws(SluiceError) -> CompensationReport? {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.local.compensations.apply(id: id, writes: writes) }
    }

    @discardableResult
    func setAside(changeset number: UInt64, _ error: SluiceError) async throws(SluiceError) -> CompensationReport? {
        try await commit(isDurable: true) { parts throws(SluiceError) in try parts.local.compensations.setAside(changeset: number, error) }
    }

    func pendingIngest(
        after number: UInt64, taken: UInt64 = 0, maximumObjects: Int = Limits.ingestRulesObjects,
        maximumBytes: Int = Limits.ingestBatchBytes
    ) async throws(SluiceError) -> IngestBatch? {
        try await commit(isDurable: true) { parts throws(SluiceError) in
            try parts.ingest.nextBatch(after: number, taken: taken, maximumObjects: maximumObjects, maximumBytes: maximumBytes)
        }
    }

    @discardableResult
    func shortenIngest(_ cut: IngestCut) async throws(SluiceError) -> CompensationReport? {
        try await commit(isDurable: true) { parts throws(SluiceError) in try parts.ingest.shorten(cut) }
    }

    @discardableResult
    func acknowledgeIngest(
        upTo number: UInt64, refused: [CompensatingWrite] = []
    ) async throws(SluiceError) -> CompensationReport? {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.ingest.acknowledge(upTo: number, refused: refused) }
    }

    func unreportedRefusals() async throws(SluiceError) -> [CompensationReport] {
        try await read { parts throws(SluiceError) in try parts.local.compensations.reports.all() }
    }

    func reported(_ id: UInt64) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.local.compensations.reports.forget(id) }
    }

    func forgetServer(reset: ReplicaReset? = nil) async throws(SluiceError) {
        try await commit(isDurable: true) { parts throws(SluiceError) in try parts.server.reset.begin(reset) }
    }

    func resetUnderWay() async throws(SluiceError) -> (reset: ReplicaReset?, count: UInt64) {
        try await read { parts throws(SluiceError) in parts.server.reset.underWay }
    }

}
