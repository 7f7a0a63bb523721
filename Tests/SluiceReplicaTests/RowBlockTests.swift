import SluiceCore
import SluiceReplica
import TestSupport
import Testing

/// Objects of a result by their places.
@Suite struct RowBlockTests {
    let folder: TemporaryFolder

    private static let schema = Schema([
        todoType,
        ObjectType(name: "Named", properties: [Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "age", type: .int)]),
    ])

    init() throws { folder = try TemporaryFolder() }

    private func open() throws -> Replica {
        try Replica(
            path: folder.file, schema: Self.schema, isSynced: false, indexes: ["Todo": ["priority"]], environment: TestEnvironment())
    }

    private func fill(_ replica: Replica, _ ids: Range<Int64>) throws {
        try replica.write { transaction in
            for id in ids { try transaction.create(type: 0, key: .int(id * 3), values: ["priority": .int(-id)]) }
        }
    }

    /// SQLite's instructions for the key at a place.
    private func cost(of index: Int, _ query: ReplicaQuery, _ reader: ReplicaReader) throws -> Int {
        let before = reader.instructions
        #expect(try query.block(at: index, on: reader.store)?[index] != nil)
        return reader.instructions - before
    }

    @Test func `a place is found in steps that double with it, and later in those of a block`() throws {
        let replica = try open()
        try fill(replica, 0..<40_000)
        let all = ReplicaQuery(type: 0, in: replica.schema)
        let one = try cost(of: 19_999, all, replica.makeReader())
        let reader = try replica.makeReader()
        let two = try cost(of: 39_999, all, reader)
        #expect(two * 10 <= one * 21 && two < 40_000 * 8, "\(one) and \(two) instructions")
        for place in [39_999, 20_000, 7] {
            let again = try cost(of: place, all, reader)
            #expect(again < 512 * 8, "\(again) instructions for a place that is known")
        }
        // Another object's change moves nothing before it.
        try replica.write { try $0.create(type: 0, key: .int(900_000), values: [:]) }
        #expect(try reader.refresh())
        let after = try cost(of: 40_000, all, reader)
        #expect(after < 512 * 16, "\(after) instructions after one more object")
    }

    @Test func `a place in an index's order is found in the index`() throws {
        let replica = try open()
        try fill(replica, 0..<10_000)
        let reader = try replica.makeReader()
        let sorted = try ReplicaQuery(type: 0, in: replica.schema).sorted(by: [("priority", true)])
        #expect(try sorted.block(at: 7_000, on: reader.store)?[7_000] == .int(3 * 2_999))
        let before = reader.instructions
        _ = try sorted.block(at: 7_000, on: reader.store)
        #expect(reader.instructions - before < 80_000)
        #expect(try sorted.block(at: 10_000, on: reader.store)?.keys == [])
        #expect(try sorted.limited(to: 5).block(at: 4, on: reader.store)?.keys == [.int(3 * 9_995)])
        let narrowed = try ReplicaQuery(type: 0, in: replica.schema).narrowed(by: "priority == -17")
        #expect(try narrowed.block(at: 0, on: reader.store)?.keys == [.int(51)])
        // What SQLite would sort, or look through, is not asked again and again.
        #expect(try ReplicaQuery(type: 0, in: replica.schema).sorted(by: [("title", true)]).block(at: 0, on: reader.store) == nil)
        #expect(try ReplicaQuery(type: 0, in: replica.schema).narrowed(by: "title == 'x'").block(at: 0, on: reader.store) == nil)
    }

    @Test(arguments: seeds(3)) func `places stay right whatever changes`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let replica = try open()
        try fill(replica, 0..<Int64(random.below(3_000)))
        try replica.write { transaction in
            for id in 0..<1_200 { try transaction.create(type: 1, key: .string("n\(id)"), values: [:]) }
        }
        let (reader, idle) = (try replica.makeReader(), try replica.makeReader())
        for _ in 0..<12 {
            let transaction = try replica.beginWrite()
            for _ in 0..<4 {
                try change(transaction, &random)
                try check(transaction.store, &random)
            }
            if random.chance(30) { transaction.cancel() } else { try transaction.commit() }
            try reader.refresh()
            try check(reader.store, &random)
            // One that moves on over several commits at once.
            if random.chance(30) { try idle.refresh() }
            try check(idle.store, &random)
        }
    }

    private func change(_ transaction: WriteTransaction, _ random: inout SplitMix64) throws {
        let (number, name) = (Value.int(Int64(random.below(9_000))), Value.string("n\(random.below(2_000))"))
        switch random.below(5) {
        case 0: try transaction.create(type: 0, key: number, values: ["title": .string("x")])
        case 1: try transaction.create(type: 1, key: name, values: ["age": .int(1)])
        case 2: try transaction.delete(type: 0, key: number)
        case 3: try transaction.delete(type: 1, key: name)
        default: try transaction.set(type: 0, key: number, property: 1, .string("y"))
        }
    }

    private func check(_ store: RowStore, _ random: inout SplitMix64) throws {
        for type in 0..<2 {
            let query = ReplicaQuery(type: type, in: Self.schema)
            let keys = try query.run(on: store)
            for index in [0, keys.count - 1, keys.count] + (0..<4).map({ _ in random.below(keys.count + 600) }) where index >= 0 {
                #expect(try query.block(at: index, on: store)?[index] == (index < keys.count ? keys[index] : nil))
            }
            #expect(try store.lastKey(type: type) == keys.last)
        }
    }
}
