import SluiceCore
import SluicePorts
import SluiceQuery
import SluiceValues
import SluiceWire
import TestSupport
import Testing

@testable import SluicePipeline

/// A gateway reads the partitions that its sessions need and no others, so both sides have to agree on where a row lies.
@Suite(.timeLimit(.minutes(2))) struct `The partition of a row` {
    /// The texts that docs/protocol.md promises: whoever writes or reads the topics in another language computes the same.
    @Test(
        arguments: [
            (.null, "NULL"), (.list([.int(1)]), "NULL"), (.dictionary(["a": .int(1)]), "NULL"),
            (.link(type: "Order", key: .int(1)), "NULL"),
            (.bool(true), "true"), (.bool(false), "false"),
            (.int(0), "0"), (.int(-7), "-7"), (.int(.max), "9223372036854775807"), (.int(.min), "-9223372036854775808"),
            (.double(1.5), "1.5"), (.double(1e20), "1e+20"), (.double(0.1), "0.1"), (.double(-0.0), "-0.0"), (.double(2), "2.0"),
            (.float(0.1), "0.1"), (.float(16_777_216), "16777216.0"),
            (.string(""), ""), (.string("NULL"), "NULL"), (.string("Zürich"), "Zürich"), (.string("a\u{0}b"), "a\u{0}b"),
            (.timestamp(Timestamp(seconds: 0, nanoseconds: 0)), "0"),
            (.timestamp(Timestamp(seconds: 1_700_000_000, nanoseconds: 123_456_000)), "1700000000123456"),
            (.timestamp(Timestamp(seconds: -1, nanoseconds: -500_000_000)), "-1500000"),
            (.objectId(ObjectIdentifierBytes(high: 0x0123_4567_89AB_CDEF, low: 0x0000_00FF)), "0123456789abcdef000000ff"),
            (.uuid(UUIDBytes(high: 0x0123_4567_89AB_CDEF, low: 0x0123_4567_89AB_CDEF)), "01234567-89ab-cdef-0123-456789abcdef"),
        ] as [(Value, String)])
    func `is that of a text that others can compute`(value: Value, text: String) {
        #expect(PartitionKey.text(of: value) == Array(text.utf8))
        #expect(Self.textOfCell(value) == Array(text.utf8))
    }

    @Test func `is that of its bytes where there is no text`() {
        let number = Decimal128(high: 0x3040_0000_0000_0000, low: 0x0123)
        for (value, bytes) in [
            (.binary([0, 255, 7]), [0, 255, 7]), (.decimal(number), [0x30, 0x40] + [UInt8](repeating: 0, count: 12) + [0x01, 0x23]),
        ] as [(Value, [UInt8])] {
            #expect(PartitionKey.text(of: value) == bytes)
            #expect(Self.textOfCell(value) == bytes)
        }
    }

    /// What the publisher makes of the value in a row.
    private static func textOfCell(_ value: Value) -> [UInt8] {
        var buffer = RowBuffer()
        let row = buffer.append(Row([value]))
        var text: [UInt8] = []
        buffer.withView(row) { PartitionKey.append($0[0], of: $0, to: &text) }
        return text
    }

    // MARK: Views

    private static let count: Int32 = 64
    /// Orders lie by their store, prices by a number that has no exact text, notes by their key.
    private static let schema = Schema([
        ObjectType(
            name: "Order",
            properties: [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "store", type: .string, isOptional: true),
                Property(id: 3, name: "size", type: .int),
            ]),
        ObjectType(
            name: "Note", properties: [Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "size", type: .int)]),
        ObjectType(
            name: "Price", properties: [Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "store", type: .double)]),
    ])

    private struct Authority: SchemaAuthority {
        func current() -> AppSchema {
            AppSchema(
                version: 1, schema: schema, fields: QueryableFields(global: ["size"], indexed: "store"), isDevelopment: false)
        }
        func extend(by client: [ObjectType]) async throws -> AppSchema { current() }
        func makeQueryable(_ fields: [String: Set<String>]) async throws -> AppSchema { current() }
    }

    private static let layout = Partitioning(
        schema: Authority().current(), topics: Topics(app: "app"), partitions: ["Order": count, "Note": 3, "Price": 2])

    /// What a session reads of the log for its queries.
    private static func view(_ queries: [(String, String)], read: String = "TRUEPREDICATE") async throws -> View {
        let plan = TypePlan(read: read, write: "TRUEPREDICATE", role: "clerk")
        let permissions = SessionPermissions(
            SessionPlan(types: ["Order": plan, "Note": .open, "Price": .open]), schema: Authority().current())
        let builder = ViewBuilder(
            services: SessionFixture.services(authority: Authority(), layout: layout), user: nil, permissions: permissions, clientTypes: [])
        var set = PBSubscribe()
        set.version = 1
        set.queries = queries.map { type, text in
            var query = PBQuery()
            (query.type, query.text) = (type, text)
            return query
        }
        return try await builder.build(set)
    }

    /// Where rows of these stores lie, as another program finds it.
    private static func places(_ stores: [String]) -> [LogPartition] {
        Set(stores.map { Partitioner.partition(of: Array($0.utf8), partitions: count) }).sorted().map { LogPartition("app.Order", $0) }
    }

    private static func all(_ topic: String, _ count: Int32) -> [LogPartition] { (0..<count).map { LogPartition(topic, $0) } }

    @Test(
        arguments: [
            ("store == 'north'", ["north"]), ("'north' == store", ["north"]), ("store == 'north' AND size > 3", ["north"]),
            ("store IN {'north', 'south', 'north'}", ["north", "south"]),
            ("store IN {'north', 'south'} AND store == 'south'", ["south"]),
            ("store IN {'north', 'south'} AND (size == 1 OR store == 'north')", ["north", "south"]),
            ("store == NULL", ["NULL"]), ("store IN {NULL, 'north'}", ["NULL", "north"]),
            ("store IN {}", []), ("store == 'north' AND FALSEPREDICATE", []),
        ] as [(String, [String])])
    func `is read by a session whose query has its key, and no other is`(query: String, stores: [String]) async throws {
        #expect(try await Self.view([("Order", query)]).partitions == Self.places(stores), "\(query)")
    }

    @Test func `is read by a session of which one query has its key`() async throws {
        let view = try await Self.view([("Order", "store == 'north' AND size == 1"), ("Order", "store IN {'south', 'east'}")])
        #expect(view.partitions == Self.places(["north", "south", "east"]))
    }

    @Test func `is read where the rules leave something of its key`() async throws {
        let query = ("Order", "store IN {'north', 'south'}")
        #expect(try await Self.view([query], read: "store == 'south' OR size == 1").partitions == Self.places(["north", "south"]))
        #expect(try await Self.view([query], read: "store == 'south'").partitions == Self.places(["south"]))
        #expect(try await Self.view([query], read: "FALSEPREDICATE").partitions == [])
    }

    @Test func `is any where the class has no indexed field, or one that equal values do not pin`() async throws {
        #expect(try await Self.view([("Note", "_id == 'a'")]).partitions == Self.all("app.Note", 3))
        #expect(try await Self.view([("Note", "size == 1 OR _id == 'b'")]).partitions == Self.all("app.Note", 3))
        #expect(try await Self.view([("Price", "store == 1.5")]).partitions == Self.all("app.Price", 2))
        let mixed = try await Self.view([("Order", "store == 'north'"), ("Note", "TRUEPREDICATE")])
        #expect(mixed.partitions == Self.all("app.Note", 3) + Self.places(["north"]))
    }

    // MARK: Records

    private typealias Order = (store: String?, size: Int64)

    /// The records of one change, each in its partition.
    private static func records(_ before: Order?, _ after: Order?, _ operation: ChangeOperation = .update) throws -> [String] {
        var chain = PublisherState(last: [:], start: .zero)
        var encoder = ChangeEncoder(schema: schema, layout: layout, chain: &chain)
        var batch = LogBatch(topics: encoder.topics)
        var buffer = RowBuffer()
        func ref(_ order: Order?) -> RowRef? {
            order.map { buffer.append(Row([.int(1), $0.store.map { .string($0) } ?? .null, .int($0.size)])) }
        }
        let (old, new) = (ref(before), ref(after))
        let change = CapturedChange(
            position: Position(lsn: LSN(rawValue: 9), ordinal: 0), type: 0, operation: operation, before: old, after: new)
        let transaction = CapturedTransaction(xid: 7, lsn: LSN(rawValue: 9), commitTime: 0, origin: nil, changes: 0..<1, end: nil)
        encoder.append(change, of: transaction, rows: buffer, chain: &chain, to: &batch)
        return try batch.entries.map { entry in
            let record = try batch.arena[entry.value].withUnsafeBytes { try ChangeRecordCodec(schema).decode($0) }
            let key = String(decoding: batch.arena[entry.key], as: UTF8.self)
            #expect(batch.topics[Int(entry.topic)] == "app.Order")
            return "\(record.passage) \(key) \(entry.partition)"
        }
    }

    @Test func `changes with its key: it leaves the old one and enters the new one`() throws {
        func place(_ store: String) -> Int32 { Partitioner.partition(of: Array(store.utf8), partitions: Self.count) }
        #expect(try Self.records(nil, ("north", 1), .insert) == ["stay north \(place("north"))"])
        #expect(try Self.records(("north", 1), ("north", 2)) == ["stay north \(place("north"))"])
        #expect(try Self.records(("north", 1), nil, .delete) == ["stay north \(place("north"))"])
        #expect(try Self.records(("north", 1), ("south", 1)) == ["leave north \(place("north"))", "enter south \(place("south"))"])
        #expect(try Self.records((nil, 1), ("south", 1)) == ["leave NULL \(place("NULL"))", "enter south \(place("south"))"])
        #expect(try Self.records(nil, nil, .truncate).count == Int(Self.count))
    }

    /// The other way round: no change that concerns a view is where its session does not read.
    @Test(arguments: seeds(200)) func `is read by every session that a change in it concerns`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let stores: [String?] = ["north", "south", "east", "west", "", "NULL", "Zürich", nil]
        func literal(_ store: String?) -> String { store.map { "'\($0)'" } ?? "NULL" }
        let wanted = (0...random.below(3)).map { _ in literal(random.pick(stores)) }
        let rest = random.pick(["TRUEPREDICATE", "size > 2", "size == 1 OR store == 'south'", "store != 'north'"])
        let read = random.pick(["TRUEPREDICATE", "store == 'south' OR size < 3", "store IN {'east', 'north'}"])
        let query = "store IN {\(wanted.joined(separator: ", "))} AND (\(rest))"
        let view = try await Self.view([("Order", query)], read: read)
        let program = try #require(view.types.first?.predicate.compile())
        func isSeen(_ order: Order?) -> Bool {
            guard let order else { return false }
            var buffer = RowBuffer()
            let row = buffer.append(Row([.int(1), order.store.map { .string($0) } ?? .null, .int(order.size)]))
            return buffer.withView(row) { program.matches($0) }
        }
        for _ in 0..<50 {
            func order() -> Order? { random.chance(15) ? nil : (random.pick(stores), Int64(random.below(4))) }
            let (before, after) = (order(), order())
            if before == nil, after == nil { continue }
            let read = Set(view.partitions.map(\.partition))
            let places = Set(try Self.records(before, after).compactMap { $0.split(separator: " ").last.flatMap { Int32($0) } })
            if isSeen(before) || isSeen(after) {
                #expect(
                    !read.isDisjoint(with: places), "seed \(seed): \(query), \(String(describing: before)) → \(String(describing: after))")
            }
        }
    }
}
