import SluiceCore
import SluiceEmbeddedLog
import SluicePorts
import SluiceValues
import SluiceWire
import Synchronization

/// A topic of orders, with the records that a publisher writes.
final class TriggerLog: Sendable {
    static let type = ObjectType(
        name: "Order",
        properties: [
            Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "size", type: .int),
            Property(id: 3, name: "note", type: .string, isOptional: true),
        ])
    static let app = AppSchema(version: 1, schema: Schema([type]), fields: QueryableFields(), isDevelopment: false)
    static let topic = "shop.Order"

    let log: EmbeddedLog
    let partitions: Int32
    private let last = Mutex<[Int32: Position]>([:])
    private let codec = ChangeRecordCodec(app.schema)

    init(partitions: Int32 = 4, windowBytes: Int = 64 << 20) async throws {
        self.partitions = partitions
        log = EmbeddedLog(environment: SystemEnvironment(), windowBytes: windowBytes)
        _ = try await log.prepare([TopicSpec(name: Self.topic, partitions: partitions)])
    }

    /// Appends a change of an order. The LSN is beyond that of any test database.
    func write(_ number: Int, _ key: String, _ before: Int64?, _ after: Int64?, in partition: Int32? = nil) async throws {
        let position = Position(lsn: LSN(rawValue: 1 << 60 + UInt64(number)), ordinal: 0)
        let partition = partition ?? Partitioner.partition(of: Array(key.utf8), partitions: partitions)
        var rows = RowBuffer()
        func row(_ size: Int64?) -> RowRef? { size.map { rows.append(Row([.string(key), .int($0), .null])) } }
        let (old, new) = (row(before), row(after))
        let operation: ChangeOperation = before == nil ? .insert : after == nil ? .delete : .update
        let change = CapturedChange(position: position, type: 0, operation: operation, before: old, after: new)
        let transaction = CapturedTransaction(
            xid: 7, lsn: position.lsn, commitTime: 1_700_000_000_000_000, origin: nil, changes: 0..<1, end: nil)
        var writer = ByteWriter(capacity: 256)
        let previous = last.withLock { last in
            defer { last[partition] = position }
            return last[partition]
        }
        codec.encode(change, of: transaction, rows: rows, previous: previous, passage: .stay, into: &writer)
        var batch = LogBatch(topics: [Self.topic])
        batch.append(topic: 0, partition: partition, key: [], value: writer.bytes)
        _ = try await log.append(batch)
    }
}
