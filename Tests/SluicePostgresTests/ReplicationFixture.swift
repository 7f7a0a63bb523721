import SluiceCore
import SluicePorts
import SluicePostgres
import Testing

/// A database with the table of one type, a publication and a slot.
struct ReplicationFixture: Sendable {
    let conninfo: String
    let connection: PostgresConnection
    let names: ReplicationNames
    let catalog: TableCatalog

    static let item = ObjectType(
        name: "Item",
        properties: [
            Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "name", type: .string),
            Property(id: 3, name: "price", type: .double, isOptional: true),
        ])

    static func run(_ types: [ObjectType] = [item], _ body: (ReplicationFixture) async throws -> Void) async throws {
        try await TestPostgres.withDatabase { conninfo in
            let connection = try await PostgresConnection.connect(conninfo)
            let catalog = TableCatalog(schema: Schema(types))
            try await CompanionSchema.create(connection)
            _ = try await catalog.create(connection)
            let names = ReplicationNames(app: "test_\(UInt64.random(in: .min ... .max))")
            _ = try await Publication.ensure(connection, name: names.publication, tables: catalog.tables)
            _ = try await ReplicationSlot.ensure(connection, name: names.slot)
            try await body(ReplicationFixture(conninfo: conninfo, connection: connection, names: names, catalog: catalog))
        }
    }

    var configuration: ReplicationConfiguration {
        ReplicationConfiguration(
            conninfo: conninfo, slot: names.slot, publications: [names.publication], schema: catalog.schema, tables: catalog.tables)
    }

    /// Runs the body with an open stream, and closes it.
    func withStream(
        _ configuration: ReplicationConfiguration? = nil, _ body: (ReplicationStream) async throws -> Void
    ) async throws {
        let stream = try await ReplicationStream.open(configuration ?? self.configuration)
        do {
            try await body(stream)
        } catch {
            await stream.close()
            throw error
        }
        await stream.close()
    }
}

extension ReplicationStream {
    /// Reads until so many transactions have ended; an issue after a minute.
    func transactions(_ count: Int, _ visit: (CaptureBatch) -> Void = { _ in }) async throws -> [CapturedTransaction] {
        var batch = CaptureBatch()
        var all: [CapturedTransaction] = []
        let deadline = ContinuousClock.now + .seconds(60)
        while all.count(where: { $0.end != nil }) < count {
            if .now > deadline {
                Issue.record("only \(all.count) of \(count) transactions came")
                break
            }
            try await next(into: &batch, waitingAtMost: .seconds(1))
            visit(batch)
            all += batch.transactions
        }
        return all
    }
}
