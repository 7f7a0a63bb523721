import Logging
import SluiceCore
import SluicePipeline
import SluicePostgres
import Synchronization

/// The replication slot as the pipeline's change source.
final class PostgresCapture: ChangeSource {
    private let conninfo: String
    private let names: ReplicationNames
    private let schema: GatewaySchema
    private let tables: GatewayTables
    private let pool: PostgresPool
    private let logger: Logger
    private let stream = Mutex<ReplicationStream?>(nil)

    init(
        conninfo: String, names: ReplicationNames, schema: GatewaySchema, tables: GatewayTables, pool: PostgresPool, logger: Logger
    ) {
        self.conninfo = conninfo
        self.names = names
        self.schema = schema
        self.tables = tables
        self.pool = pool
        self.logger = logger
    }

    func open() async throws {
        await close()
        try await PostgresFailure.translating {
            let slot = names.slot
            let made = try await pool.withConnection { try await ReplicationSlot.ensure($0, name: slot) }
            if made.isNew { logger.notice("A replication slot was made.", metadata: ["slot": "\(slot)"]) }
            let opened = try await ReplicationStream.open(
                ReplicationConfiguration(
                    conninfo: conninfo, slot: slot, publications: [names.publication], schema: schema.current().schema,
                    tables: tables.mappings))
            stream.withLock { $0 = opened }
        }
    }

    func next(_ batch: consuming CaptureBatch, milliseconds: Int) async throws -> CaptureBatch {
        guard let stream = stream.withLock({ $0 }) else {
            throw SluiceError(.postgresUnreachable, "The slot \(names.slot) is not open.")
        }
        var batch = batch
        do {
            try await stream.next(into: &batch, waitingAtMost: .milliseconds(milliseconds))
        } catch {
            throw PostgresFailure.forPort(error)
        }
        return batch
    }

    func confirm(_ lsn: LSN) async throws { stream.withLock { $0 }?.confirm(lsn) }

    func close() async {
        let stream = self.stream.withLock { stream in
            defer { stream = nil }
            return stream
        }
        await stream?.close()
    }
}
