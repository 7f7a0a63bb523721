import SluiceCore
import SluiceMerge
import SluiceValues
import TestSupport
import Testing

@Suite struct ClocksTests {
    private func randomClocks(_ generator: inout SplitMix64) -> ObjectClocks {
        func stamp() -> WriteStamp {
            WriteStamp(
                time: HybridTime(rawValue: generator.next() % 5), client: ClientID(rawValue: generator.next() >> (generator.next() % 64)))
        }
        func sql() -> SQLWrite? {
            Bool.random(using: &generator) ? SQLWrite(stamp: stamp(), hash: ValueHash(rawValue: generator.next())) : nil
        }
        var clocks = ObjectClocks(isDeleted: Bool.random(using: &generator))
        if Bool.random(using: &generator) { clocks.created = stamp() }
        if Bool.random(using: &generator) { clocks.deletion = Deletion(stamp: stamp(), lsn: LSN(rawValue: generator.next())) }
        for _ in 0..<Int.random(in: 0..<6, using: &generator) {
            let additions = (0..<Int.random(in: 0..<3, using: &generator)).map { _ in
                PropertyClock.Addition(stamp: stamp(), amount: Int64(bitPattern: generator.next()))
            }
            var clock = PropertyClock(
                stamp: stamp(), isDefault: Bool.random(using: &generator), valueHash: ValueHash(rawValue: generator.next()),
                additions: additions, sql: sql())
            // The server's stamp is that of something that SQL wrote.
            if clock.sql == nil, clock.stamp.client == .server { clock.sql = SQLWrite(stamp: clock.stamp, hash: clock.valueHash) }
            clocks.properties[UInt32.random(in: 0...300, using: &generator)] = clock
        }
        return clocks
    }

    @Test(arguments: seeds(8)) func `clocks read back as they were stored`(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<100 {
            let clocks = randomClocks(&generator)
            #expect(try ObjectClocks(encoded: clocks.encoded) == clocks, "seed \(seed)")
        }
    }

    @Test(arguments: seeds(8)) func `damaged clocks are an error or other clocks, never a trap`(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var refused = 0
        for _ in 0..<300 {
            var bytes = randomClocks(&generator).encoded
            bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            bytes.removeLast(Int.random(in: 0...bytes.count, using: &generator))
            do { _ = try ObjectClocks(encoded: bytes) } catch { refused += error.code == .internalError ? 1 : 0 }
        }
        #expect(refused > 0, "seed \(seed)")
    }

    @Test func `a huge count does not make memory`() {
        #expect(throws: SluiceError.self) { try ObjectClocks(encoded: [1, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F]) }
        #expect(throws: SluiceError.self) { try ObjectClocks(encoded: [2, 0, 0, 0]) }
        #expect(throws: SluiceError.self) { try ObjectClocks(encoded: []) }
    }

    @Test func `a row of ten properties written at once costs little`() {
        let stamp = WriteStamp(time: HybridTime(milliseconds: 1_770_000_000_000), client: ClientID(rawValue: 77))
        let clocks = (1...10).map { (UInt32($0), PropertyClock(stamp: stamp, valueHash: ValueHash(.int(Int64($0))))) }
        #expect(ObjectClocks(properties: Dictionary(uniqueKeysWithValues: clocks), created: stamp).encoded.count <= 130)
    }

    @Test func `the hash of a value is fixed for ever`() {
        #expect(ValueHash(.null).rawValue == 0xAF63_BD4C_8601_B7DF)
        #expect(ValueHash("a").rawValue == ValueHash(.string("a")).rawValue)
        let all: [Value] = [
            .null, true, false, 0, 1, .double(1), .string(""), .string("1"), .binary([1]), .list([]), .dictionary([:]),
            .timestamp(Timestamp(seconds: 1)), .list([.null]), .dictionary(["a": 1]), .dictionary(["b": 1]), .link(type: "a", key: 1),
            .decimal(Decimal128(1)), .objectId(ObjectIdentifierBytes(high: 1, low: 0)), .uuid(UUIDBytes(high: 1, low: 0)),
        ]
        #expect(Set(all.map { ValueHash($0) }).count == all.count)
    }

