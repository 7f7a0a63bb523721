import SluiceCore
import SluiceEmbeddedLog
import SluicePorts
import SluiceQuery
import SluiceWire
import TestSupport

@testable import SluicePipeline

/// A table of orders, and the log of what is done to it: a row lies in the partition of its store.
struct LoggedTable {
    /// The stores and sizes by key.
    typealias Rows = [Int64: [Int64]]

    static let partitions: Int32 = 4
    static let type = ObjectType(
        name: "Order",
        properties: [
            Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "store", type: .int), Property(id: 3, name: "size", type: .int),
        ])
    static let schema = Schema([type])
    static let all = (0..<partitions).map { LogPartition("app.Order", $0) }

    var rows: Rows = [:]
    /// After each transaction.
    var states: [(lsn: LSN, rows: Rows)] = []
    var lsn: UInt64 = 100
    var records: [(partition: Int32, bytes: [UInt8])] = []
    private var last: [Int32: Position] = [:]
    private let codec = ChangeRecordCodec(schema)

    init() {}

    init(_ random: inout SplitMix64, transactions: Int) {
        for _ in 0..<transactions { write(&random) }
    }

    /// One transaction of some changes.
    mutating func write(_ random: inout SplitMix64) {
        write(
            (0...random.below(3)).map { _ in
                (Int64(random.below(30)), random.chance(20) ? nil : [Int64(random.below(6)), Int64(random.below(10))])
            })
    }

    /// One transaction.
    mutating func write(_ changes: [(key: Int64, row: [Int64]?)], client: Origin? = nil) {
        lsn += 10
        for (ordinal, change) in changes.enumerated() {
            let before = rows[change.key]
            if before == nil, change.row == nil { continue }
            rows[change.key] = change.row
            write(change.key, before, change.row, Position(lsn: LSN(rawValue: lsn), ordinal: UInt32(ordinal)), client)
        }
        states.append((LSN(rawValue: lsn), rows))
    }

    private mutating func write(_ key: Int64, _ before: [Int64]?, _ after: [Int64]?, _ position: Position, _ client: Origin?) {
        var buffer = RowBuffer()
        func ref(_ row: [Int64]?) -> RowRef? { row.map { buffer.append(Row([.int(key)] + $0.map { .int($0) })) } }
        let (old, new) = (ref(before), ref(after))
        let operation: ChangeOperation = before == nil ? .insert : after == nil ? .delete : .update
        let change = CapturedChange(position: position, type: 0, operation: operation, before: old, after: new)
        let transaction = CapturedTransaction(xid: 7, lsn: position.lsn, commitTime: 0, origin: client, changes: 0..<1, end: nil)
        let places = Set([before, after].compactMap { $0.map { Int32($0[0] % Int64(LoggedTable.partitions)) } })
        for partition in places.sorted() {
            var writer = ByteWriter(capacity: 256)
            codec.encode(change, of: transaction, rows: buffer, previous: last[partition], passage: .stay, into: &writer)
            last[partition] = position
            records.append((partition, writer.bytes))
        }
    }

    /// A publisher that took over says the last records again, and links the first to the end.
    func log(_ random: inout SplitMix64, repeating: Bool) async throws -> EmbeddedLog {
        let log = EmbeddedLog(environment: PassingTime())
        _ = try await log.prepare([TopicSpec(name: "app.Order", partitions: LoggedTable.partitions)])
        for (index, record) in records.enumerated() {
            var batch = LogBatch(topics: ["app.Order"])
            batch.append(topic: 0, partition: record.partition, key: [], value: record.bytes)
            if repeating, random.chance(3) {
                for again in records[max(0, index - random.below(20))...index] {
                    batch.append(topic: 0, partition: again.partition, key: [], value: again.bytes)
                }
            }
            _ = try await log.append(batch)
        }
        return log
    }

    // MARK: Views

    static func view(_ text: String, _ partitions: [LogPartition] = all) throws -> View {
        let predicate = try Query.parse(text).predicate(on: type, in: schema)
        return View(version: 1, types: [TypeView(type: 0, predicate: predicate, mask: nil)], partitions: partitions)
    }

    /// What a view shows of rows.
    static func shown(_ rows: Rows, _ view: View) -> Rows {
        guard let program = view.types.first?.predicate.compile() else { return [:] }
        return rows.filter { key, row in
            var buffer = RowBuffer()
            let ref = buffer.append(Row([.int(key)] + row.map { .int($0) }))
            return buffer.withView(ref) { program.matches($0) }
        }
    }

    /// What a client has of rows after it was told the end of the log.
    static func told(_ tail: LogTail, _ rows: Rows) throws -> Rows {
        var rows = rows
        let codec = RowCodec(type)
        for word in tail.words.values {
            guard case .int(let key) = word.key else { continue }
            rows[key] = try word.row.map { bytes in
                var buffer = RowBuffer()
                let ref = try bytes.withUnsafeBytes { try codec.decode($0, into: &buffer) }
                return buffer.withView(ref) { view in
                    (1...2).map { if case .int(let number)? = view.value($0) { number } else { -1 } }
                }
            }
        }
        return rows
    }
}
