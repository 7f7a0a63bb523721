import Logging
import SluiceCore
import SluicePipeline
import SluicePostgres

/// Makes metrics, readiness and the quarantine of what the publisher reports.
struct PublisherWatch: Sendable {
    let pool: PostgresPool
    let schema: GatewaySchema
    let readiness: Readiness
    let metrics: Metrics
    let logger: Logger

    func report(_ report: PublisherReport) {
        switch report {
        case .holding:
            metrics.number(.isPublisher).set(1)
            readiness.set("publisher", nil)
        case .waiting:
            metrics.number(.isPublisher).set(0)
            readiness.set("publisher", nil)
        case .failed(let code):
            metrics.number(.isPublisher).set(0)
            readiness.set("publisher", SluiceError(code, "Publishing has stopped and is being started again."))
        case .batch(let changes, _, let unfit):
            metrics.number(.capturedChanges).add(changes)
            metrics.number(.publishedRecords).add(changes)
            if !unfit.isEmpty { quarantine(unfit) }
        case .announced:
            break
        }
    }

    /// Keeps rows that do not fit their type where an operator finds them; they never stop the app (EXT-3).
    private func quarantine(_ rows: [UnfitRow]) {
        let types = schema.current().schema.types.map(\.name)
        let (pool, logger) = (pool, logger)
        // Unstructured because: the publisher must not wait for it; a loss of the note is logged, the row itself is in its table.
        Task {
            do {
                try await QuarantineStore(pool: pool).record(rows, types: types)
            } catch {
                logger.error(
                    "Rows that do not fit their types could not be noted.", metadata: ["rows": "\(rows.count)", "error": "\(error)"])
            }
        }
        logger.warning("Rows do not fit their types and are not sent.", metadata: ["rows": "\(rows.count)", "first": "\(rows[0].reason)"])
    }
}