    @Test func `what PostgreSQL spells differently has one hash`() throws {
        #expect(ValueHash(.double(-0.0)) == ValueHash(.double(0)))
        #expect(ValueHash(.float(0.1)) == ValueHash(.double(0.1)) && ValueHash(.float(.infinity)) == ValueHash(.double(.infinity)))
        #expect(ValueHash(.double(-.nan)) == ValueHash(.double(.nan)))
        #expect(
            ValueHash(.timestamp(Timestamp(seconds: 1, nanoseconds: 1_999)))
                == ValueHash(.timestamp(Timestamp(seconds: 1, nanoseconds: 1_000))))
        let spellings = try ["1000", "1E+3", "1000.000"].map { Value.decimal(try #require(Decimal128($0))) }
        #expect(Set(spellings.map { ValueHash($0) }).count == 1)
        #expect(ValueHash(.decimal(try #require(Decimal128("-0.0")))) == ValueHash(.decimal(.zero)))
    }

    @Test func `a value that SQL wrote is newer than what it replaced, even if a fast clock wrote that`() throws {
        var world = try World([.client(1, at: 500, .create(["name": "fast"])), .sql(at: 100, ["name": "sql"])])
        #expect(try world.state(now: 100).clocks.properties[2]?.stamp.time ?? .zero > HybridTime(milliseconds: 500))
        try world.take(.client(2, at: 400, .set(["name": "between"])))
        #expect(world.row?["name"] == "sql")
    }

    @Test func `a row of SQL alone has the time of its transaction`() throws {
        let state = ObjectState(row: ["_id": 1, "name": "x"], clocks: nil, type: thing, rowTime: 50)
        #expect(state.values == ["name": "x"])
        #expect(state.clocks.properties.values.allSatisfy { $0.stamp.time == HybridTime(milliseconds: 50) && !$0.isDefault })
        #expect(state.clocks.properties.count == thing.properties.count - 1)
    }

    @Test func `a row that SQL deleted takes no edits, one that SQL made again starts anew`() throws {
        var world = try World([.client(1, at: 5, .create(["name": "x"])), .sql(at: 10, nil), .client(2, at: 20, .set(["name": "late"]))])
        #expect(world.row == nil && world.lastEffect == .unchanged(.objectDeleted))
        try world.take(.sql(at: 30, ["name": "again"]))
        #expect(try !world.state(now: 30).clocks.isDeleted)
        try world.take(.client(2, at: 40, seen: 4, .set(["count": 1])))
        #expect(world.shown == ["name": "again", "count": 1])
    }
}

@Suite struct EmptyValueTests {
    @Test func `what a create leaves out is empty, and any other write beats it`() throws {
        let type = ObjectType(
            name: "Sparse",
            properties: [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "required", type: .int),
                Property(id: 3, name: "optional", type: .int, isOptional: true),
                Property(id: 4, name: "list", type: .string, collection: .list),
                Property(id: 5, name: "pairs", type: .mixed, collection: .dictionary),
            ])
        let object = ObjectKey(type: "Sparse", key: 1)
        func writer(_ time: Int64) -> WriteContext {
            WriteContext(stamp: WriteStamp(time: HybridTime(milliseconds: time), client: ClientID(rawValue: 1)), base: .zero, now: .zero)
        }
        var state = ObjectState()
        try Merge.apply(ObjectChange(object: object, kind: .create), by: writer(100), to: &state, type: type)
        #expect(state.values == ["required": 0, "optional": .null, "list": .list([]), "pairs": .dictionary([:])])
        // Read back, nothing looks as if SQL had written it, so a write older than the create still counts.
        var stored = ObjectState(row: state.values, clocks: state.clocks, type: type, rowTime: 200)
        #expect(stored == state)
        try Merge.apply(ObjectChange(object: object, kind: .set, values: ["required": 5]), by: writer(50), to: &stored, type: type)
        #expect(stored.values?["required"] == 5)
    }
}
