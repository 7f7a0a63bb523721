import Logging
import SluiceCore
import SluicePorts
import SluicePostgres
import Synchronization

/// The list of rows that do not fit their class. It also releases rows that fit again.
///
/// Reports never block the caller. One task works through them in order. The publishing gateway checks the list when publishing starts,
/// as the schema may have grown, and every minute.
final class QuarantineKeeper: Sendable {
    // Reports arrive from any task; only `run` reads them.
    private enum Work: Sendable {
        case rows([UnfitRow], types: [String])
        case met(type: String, key: String, reason: String)
        case look(limit: Int)

        var rows: Int {
            switch self {
            case .rows(let rows, types: _): rows.count
            case .met: 1
            case .look: 0
            }
        }
    }

    private struct State {
        var isResponsible = false
        /// The rows in reports that are queued or in work.
        var waitingRows = 0
        /// The rows met by reads that are already reported.
        var met: Set<[String]> = []
    }

    /// The maximum number of queued reports. The keeper drops further ones and logs an error.
    static let waiting = 4_096
    /// The maximum number of rows in queued reports. The last report may exceed it.
    static let waitingRows = 16_384
    /// The maximum number of rows remembered as met. At the bound the set is emptied and each row is reported again.
    static let remembered = 10_000
    /// The maximum number of rows to check at once: when publishing starts, and each minute.
    static let (all, some) = (10_000, 1_000)
    private static let pause: Duration = .seconds(60)

    private let store: QuarantineStore
    private let tables: GatewayTables
    private let metrics: Metrics
    private let logger: Logger
    private let state = Mutex(State())
    private let work: AsyncStream<Work>
    private let door: AsyncStream<Work>.Continuation

    init(store: QuarantineStore, tables: GatewayTables, metrics: Metrics, logger: Logger) {
        self.store = store
        self.tables = tables
        self.metrics = metrics
        self.logger = logger
        (work, door) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.waiting))
    }

    // MARK: Reports

    /// Reports rows that the publisher met in changes.
    func note(_ rows: [UnfitRow], types: [String]) { enqueue(.rows(rows, types: types)) }

    /// Reports a row that a snapshot left out of a client's view. Does nothing if the row is already remembered.
    func met(type: String, key: String, reason: String) {
        let isNew = state.withLock { state in
            if state.met.count >= Self.remembered { state.met.removeAll() }
            return state.met.insert([type, key]).inserted
        }
        if isNew { enqueue(.met(type: type, key: key, reason: reason)) }
    }

    /// Sets whether this gateway publishes. `true` also starts a check of the list.
    func isResponsible(_ isResponsible: Bool) {
        state.withLock { $0.isResponsible = isResponsible }
        // Also if it was `true` before: the publisher reopens for a new schema.
        if isResponsible { enqueue(.look(limit: Self.all)) }
    }

    private func enqueue(_ work: Work) {
        let hasRoom = state.withLock { state in
            // The count is raised before the row is queued; otherwise the worker could subtract it first.
            guard state.waitingRows < Self.waitingRows else { return false }
            state.waitingRows += work.rows
            return true
        }
        if hasRoom {
            let result = door.yield(work)
            if case .enqueued = result { return }
            state.withLock { $0.waitingRows -= work.rows }
            // A gateway that stops may still begin to publish. A look that it does not take loses nothing.
            if case .terminated = result, work.rows == 0 { return }
        }
        logger.error("The queue of unfit rows is full. Some were not recorded.", metadata: ["limit": "\(Self.waiting)"])
    }

    // MARK: Work

    func run() async throws {
        try await withThrowingDiscardingTaskGroup { group in
            group.addTask {
                for await work in self.work {
                    await self.attempt(work)
                    self.state.withLock { $0.waitingRows -= work.rows }
                }
            }
            group.addTask {
                while true {
                    try await Task.sleep(for: Self.pause)
                    if self.state.withLock(\.isResponsible) { self.enqueue(.look(limit: Self.some)) }
                }
            }
        }
    }

    private func attempt(_ work: Work) async {
        do {
            switch work {
            case .rows(let rows, let types): try await store.record(rows, types: types)
            case .met(let type, let key, let reason): try await store.met(type: type, key: key, reason: reason)
            case .look(let limit): _ = try await released(limit: limit)
            }
            _ = try await counted()
        } catch is CancellationError {
            // The gateway is ending. A row that is met again is reported then.
        } catch {
            logger.error("Unfit rows could not be recorded.", metadata: ["error": "\(error)"])
        }
    }

    /// Releases the rows that fit, without the queue.
    ///
    /// - Returns: The number of rows released or deleted, and the number left.
    func look() async throws -> (released: Int, left: Int) { (try await released(limit: Self.all), try await counted()) }

    private func released(limit: Int) async throws -> Int {
        let tables = tables
        // A row that is released and breaks again must be reported again.
        state.withLock { $0.met.removeAll() }
        let released = try await store.release({ try? tables.shape(of: $0) }, limit: limit)
        if released > 0 { logger.notice("Rows that did not fit their class now fit, or were deleted.", metadata: ["rows": "\(released)"]) }
        return released
    }

    private func counted() async throws -> Int {
        let count = try await store.count()
        metrics.number(.quarantined).set(Double(count))
        return count
    }

    func reason(type: String, key: String) async throws -> String? { try await store.reason(type: type, key: key) }

    func list(type: String?, limit: Int) async throws -> (rows: [QuarantinedRow], count: Int) {
        (try await store.list(type: type, limit: limit), try await store.count())
    }
}
