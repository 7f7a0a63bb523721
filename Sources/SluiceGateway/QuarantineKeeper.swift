import Logging
import SluiceCore
import SluicePostgres
import Synchronization

/// Keeps the list of rows that do not fit their classes, and releases those that do by now (EXT-3).
///
/// It is told by whoever meets such a row, never makes anybody wait, and does one thing after the other, in the order told. The
/// gateway that publishes also looks at the list when it begins to publish, which is when the schema has grown, and every minute.
final class QuarantineKeeper: Sendable {
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
        /// Rows of what waits to be done.
        var waitingRows = 0
        /// Rows met by reading that need not be noted again.
        var met: Set<[String]> = []
    }

    /// Things to do that may wait; what comes beyond them is not noted, and says so in the log.
    static let waiting = 4_096
    /// Rows of these; one thing to do may go beyond.
    static let waitingRows = 16_384
    /// Rows met by reading that are remembered; beyond them each is noted anew.
    static let remembered = 10_000
    /// Rows looked at in one go: when publishing begins, and each minute.
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

    // MARK: Being told

    /// What changes said of rows.
    func note(_ rows: [UnfitRow], types: [String]) { enqueue(.rows(rows, types: types)) }

    /// A row was left out of what was read for a device.
    func met(type: String, key: String, reason: String) {
        let isNew = state.withLock { state in
            if state.met.count >= Self.remembered { state.met.removeAll() }
            return state.met.insert([type, key]).inserted
        }
        if isNew { enqueue(.met(type: type, key: key, reason: reason)) }
    }

    /// Whether this gateway publishes.
    func isResponsible(_ isResponsible: Bool) {
        state.withLock { $0.isResponsible = isResponsible }
        // Also when it did before: a publisher that opens again does so for a new schema.
        if isResponsible { enqueue(.look(limit: Self.all)) }
    }

    private func enqueue(_ work: Work) {
        let hasRoom = state.withLock { state in
            guard state.waitingRows < Self.waitingRows else { return false }
            state.waitingRows += work.rows
            return true
        }
        if hasRoom {
            if case .enqueued = door.yield(work) { return }
            state.withLock { $0.waitingRows -= work.rows }
        }
        logger.error("Too much waits to be noted of rows that do not fit; something was not.", metadata: ["limit": "\(Self.waiting)"])
    }

    // MARK: Doing

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
            // The gateway ends; what is met again is noted then.
        } catch {
            logger.error("What was met of rows that do not fit could not be noted.", metadata: ["error": "\(error)"])
        }
    }

    /// Releases what fits. - Returns: how many rows were released or are gone, and how many are left.
    func look() async throws -> (released: Int, left: Int) { (try await released(limit: Self.all), try await counted()) }

    private func released(limit: Int) async throws -> Int {
        let tables = tables
        state.withLock { $0.met.removeAll() }
        let released = try await store.release({ try? tables.shape(of: $0) }, limit: limit)
        if released > 0 { logger.notice("Rows that did not fit do, or are gone.", metadata: ["rows": "\(released)"]) }
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
