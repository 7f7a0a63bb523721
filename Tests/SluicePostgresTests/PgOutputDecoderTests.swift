import SluiceCore
import SluicePorts
import SluicePostgres
import TestSupport
import Testing

private typealias M = PgOutputMessages

private let item = ObjectType(
    name: "Item",
    properties: [
        Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "name", type: .string),
        Property(id: 3, name: "note", type: .string, isOptional: true),
    ])
private let schema = Schema([ObjectType(name: "Other", properties: [Property(id: 1, name: "_id", type: .int)]), item])

@Suite struct `The pgoutput decoder` {
    private var decoder = PgOutputDecoder(schema: schema, tables: [TableMapping(item, table: "items", columns: ["name": "title"])])
    private var batch = CaptureBatch()

    /// Columns in another order than the properties, and one that no property has.
    private let relation = M.relation(9, "items", ["note", "extra", "_id", "title"])

    private mutating func feed(_ messages: [UInt8]...) throws { for message in messages { try decoder.decode(message, into: &batch) } }

    @Test mutating func `maps columns by name and keeps commit order, time and transaction number`() throws {
        try feed(
            M.begin(100, time: 5, xid: 77), relation, M.insert(9, ["n", "x", "1", "a"]), M.insert(9, [nil, "x", "2", "b"]),
            M.commit(100, end: 108))
        #expect(batch.story == ["insert 0 - -> 1,a,n", "insert 1 - -> 2,b,null"])
        let transaction = try #require(batch.transactions.first)
        #expect(transaction.xid == 77)
        #expect(transaction.lsn == LSN(rawValue: 101))
        #expect(transaction.end == LSN(rawValue: 108))
        #expect(transaction.commitTime == 946_684_800_000_005)
        #expect(transaction.origin == nil)
        #expect(transaction.changes == 0..<2)
        #expect(batch.changes.allSatisfy { $0.type == 1 && $0.position.lsn == LSN(rawValue: 101) })
        #expect(batch.reached == LSN(rawValue: 108))
        #expect(!decoder.isInTransaction)
    }

    @Test mutating func `gives old and new rows, and takes unsent columns from the old one`() throws {
        try feed(
            M.begin(1), relation, M.update(9, ["long", "", "1", "a"], [.unchanged, "", "1", "b"]), M.delete(9, ["n", "", "1", "b"]),
            M.commit(1, end: 2))
        #expect(batch.story == ["update 0 1,a,long -> 1,b,long", "delete 1 1,b,n -> -"])
    }

    @Test mutating func `makes a delete and an insert of a changed key`() throws {
        try feed(
            M.begin(1), relation, M.update(9, [nil, "", "1", "a"], [nil, "", "2", "a"]), M.insert(9, [nil, "", "3", "c"]),
            M.commit(1, end: 2))
        #expect(batch.story == ["delete 0 1,a,null -> -", "insert 1 - -> 2,a,null", "insert 2 - -> 3,c,null"])
    }

    @Test mutating func `counts changes of tables that no type has, and drops transactions without anything of ours`() throws {
        try feed(M.begin(1), M.relation(4, "elsewhere", ["a"]), M.insert(4, ["1"]), M.commit(1, end: 2))
        #expect(batch.transactions.isEmpty)
        #expect(batch.reached == LSN(rawValue: 2))
        try feed(M.begin(3), relation, M.insert(4, ["1"]), M.insert(9, [nil, "", "1", "a"]), M.commit(3, end: 4))
        #expect(batch.story == ["insert 1 - -> 1,a,null"])
        #expect(batch.transactions.count == 1)
    }

    @Test(arguments: [0, 1, 2]) mutating func `takes the origin from a message anywhere in the transaction`(_ place: Int) throws {
        var messages = [M.insert(9, [nil, "", "1", "a"]), M.insert(9, [nil, "", "2", "b"])]
        messages.insert(M.message("sluice", "12:34:0"), at: place)
        for message in [M.begin(1), relation] + messages + [M.commit(1, end: 2)] { try feed(message) }
        #expect(batch.transactions.first?.origin == Origin(client: ClientID(rawValue: 12), changeset: 34))
    }

    @Test mutating func `ignores messages of others, outside of transactions, and unreadable ones`() throws {
        try feed(M.message("sluice", "1:1:0", isTransactional: false))
        try feed(
            M.begin(1), relation, M.message("other", "1:2"), M.message("sluice", "1"), M.message("sluice", "a:b:0"),
            M.message("sluice", "-1:2:0"), M.insert(9, [nil, "", "1", "a"]), M.commit(1, end: 2))
        #expect(batch.transactions.map(\.origin) == [nil])
    }

