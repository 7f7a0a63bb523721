package import Logging
package import SluiceCore
package import SluicePorts
import Synchronization

/// The replication slot, as a change source.
package final class PostgresCapture: ChangeSource {
    private let conninfo: String
    private let names: ReplicationNames
    private let tables: @Sendable (Schema) -> [TableMapping]
    private let bounds: RowBounds
    private let pool: PostgresPool
    private let logger: Logger
    private let stream = Mutex<ReplicationStream?>(nil)

    /// - Parameter tables: Returns the tables of a schema's classes.
    package init(
        conninfo: String, names: ReplicationNames, tables: @escaping @Sendable (Schema) -> [TableMapping], bounds: RowBounds,
        pool: PostgresPool, logger: Logger
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
            let opened = try await ReplicationStream.open(
                ReplicationConfiguration(
                    conninfo: conninfo, slot: slot, publications: [names.publication], schema: schema,
                    tables: tables(schema), bounds: bounds))
            stream.withLock { $0 = opened }
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
        guard let stream = stream.withLock({ $0 }) else {
            throw SluiceError(.postgresUnreachable, "The slot \(names.slot) is not open.")
        }
        var batch = batch
        do {
            try await stream.next(into: &batch, waitingAtMost: .milliseconds(milliseconds))
        } catch {
            throw PostgresError.forPort(error)
        }
        return batch
    }

    package func confirm(_ lsn: LSN) async throws { stream.withLock { $0 }?.confirm(lsn) }

    package func hasSeen(_ witness: HistoryAnchor) async throws -> Bool? {
        switch try await PostgresError.translating({ try await History.find(witness, pool) }) {
        case .seen: true
        case .unseen: false
        case .forgotten: nil
        }
    }

    package func latestWriteTime() async throws -> HybridTime { try await ClientStore(pool: pool).latestWriteTime() }

    package func close() async {
        let stream = self.stream.withLock { stream in
            defer { stream = nil }
            return stream
        }
        await stream?.close()
    }
}
