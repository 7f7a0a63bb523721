package import SluiceCore
package import SluiceReplica

/// The calls of the sync engine, each in a transaction of its own, for tests that play the gateway.
extension Replica {
    package func identity() async throws(SluiceError) -> ReplicaIdentity? {
        try await read { parts throws(SluiceError) in parts.server.identity }
    }

    package func isForeign() async throws(SluiceError) -> Bool {
        try await read { parts throws(SluiceError) in parts.server.isForeign }
    }

    package func setIdentity(_ identity: ReplicaIdentity) async throws(SluiceError) {
        try await commit(isDurable: true) { parts throws(SluiceError) in parts.server.setIdentity(identity) }
    }

    package func observe(_ milliseconds: Int64) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in parts.server.observe(milliseconds) }
    }

    package func pendingChangesets(after number: UInt64, maximumBytes: Int) async throws(SluiceError) -> [Changeset] {
        try await read { parts throws(SluiceError) in
            try parts.local.unacknowledged(after: number, maximumBytes: maximumBytes)
        }
    }

    package func renumberPending(after number: UInt64, time: HybridTime) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.local.renumber(after: number, time: time) }
    }

    package func acknowledgeUpload(upTo number: UInt64, lsn: LSN, futile: [FutileWrite] = []) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in
            try parts.local.acknowledge(upTo: number, lsn: lsn, futile: futile)
        }
    }

    package func setSubscriptionState(version: UInt64, _ state: SubscriptionState) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.subscriptions.setState(version: version, state) }
    }

    package func beginBootstrap(version: UInt64, keeping types: [Int] = [], checkpoint: [UInt8] = []) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in
            try parts.server.beginBootstrap(version: version, keeping: types, checkpoint: checkpoint)
        }
    }

    package func stage(type: Int, rows: [RowRef], of buffer: RowBuffer, checkpoint: [UInt8] = []) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in
            try parts.server.staging.stage(type: type, rows: rows, of: buffer, checkpoint: checkpoint)
        }
    }

    package func stageTimes(type: Int, _ times: [StagedTimes], numbers: [UInt32] = []) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in
            try parts.server.staging.stageTimes(type: type, times, numbers: numbers)
        }
    }

    package func stageRemoval(type: Int, keys: [Value], reasons: [LeftObject.Reason] = []) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in
            try parts.server.staging.stageRemoval(type: type, keys: keys, reasons: reasons)
        }
    }

    package func stageKept(type: Int, keys: [Value]) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.server.staging.stageKept(type: type, keys: keys) }
    }

    package func endBootstrap(
        version: UInt64, lsn: LSN, types: [Int], held: [UInt8] = [], taken: UInt64 = 0, completes: Bool = true
    ) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in
            try parts.server.endBootstrap(version: version, lsn: lsn, types: types, held: held, taken: taken, completes: completes)
        }
    }

    package func held() async throws(SluiceError) -> [UInt8] {
        try await read { parts throws(SluiceError) in parts.server.held }
    }

    package func checkpoint() async throws(SluiceError) -> [UInt8] {
        try await read { parts throws(SluiceError) in parts.server.checkpoint }
    }

    package func apply(_ batch: ReplicaBatch) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.server.apply(batch) }
    }

    package func lastCompensation() async throws(SluiceError) -> UInt64 {
        try await read { parts throws(SluiceError) in parts.local.compensations.last }
    }

    @discardableResult
    package func applyCompensation(id: UInt64, writes: [CompensatingWrite]) async throws(SluiceError) -> CompensationReport? {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.local.compensations.apply(id: id, writes: writes) }
    }

    @discardableResult
    package func setAside(changeset number: UInt64, _ error: SluiceError) async throws(SluiceError) -> CompensationReport? {
        try await commit(isDurable: true) { parts throws(SluiceError) in try parts.local.compensations.setAside(changeset: number, error) }
    }

    package func pendingIngest(
        after number: UInt64, taken: UInt64 = 0, maximumObjects: Int = Limits.ingestRulesObjects,
        maximumBytes: Int = Limits.ingestBatchBytes
    ) async throws(SluiceError) -> IngestBatch? {
        try await commit(isDurable: true) { parts throws(SluiceError) in
            try parts.ingest.nextBatch(after: number, taken: taken, maximumObjects: maximumObjects, maximumBytes: maximumBytes)
        }
    }

    @discardableResult
    package func shortenIngest(_ cut: IngestCut) async throws(SluiceError) -> CompensationReport? {
        try await commit(isDurable: true) { parts throws(SluiceError) in try parts.ingest.shorten(cut) }
    }

    @discardableResult
    package func acknowledgeIngest(
        upTo number: UInt64, refused: [CompensatingWrite] = []
    ) async throws(SluiceError) -> CompensationReport? {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.ingest.acknowledge(upTo: number, refused: refused) }
    }

    package func unreportedRefusals() async throws(SluiceError) -> [CompensationReport] {
        try await read { parts throws(SluiceError) in try parts.local.compensations.reports.all() }
    }

    package func reported(_ id: UInt64) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.local.compensations.reports.forget(id) }
    }

    package func forgetServer(reset: ReplicaReset? = nil) async throws(SluiceError) {
        try await commit(isDurable: true) { parts throws(SluiceError) in try parts.server.reset.begin(reset) }
    }

    package func resetUnderWay() async throws(SluiceError) -> (reset: ReplicaReset?, count: UInt64) {
        try await read { parts throws(SluiceError) in parts.server.reset.underWay }
    }

}
