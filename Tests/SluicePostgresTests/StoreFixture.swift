import SluiceCore
import SluiceMerge
import SluicePorts
import SluicePostgres
import SluiceValues
import Synchronization
import TestSupport
import Testing

/// A fresh database with the companion schema and one table for each type of the fixture.
final class StoreFixture: Sendable {
    let pool: PostgresPool
    let conninfo: String
    /// Objects whose values PostgreSQL refused.
    let refusedObjects = Mutex<[ObjectKey]>([])

    private init(pool: PostgresPool, conninfo: String) {
        self.pool = pool
        self.conninfo = conninfo
    }

    static let store = ObjectType(
        name: "Store", properties: [Property(id: 1, name: "_id", type: .objectId), Property(id: 2, name: "city", type: .string)])

    /// A property of every type and collection.
    static let item = ObjectType(
        name: "Item",
        properties: [
            Property(id: 1, name: "_id", type: .uuid),
            Property(id: 2, name: "name", type: .string),
            Property(id: 3, name: "quantity", type: .int),
            Property(id: 4, name: "price", type: .double, isOptional: true),
            Property(id: 5, name: "weight", type: .float, isOptional: true),
            Property(id: 6, name: "cost", type: .decimal, isOptional: true),
            Property(id: 7, name: "isNew", type: .bool, isOptional: true),
            Property(id: 8, name: "photo", type: .binary, isOptional: true),
            Property(id: 9, name: "made", type: .timestamp, isOptional: true),
            Property(id: 10, name: "store", type: .link(to: "Store"), isOptional: true),
            Property(id: 11, name: "tags", type: .string, collection: .set),
            Property(id: 12, name: "ratings", type: .int, collection: .list),
            Property(id: 13, name: "extra", type: .mixed),
            Property(id: 14, name: "pairs", type: .mixed, collection: .dictionary),
        ])

    static let reading = ObjectType(
        name: "Reading", kind: .asymmetric,
        properties: [
            Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "sensor", type: .string),
            Property(id: 3, name: "value", type: .double, isOptional: true),
        ])

    static let schema = Schema([store, item, reading])

    @Sendable static func shape(_ type: String) throws -> TableShape {
        guard let found = schema[type] else { throw SluiceError(.unknownType, "There is no class \(type).") }
        return try TableShape(found, in: schema)
    }

    var rows: PostgresRowStore { PostgresRowStore(pool: pool, waiting: pool, log: DurableLog(pool: pool), tables: Self.shape) }

    static func with<R: Sendable>(_ body: (StoreFixture) async throws -> R) async throws -> R {
        try await TestPostgres.withDatabase { conninfo in
            let pool = PostgresPool(conninfo, size: 4)
            try await pool.withConnection { connection in
                try await CompanionSchema.create(connection)
                for type in schema.types { try await connection.script(try shape(type.name).definition) }
            }
            let outcome: Result<R, any Error>
            do {
                outcome = .success(try await body(StoreFixture(pool: pool, conninfo: conninfo)))
            } catch {
                outcome = .failure(error)
            }
            await pool.close()
            return try outcome.get()
        }
    }

    func sql(_ text: String) async throws -> PostgresResult { try await pool.withConnection { try await $0.script(text) } }

    /// Returns when a statement like this waits for a lock: the server's work has no event to wait for.
    func waitForBlocked(_ statement: String) async throws {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND ltrim(query) LIKE '\(statement)'"
        if try await eventually({ try await sql(waiting)[0, 0] != "0" }) { return }
        throw SluiceError(.timeout, "No statement like \(statement) waits for a lock.")
    }

    /// A changeset's transaction that does only this.
    @discardableResult
    func write(
        _ client: ClientID, changeset: UInt64, _ body: @Sendable (PostgresRowTransaction) throws -> Void
    ) async throws -> LSN {
        let origin = Origin(client: client, changeset: changeset)
        do {
            return try await rows.transaction { transaction, session in
                _ = try transaction.open(session, origin)
                try body(transaction)
                transaction.finish(origin, time: .zero, base: .zero)
            }.lsn
        } catch let refused as DatabaseRejection {
            refusedObjects.withLock { $0.append(refused.object) }
            throw refused.error
        }
    }
}

extension TableShape {
    /// The statement that makes the table as an app's owner would.
    var definition: String {
        let columns = zip(self.columns, forms).map { "\($0) \($1.columnType)" + ($1.property.isRequired ? " NOT NULL" : "") }
        return "CREATE TABLE \(table) (\(columns.joined(separator: ", ")), PRIMARY KEY (\(self.columns[key])))"
    }
}

/// Any row of the fixture's item, with values that come back from PostgreSQL as they went in.
func randomItem(_ generator: inout some RandomNumberGenerator, key: Value? = nil) -> Row {
    let number = Int64.random(in: .min ... .max, using: &generator)
    let names = ["", "a", "quote \" back \\ {comma,}", "NULL", "line\nbreak\ttab", "水🛫"]
    var row = Row(StoreFixture.item.properties.map(\.emptyValue))
    row[0] = key ?? .uuid(UUIDBytes(high: generator.next(), low: generator.next()))
    row[1] = .string(names.randomElement(using: &generator) ?? "")
    row[2] = .int(number)
    if Bool.random(using: &generator) { return row }
    row[3] = .double(Double(number) / 7)
    row[4] = .float(0.1)
    row[5] = .decimal(Decimal128("-12345678901234567890.00120") ?? .nan)
    row[6] = .bool(number > 0)
    row[7] = .binary([0, 255, 92, 10])
    row[8] = .timestamp(Timestamp(microseconds: number % 4_000_000_000_000_000))
    row[9] = .objectId(ObjectIdentifierBytes(high: generator.next(), low: 7))
    row[10] = .list([.string("a,b"), .string("c\"d"), .string("é")])
    row[11] = .list([.int(3), .int(1), .int(3)])
    row[12] = .dictionary(["x": .double(1e16), "y": .list([.null, .uuid(UUIDBytes(high: 1, low: 2))])])
    row[13] = .dictionary(["k": .int(1), "l": .string("t")])
    return row
}

/// A snapshot may miss what was committed an instant before it, by other tests on the same server too: then nothing is read, and it
/// is to be taken again.
@discardableResult
func untilSeen<R>(_ read: () async throws -> R?) async throws -> R {
    try #require(try await found(read), "No snapshot sees everything that was committed before it.")
}

extension ObjectClocks {
    /// Returns clocks that a test tells apart by their number.
    static func mark(_ number: Int, deletedAt lsn: LSN? = nil) -> ObjectClocks {
        let stamp = WriteStamp(time: HybridTime(milliseconds: Int64(number)), client: ClientID(rawValue: 1))
        return ObjectClocks(created: stamp, deletion: lsn.map { Deletion(stamp: stamp, lsn: $0) }, isDeleted: lsn != nil)
    }
}
