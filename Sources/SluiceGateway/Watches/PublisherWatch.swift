import Logging
import SluiceCore
import SluicePipeline
import SluicePorts
import Synchronization

/// Updates metrics, readiness and the quarantine from the publisher's reports.
struct PublisherWatch: Sendable {
    let schema: GatewaySchema
    let quarantine: QuarantineKeeper
    let readiness: Readiness
    let metrics: Metrics
    let logger: Logger
    let bounds: RecordBoundWatch
    let uploads: UploadSpans?
    let pieces = TransactionPieces()

    func report(_ report: PublisherReport) {
        switch report {
        case .holding:
            metrics.number(.isPublisher).set(1.0)
            quarantine.isResponsible(true)
        case .waiting:
            metrics.number(.isPublisher).set(0.0)
            quarantine.isResponsible(false)
            readiness.set("publisher", nil)
        case .failed(let error):
            metrics.number(.isPublisher).set(0.0)
            quarantine.isResponsible(false)
            readiness.set(
                "publisher", SluiceError(error.code, "Publishing stopped and is being restarted.", cause: .error(error)))
        case .appended(let transactions): uploads?.published(transactions)
        case .batch(let changes, _, let unfit):
            metrics.number(.capturedChanges).add(changes)
            metrics.number(.publishedRecords).add(changes)
            readiness.set("publisher", nil)
            if changes > 0 { pieces.published() }
            if !unfit.isEmpty { note(unfit) }
        case .refused(let rows, let sizes):
            metrics.number(.refusedRecords).add(rows.count)
            let types = schema.current().schema.types
            for (type, bytes) in sizes where types.indices.contains(type) { bounds.refused(type: types[type].name, bytes: bytes) }
            note(rows)
        case .announced:
            pieces.ended()
        }
    }

    /// Quarantines rows that do not fit their class. They never stop the stream.
    private func note(_ rows: [UnfitRow]) {
        quarantine.note(rows, types: schema.current().schema.types.map(\.name))
        let unfit = rows.filter { $0.reason != nil }
        guard let reason = unfit.first?.reason else { return }
        logger.warning("Rows do not fit their classes and are not sent.", metadata: ["rows": "\(unfit.count)", "first": "\(reason)"])
    }
}

/// Counts the pieces of transactions that are too long for one batch. The watermark cannot advance inside such a transaction.
final class TransactionPieces: Sendable {
    private let state = Mutex((isOpen: false, count: UInt64(0)))

    var count: UInt64 { state.withLock(\.count) }

    /// Records that a batch is in the log. The second batch without an announced position is a piece of a long transaction.
    func published() {
        state.withLock { state in
            if state.isOpen { state.count += 1 }
            state.isOpen = true
        }
    }

    /// Records that the log announced a position: the last transaction is complete.
    func ended() { state.withLock { $0.isOpen = false } }
}
