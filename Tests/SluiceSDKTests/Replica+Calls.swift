import SluiceCore
import SluiceReplica

/// The calls of the sync engine, each in a transaction of its own, for tests that play the gateway.
extension SluiceReplica.Replica {
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

    func endBootstrap(
        version: UInt64, lsn: LSN, types: [Int], held: [UInt8] = [], taken: UInt64 = 0, completes: Bool = true
    ) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in
            try parts.server.endBootstrap(version: version, lsn: lsn, types: types, held: held, taken: taken, completes: completes)
        }
    }

    func apply(_ batch: ReplicaBatch) async throws(SluiceError) {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.server.apply(batch) }
    }

    func pendingChangesets(after number: UInt64, maximumBytes: Int) async throws(SluiceError) -> [Changeset] {
        try await read { parts throws(SluiceError) in
            try parts.local.unacknowledged(after: number, maximumBytes: maximumBytes)
        }
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
    func acknowledgeIngest(
        upTo number: UInt64, refused: [CompensatingWrite] = []
    ) async throws(SluiceError) -> CompensationReport? {
        try await commit(isDurable: false) { parts throws(SluiceError) in try parts.ingest.acknowledge(upTo: number, refused: refused) }
    }

    @discardableResult
    func shortenIngest(_ cut: IngestCut) async throws(SluiceError) -> CompensationReport? {
        try await commit(isDurable: true) { parts throws(SluiceError) in try parts.ingest.shorten(cut) }
    }
}