    @Test mutating func `keeps a transaction that has an origin and no changes`() throws {
        try feed(M.begin(1), M.message("sluice", "1:2:0"), M.commit(1, end: 2))
        #expect(batch.transactions.map(\.changes) == [0..<0])
        #expect(batch.transactions.first?.origin?.changeset == 2)
    }

    @Test mutating func `keeps a transaction with nothing but a mark, whose end somebody waits for`() throws {
        try feed(M.begin(1), M.message("sluice-mark", ""), M.commit(1, end: 2))
        try feed(M.begin(3), M.message("sluice-marks", ""), M.commit(3, end: 4), M.message("sluice-mark", "", isTransactional: false))
        #expect(batch.transactions.map(\.changes) == [0..<0])
        #expect(batch.transactions.map(\.end) == [LSN(rawValue: 2)] && batch.reached == LSN(rawValue: 4))
    }

    @Test mutating func `tells before where changes of a table are missing, of those that a type has`() throws {
        try feed(M.begin(1), M.message("sluice-gap", #""public"."other""#), M.commit(1, end: 2))
        #expect(batch.gap == .zero && batch.transactions.isEmpty)
        try feed(M.begin(3), relation, M.message("sluice-gap", #""public"."items""#), M.insert(9, [nil, "", "1", "a"]))
        #expect(batch.gap == .zero)
        try feed(M.commit(3, end: 4), M.begin(5), M.insert(9, [nil, "", "2", "b"]), M.commit(5, end: 6))
        #expect(batch.gap == LSN(rawValue: 4) && batch.transactions.map(\.end) == [LSN(rawValue: 4), LSN(rawValue: 6)])
        batch.removeAll()
        #expect(batch.gap == .zero)
        // One with nothing else is news too.
        try feed(M.begin(7), M.message("sluice-gap", #""public"."items""#), M.commit(7, end: 8))
        #expect(batch.gap == LSN(rawValue: 8) && batch.transactions.map(\.end) == [LSN(rawValue: 8)])
    }

    @Test mutating func `hands on what is announced of the schema, and keeps its transaction`() throws {
        try feed(M.begin(1), M.message("sluice-schema", "{}"), M.commit(1, end: 2))
        #expect(batch.schemas == ["{}"] && batch.transactions.map(\.end) == [LSN(rawValue: 2)] && !batch.isEmpty)
        batch.removeAll()
        #expect(batch.schemas.isEmpty && batch.isEmpty)
    }

    @Test mutating func `reports rows that do not fit, and shows others only what fits`() throws {
        try feed(
            M.begin(1), relation,
            M.insert(9, [nil, "", "1", nil]),
            M.update(9, [nil, "", "1", nil], [nil, "", "1", "a"]),
            M.update(9, [nil, "", "1", "a"], [nil, "", "1", nil]),
            M.delete(9, [nil, "", "1", nil]),
            M.insert(9, [nil, "", "x", "a"]), M.commit(1, end: 2))
        #expect(batch.story == ["insert 1 - -> 1,a,null", "delete 2 1,a,null -> -"])
        #expect(batch.unfit.map(\.key) == ["1", "1", "1", "1", "x"])
        #expect(batch.unfit.map(\.position.ordinal) == [0, 1, 2, 3, 4])
        // That it fits by then, or is gone, is news as well.
        #expect(batch.unfit.map { $0.reason == nil } == [false, true, false, true, false])
        #expect(batch.unfit[0].reason?.contains("name") == true)
        #expect(batch.unfit[4].reason?.contains("'x'") == true)
    }

    @Test mutating func `takes unsent columns from a row that does not fit, with what is wrong about them`() throws {
        try feed(
            M.begin(1), relation,
            M.update(9, ["long", "", "1", nil], [.unchanged, "", "1", "a"]),
            M.update(9, ["n", "", "x", nil], ["m", "", .unchanged, "a"]),
            M.update(9, ["n", "", "x", "a"], [.unchanged, "", "2", nil]),
            M.update(9, ["n", "", "2", nil], [.unchanged, "", .unchanged, "b"]), M.insert(9, [nil, "", "3", "c"]), M.commit(1, end: 2))
        #expect(batch.story == ["insert 0 - -> 1,a,long", "insert 3 - -> 2,b,n", "insert 4 - -> 3,c,null"])
        #expect(batch.unfit.map(\.key) == ["1", "x", "x", "2", "2"])
        #expect(batch.unfit.map { $0.reason == nil } == [true, false, true, false, true])
        #expect(batch.unfit[1].reason?.contains("'x'") == true)
    }

    @Test mutating func `tells of a truncation, in its place of the transaction`() throws {
        try feed(
            M.begin(1), relation, M.insert(9, ["n", "", "1", "a"]), M.truncate([9]), M.insert(9, ["n", "", "2", "b"]), M.commit(1, end: 2))
        #expect(batch.changes.map(\.operation) == [.insert, .truncate, .insert])
        #expect(batch.changes.map(\.position.ordinal) == [0, 1, 2])
        #expect(batch.changes[1].before == nil && batch.changes[1].after == nil && batch.unfit.isEmpty)
    }

    @Test mutating func `reports a missing old row`() throws {
        try feed(
            M.begin(1), relation, M.update(9, nil, [nil, "", "1", "a"]), M.delete(9, [nil, "", "1", nil], kind: "K"),
            M.commit(1, end: 2))
        #expect(batch.changes.isEmpty)
        #expect(batch.unfit.count == 2)
        #expect(batch.unfit.allSatisfy { $0.reason?.contains("REPLICA IDENTITY FULL") == true })
    }

    @Test mutating func `follows a table whose columns change`() throws {
        try feed(
            M.begin(1), M.relation(9, "items", ["_id", "title"]), M.insert(9, ["1", "a"]),
            M.relation(9, "items", ["title", "_id", "note"]),
            M.insert(9, ["b", "2", "n"]), M.relation(9, "items", ["_id"]), M.insert(9, ["3"]), M.commit(1, end: 2))
        #expect(batch.story == ["insert 0 - -> 1,a,null", "insert 1 - -> 2,b,n", "insert 2 - -> 3,absent,null"])
    }

    @Test mutating func `cuts a long transaction into pieces that go on counting`() throws {
        try feed(M.begin(1), relation, M.message("sluice", "5:6:0"), M.insert(9, [nil, "", "1", "a"]))
        decoder.cut(&batch)
        #expect(batch.transactions.map(\.end) == [nil])
        #expect(batch.transactions.first?.origin?.changeset == 6)
        batch.removeAll()
        try feed(M.insert(9, [nil, "", "2", "b"]))
        decoder.cut(&batch)
        #expect(batch.story == ["insert 1 - -> 2,b,null"])
        #expect(batch.transactions.map(\.changes) == [0..<1])
        batch.removeAll()
        try feed(M.commit(1, end: 2))
        #expect(batch.transactions.map(\.end) == [LSN(rawValue: 2)])
        #expect(batch.transactions.first?.origin?.changeset == 6)
    }

    @Test mutating func `refuses every message that ends too early`() throws {
        let messages = [
            M.begin(1), relation, M.message("sluice", "5:6:0"), M.insert(9, ["n", "", "1", "a"]),
            M.update(9, ["n", "", "1", "a"], [.unchanged, nil, "1", "b"]), M.delete(9, ["n", "", "1", "b"]), M.truncate([9]),
            M.commit(1, end: 2),
        ]
        for message in messages {
            for length in 0..<message.count {
                var (decoder, batch) = (decoder, batch)
                #expect(throws: MalformedMessage.self, "\(Unicode.Scalar(message[0])) cut to \(length)") {
                    try decoder.decode(Array(message[0..<length]), into: &batch)
                }
            }
            try feed(message)
        }
        #expect(batch.story.count == 4)
    }

    @Test mutating func `never traps on damaged messages`() throws {
        var random = SplitMix64()
        try feed(M.begin(1), relation)
        let messages = [
            M.begin(1), relation, M.message("sluice", "5:6:0"), M.insert(9, ["n", "", "1", "a"]),
            M.update(9, ["n", "", "1", "a"], [.unchanged, nil, "1", "b"]), M.delete(9, ["n", "", "1", "b"]), M.truncate([9]),
            M.commit(1, end: 2),
        ]
        var refused = 0
        for _ in 0..<20_000 {
            var message = messages.randomElement(using: &random) ?? []
            for _ in 0...Int.random(in: 0...3, using: &random) {
                message[Int.random(in: 0..<message.count, using: &random)] = UInt8.random(in: .min ... .max, using: &random)
            }
            var (decoder, batch) = (decoder, batch)
            do throws(MalformedMessage) { try decoder.decode(message, into: &batch) } catch { refused += 1 }
        }
        #expect(refused > 1_000, "seed \(random.seed)")
    }

    @Test mutating func `refuses changes out of place`() throws {
        #expect(throws: MalformedMessage.self) { try decoder.decode(M.insert(9, []), into: &batch) }
        #expect(throws: MalformedMessage.self) { try decoder.decode(M.commit(1, end: 2), into: &batch) }
        try feed(relation)
        #expect(throws: MalformedMessage.self) { try decoder.decode(M.insert(9, [nil, "", "1", "a"]), into: &batch) }
        try feed(M.begin(1))
        #expect(throws: MalformedMessage.self) { try decoder.decode(M.begin(2), into: &batch) }
        #expect(throws: MalformedMessage.self) { try decoder.decode(M.insert(9, ["1"]), into: &batch) }
        #expect(throws: MalformedMessage.self) { try decoder.decode([UInt8(ascii: "S")], into: &batch) }
    }
}
