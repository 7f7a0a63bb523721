import SluiceCore
import SluiceQuery
import SluiceWire
import TestSupport
import Testing

@testable import SluicePipeline

/// What is read of the log for a client that comes back, against a table that is simply changed.
@Suite(.timeLimit(.minutes(2))) struct `The end of the log` {
    private static let partitions: Int32 = 4
    private static let type = ObjectType(
        name: "Order",
        properties: [
            Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "store", type: .int), Property(id: 3, name: "size", type: .int),
        ])
    private static let schema = Schema([type])
    private static let all = (0..<partitions).map { LogPartition("app.Order", $0) }

    private static func view(_ text: String) throws -> View {
        let predicate = try Query.parse(text).bind(to: type)
        return View(version: 1, types: [TypeView(type: 0, predicate: predicate, mask: nil)], partitions: all)
    }

    /// A table, and the log of what is done to it: a row lies in the partition of its store.
    private struct Table {
        typealias Rows = [Int64: [Int64]]
        var rows: Rows = [:]
        var states: [(lsn: LSN, rows: Rows)] = []
        var lsn: UInt64 = 100
        var records: [(partition: Int32, bytes: [UInt8])] = []
        private var last: [Int32: Position] = [:]
        private let codec = ChangeRecordCodec(schema)

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
            let places = Set([before, after].compactMap { $0.map { Int32($0[0] % Int64(partitions)) } })
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
            _ = try await log.prepare([TopicSpec(name: "app.Order", partitions: partitions)])
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
    }

    private static func random(_ random: inout SplitMix64, transactions: Int) -> Table {
        var table = Table()
        for _ in 0..<transactions {
            let changes = (0...random.below(3)).map { _ in
                let key = Int64(random.below(30))
                return (key, random.chance(20) ? nil : [Int64(random.below(6)), Int64(random.below(10))])
            }
            table.write(changes)
        }
        return table
    }

    private static func read(_ log: EmbeddedLog, _ view: View, after lsn: LSN, client: ClientID = .server) async throws -> LogTail? {
        let reader = try await log.makeReader()
        return try await LogTailReader(view: view, schema: schema, client: client, after: lsn).read(log, reader, PassingTime())
    }

    @Test(arguments: seeds(40)) func `with what a client has is what there is, from any position on`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let table = Self.random(&random, transactions: 20 + random.below(300))
        let log = try await table.log(&random, repeating: random.chance(50))
        let view = try Self.view(random.pick(["store < 3", "size == 4 OR store == 1", "TRUEPREDICATE"]))
        let program = try #require(view.types.first).predicate.compile()
        func shown(_ rows: Table.Rows) -> Table.Rows {
            rows.filter { key, row in
                var buffer = RowBuffer()
                let ref = buffer.append(Row([.int(key)] + row.map { .int($0) }))
                return buffer.withView(ref) { program.matches($0) }
            }
        }
        for state in [table.states[0]] + (0..<5).map({ _ in random.pick(table.states) }) {
            let tail = try #require(try await Self.read(log, view, after: state.lsn), "seed \(seed) after \(state.lsn)")
            var rows = shown(state.rows)
            let codec = RowCodec(Self.type)
            for word in tail.words.values {
                guard case .int(let key) = word.key else { continue }
                rows[key] = try word.row.map { bytes in
                    var buffer = RowBuffer()
                    let ref = try bytes.withUnsafeBytes { try codec.decode($0, into: &buffer) }
                    return buffer.withView(ref) { view in
                        (1...2).map { if case .int(let number)? = view.value($0) { number } else { -1 } }
                    }
                }
                #expect((word.row == nil) == (word.leaving != nil))
            }
            #expect(rows == shown(table.rows), "seed \(seed) after \(state.lsn)")
        }
    }

    @Test func `says which of the client's changesets are in`() async throws {
        var (table, random) = (Table(), SplitMix64(seed: 1))
        for number in 1...9 as ClosedRange<UInt64> {
            table.write([(Int64(number), [0, 0])], client: Origin(client: ClientID(rawValue: number % 2 + 1), changeset: number))
        }
        let log = try await table.log(&random, repeating: false)
        let view = try Self.view("TRUEPREDICATE")
        #expect(try await Self.read(log, view, after: table.states[3].lsn, client: ClientID(rawValue: 1))?.changeset == 8)
        #expect(try await Self.read(log, view, after: table.states[3].lsn, client: ClientID(rawValue: 2))?.changeset == 9)
        #expect(try await Self.read(log, view, after: table.states[7].lsn, client: ClientID(rawValue: 1))?.changeset == 0)
    }

    @Test func `tells nothing when a record is missing, at the beginning or in between`() async throws {
        var random = SplitMix64(seed: 2)
        let table = Self.random(&random, transactions: 400)
        let view = try Self.view("TRUEPREDICATE")
        for missing in [5, table.records.count / 2, table.records.count - 8] {
            var damaged = table
            damaged.records.remove(at: missing)
            let log = try await damaged.log(&random, repeating: false)
            #expect(try await Self.read(log, view, after: .zero) == nil, "without record \(missing)")
            // What lies before the position does not matter, unless it is read on the way to it.
            let now = try await Self.read(log, view, after: table.states[table.states.count - 1].lsn)
            #expect(now == nil || now?.words.isEmpty == true)
            #expect(now != nil || missing > table.records.count / 2)
        }
        var beheaded = table
        beheaded.records.removeFirst(100)
        let log = try await beheaded.log(&random, repeating: false)
        #expect(try await Self.read(log, view, after: table.states[0].lsn) == nil)
        #expect(try await Self.read(log, view, after: table.states[300].lsn) != nil)
    }

    @Test func `tells nothing rather than hold more than a bootstrap may`() async throws {
        let type = ObjectType(
            name: "Order", properties: [Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "data", type: .binary)])
        let (schema, log) = (Schema([type]), EmbeddedLog(environment: PassingTime()))
        _ = try await log.prepare([TopicSpec(name: "app.Order", partitions: 1)])
        let partition = LogPartition("app.Order", 0)
        let codec = ChangeRecordCodec(schema)
        var previous: Position?
        for key in 1...Int64(40) {
            var buffer = RowBuffer()
            let row = buffer.append(Row([.int(key), .binary([UInt8](repeating: 1, count: 1 << 20))]))
            let position = Position(lsn: LSN(rawValue: UInt64(key)), ordinal: 0)
            let change = CapturedChange(position: position, type: 0, operation: .insert, before: nil, after: row)
            let transaction = CapturedTransaction(xid: 7, lsn: position.lsn, commitTime: 0, origin: nil, changes: 0..<1, end: nil)
            var writer = ByteWriter(capacity: 1 << 20)
            codec.encode(change, of: transaction, rows: buffer, previous: previous, passage: .stay, into: &writer)
            previous = position
            var batch = LogBatch(topics: ["app.Order"])
            batch.append(topic: 0, partition: 0, key: [], value: writer.bytes)
            _ = try await log.append(batch)
        }
        let view = View(version: 1, types: [TypeView(type: 0, predicate: .true(type), mask: nil)], partitions: [partition])
        func words(after lsn: UInt64) async throws -> Int? {
            let tail = LogTailReader(view: view, schema: schema, client: .server, after: LSN(rawValue: lsn))
            return try await tail.read(log, try await log.makeReader(), PassingTime())?.words.count
        }
        #expect(try await words(after: 0) == nil)
        #expect(try await words(after: 20) == 20)
    }
}
