package import Logging
package import SluiceCore
package import SluicePorts
import Synchronization

/// The replication slot, as a change source.
package final class PostgresCapture: ChangeSource {
    private let conninfo: String
    private let names: ReplicationNames
    private let tables: CapturedTables
    private let bounds: RowBounds
    private let pool: PostgresPool
    private let logger: Logger
    private let opened = Mutex<Opened?>(nil)

    private struct Opened: Sendable {
        let stream: ReplicationStream
        let computed: ComputedRelations
        /// The revision of its tables.
        let revision: Int
    }

    package init(
        conninfo: String, names: ReplicationNames, tables: CapturedTables, bounds: RowBounds, pool: PostgresPool, logger: Logger
    ) {
        self.conninfo = conninfo
        self.names = names
        self.tables = tables
        self.bounds = bounds
        self.pool = pool
        self.logger = logger
    }

    package func open(_ schema: Schema) async throws -> LSN {
        // A slot has one reader, so an old stream must end first.
        await close()
        return try await PostgresError.translating {
            let slot = names.slot
            try await Self.ensureSlot(slot, pool, logger)
            // Read before the tables: a change between the two makes the stream outdated.
            let revision = tables.revision()
            let mappings = tables.mappings(schema)
            let configuration = ReplicationConfiguration(
                conninfo: conninfo, slot: slot, publications: [names.publication], schema: schema, tables: mappings, bounds: bounds)
            let stream = try await ReplicationStream.open(configuration)
            opened.withLock { $0 = Opened(stream: stream, computed: configuration.computed, revision: revision) }
            // Read while this stream holds the slot exclusively, and before it confirms anything.
            return try await pool.withConnection { try await ReplicationSlot.state($0, name: slot)?.confirmed } ?? .zero
        }
    }

    /// Creates the slot if it is missing, and waits for all running write transactions of the server.
    ///
    /// The slot must exist before any session starts. A session with an older snapshot would miss the commits between snapshot and slot.
    package static func ensureSlot(_ slot: String, _ pool: PostgresPool, _ logger: Logger) async throws {
        let made = try await pool.withConnection { try await ReplicationSlot.ensure($0, name: slot) }
        if made.isNew { logger.notice("A replication slot was created.", metadata: ["slot": "\(slot)"]) }
    }

    package func next(_ batch: consuming CaptureBatch, milliseconds: Int) async throws -> CaptureBatch {
        guard let opened = opened.withLock({ $0 }) else {
            throw SluiceError(.postgresUnreachable, "The slot \(names.slot) is not open.")
        }
        var batch = batch
        do {
            try await opened.stream.next(into: &batch, waitingAtMost: .milliseconds(milliseconds))
            // After the read: the batch may have rows from after the change of a table.
            guard tables.revision() == opened.revision else {
                batch.removeAll()
                batch.reached = .zero
                batch.isOutdated = true
                return batch
            }
            return batch.uncomputed.isEmpty ? batch : try await complete(batch, opened.computed)
        } catch {
            throw PostgresError.forPort(error)
        }
    }

    /// Computes the generated columns that the WAL lacks. Rows that cannot have them are reported as unfit.
    private func complete(_ batch: consuming CaptureBatch, _ computed: ComputedRelations) async throws -> CaptureBatch {
        let incomplete = batch
        return try await pool.withSession { session in
            var batch = incomplete
            var unfit: [RowRef: WithdrawnRow] = [:]
            for (number, rows) in Dictionary(grouping: batch.uncomputed, by: \.relation) {
                guard let relation = computed[number] else { continue }
                unfit.merge(try relation.complete(rows[...], &batch.rows, session)) { $1 }
            }
            batch.uncomputed.removeAll(keepingCapacity: true)
            batch.withdraw(unfit)
            return batch
        }
    }

    package func confirm(_ lsn: LSN) async throws { opened.withLock { $0 }?.stream.confirm(lsn) }

    package func hasSeen(_ witness: HistoryAnchor) async throws -> Bool? {
        switch try await PostgresError.translating({ try await History.find(witness, pool) }) {
        case .seen: true
        case .unseen: false
        case .forgotten: nil
        }
    }

    package func latestWriteTime() async throws -> HybridTime { try await ClientStore(pool: pool).latestWriteTime() }

    package func close() async {
        let open = opened.withLock { opened in
            defer { opened = nil }
            return opened
        }
        await open?.stream.close()
    }
}

/// The app's tables as a change source reads them.
package struct CapturedTables: Sendable {
    /// Returns the tables of a schema's classes.
    let mappings: @Sendable (Schema) -> [TableMapping]
    /// Returns a number that changes if a table is to be read in another way.
    let revision: @Sendable () -> Int

    package init(_ mappings: @escaping @Sendable (Schema) -> [TableMapping], revision: @escaping @Sendable () -> Int) {
        self.mappings = mappings
        self.revision = revision
    }
}
