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
    /// The generated columns of the open stream's tables, with the forms of their rows, by class index.
    private let generated = Mutex<[Int32: (columns: GeneratedColumns, forms: [ColumnForm])]>([:])

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
            let tables = tables(schema)
            let opened = try await ReplicationStream.open(
                ReplicationConfiguration(
                    conninfo: conninfo, slot: slot, publications: [names.publication], schema: schema, tables: tables, bounds: bounds))
            stream.withLock { $0 = opened }
            generated.withLock { $0 = Self.generated(tables, schema) }
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
            return batch.uncomputed.isEmpty ? batch : try await complete(batch)
        } catch {
            throw PostgresError.forPort(error)
        }
    }

    private static func generated(
        _ tables: [TableMapping], _ schema: Schema
    ) -> [Int32: (columns: GeneratedColumns, forms: [ColumnForm])] {
        var all: [Int32: (columns: GeneratedColumns, forms: [ColumnForm])] = [:]
        for mapping in tables {
            let columns = GeneratedColumns(mapping)
            guard !columns.properties.isEmpty, let index = schema.index(of: mapping.type) else { continue }
            all[Int32(index)] = (columns, zip(schema.types[index].properties, mapping.facts).map { ColumnForm($0, in: schema, $1) })
        }
        return all
    }

    /// Computes the generated columns that the WAL lacks.
    private func complete(_ batch: consuming CaptureBatch) async throws -> CaptureBatch {
        let rows = Dictionary(grouping: batch.uncomputed, by: \.type)
        let work = generated.withLock { known in
            rows.compactMap { type, rows in known[type].map { (columns: $0.columns, forms: $0.forms, rows: rows) } }
        }
        let incomplete = batch
        var complete = try await pool.withSession { session in
            var batch = incomplete
            for part in work { try part.columns.fill(part.rows, part.forms, into: &batch.rows, session) }
            return batch
        }
        complete.uncomputed.removeAll(keepingCapacity: true)
        return complete
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
