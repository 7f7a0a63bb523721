import SluiceCore
import SluiceEmbeddedLog
import SluicePorts
import SluiceQuery
import SluiceWire
import TestSupport
import Testing

@testable import SluicePipeline

/// What is read of the log for a client that comes back, against a table that is simply changed.
@Suite(.timeLimit(.minutes(2))) struct `The end of the log` {
    private static func read(_ log: EmbeddedLog, _ view: View, after lsn: LSN, client: ClientID = .server) async throws -> LogTail? {
        let reader = try await log.makeReader()
        return try await LogTailReader(view: view, schema: LoggedTable.schema, client: client, after: lsn).read(log, reader, PassingTime())
    }

    @Test(arguments: seeds(40)) func `with what a client has is what there is, from any position on`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let table = LoggedTable(&random, transactions: 20 + random.below(300))
        let log = try await table.log(&random, repeating: random.chance(50))
        let view = try LoggedTable.view(random.pick(["store < 3", "size == 4 OR store == 1", "TRUEPREDICATE"]))
        for state in [table.states[0]] + (0..<5).map({ _ in random.pick(table.states) }) {
            let tail = try #require(try await Self.read(log, view, after: state.lsn), "seed \(seed) after \(state.lsn)")
            let rows = try LoggedTable.told(tail, LoggedTable.shown(state.rows, view))
            #expect(tail.words.values.allSatisfy { ($0.row == nil) == ($0.leaving != nil) })
            #expect(rows == LoggedTable.shown(table.rows, view), "seed \(seed) after \(state.lsn)")
        }
    }

    @Test func `says which of the client's changesets are in`() async throws {
        var (table, random) = (LoggedTable(), SplitMix64(seed: 1))
        for number in 1...9 as ClosedRange<UInt64> {
            table.write([(Int64(number), [0, 0])], client: Origin(client: ClientID(rawValue: number % 2 + 1), changeset: number))
        }
        let log = try await table.log(&random, repeating: false)
        let view = try LoggedTable.view("TRUEPREDICATE")
        #expect(try await Self.read(log, view, after: table.states[3].lsn, client: ClientID(rawValue: 1))?.changeset == 8)
        #expect(try await Self.read(log, view, after: table.states[3].lsn, client: ClientID(rawValue: 2))?.changeset == 9)
        #expect(try await Self.read(log, view, after: table.states[7].lsn, client: ClientID(rawValue: 1))?.changeset == 0)
    }

    @Test func `tells nothing when a record is missing, at the beginning or in between`() async throws {
        var random = SplitMix64(seed: 2)
        let table = LoggedTable(&random, transactions: 400)
        let view = try LoggedTable.view("TRUEPREDICATE")
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
