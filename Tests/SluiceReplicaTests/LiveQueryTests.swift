import SluiceCore
import SluiceQuery
import SluiceReplica
import Synchronization
import TestSupport
import Testing

@Suite struct LiveQueryTests {
    @Test(arguments: [UInt64(1), 2, 3, 4, 5, 6, 7, 8])
    func `applying a difference to the old list gives the new one`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<200 {
            let old = Array((0..<Int64(12)).shuffled(using: &random).prefix(Int.random(in: 0...12, using: &random)))
            let new = Array((0..<Int64(12)).shuffled(using: &random).prefix(Int.random(in: 0...12, using: &random)))
            let modified = Set((0..<Int64(12)).filter { _ in Bool.random(using: &random) })
            let diff = CollectionDiff(from: old.map { .int($0) }, to: new.map { .int($0) }) { value in
                modified.contains { .int($0) == value }
            }
            var list = old
            for index in diff.deletions.reversed() { list.remove(at: index) }
            for index in diff.insertions { list.insert(new[index], at: index) }
            #expect(list == new, "seed \(seed): \(old) to \(new)")
            let kept = new.indices.filter { !diff.insertions.contains($0) }
            #expect(diff.modifications == kept.filter { modified.contains(new[$0]) }, "seed \(seed)")
        }
    }

    private static let queries = [
        "TRUEPREDICATE", "priority > 3", "priority > 3 SORT(priority DESC, _id ASC)", "TRUEPREDICATE SORT(title ASC)",
        "priority > 1 SORT(priority ASC) SORT(title DESC)", "priority > 1 DISTINCT(title)", "TRUEPREDICATE SORT(title ASC) LIMIT(5)",
        "ANY tags == 'a' SORT(note ASC)", "next.priority > 3 SORT(next.title ASC)", "@links.Todo.next.@count > 0",
        "priority > 1 SORT(priority DESC) DISTINCT(title, next.priority) SORT(title DESC) LIMIT(3)",
        "SUBQUERY(@links.Todo.next, $t, $t.next.next.priority > 3 AND $t.title != title).@count > 0 DISTINCT(next.title)",
        "TRUEPREDICATE LIMIT(4) SORT(title ASC)", "@links.@count > 1 SORT(priority ASC) LIMIT(2)",
    ]

    private static func schema(_ key: PropertyType) -> Schema {
        Schema([
            ObjectType(
                name: "Todo",
                properties: [
                    Property(id: 1, name: "_id", type: key), Property(id: 2, name: "title", type: .string),
                    Property(id: 3, name: "priority", type: .int), Property(id: 4, name: "note", type: .string, isOptional: true),
                    Property(id: 5, name: "tags", type: .string, collection: .list),
                    Property(id: 6, name: "next", type: .link(to: "Todo"), isOptional: true),
                ])
        ])
    }

    private static func key(_ number: Int, _ type: PropertyType) -> Value {
        type == .int ? .int(Int64(number)) : .string("k\(number * 7_919 % 1_000)")
    }

    /// The oracle runs each query anew and compares by definition; the file of the second key type has an order of its own.
    @Test(arguments: seeds(4), [PropertyType.int, .string])
    func `notifications turn one result into the next under random writes`(seed: UInt64, keyType: PropertyType) throws {
        var random = SplitMix64(seed: seed)
        let folder = try TemporaryFolder()
        let replica = try Replica(path: folder.file, schema: LiveQueryTests.schema(keyType), isSynced: false)
        let changes = Mutex<ReplicaChange?>(nil)
        let observer = replica.observeChanges { change in
            changes.withLock { waiting in
                if waiting == nil { waiting = change } else { waiting?.merge(change) }
            }
        }
        defer { replica.removeObserver(observer) }
        let reader = try replica.makeReader()
        let all = ReplicaQuery(type: 0, in: replica.schema)
        var live = try LiveQueryTests.queries.map { try LiveQuery(try all.narrowed(by: $0), on: reader.store) }
        var shown = live.map(\.keys)
        var contents = try LiveQueryTests.contents(reader.store)
        for _ in 0..<80 {
            for _ in 0..<random.below(3) + 1 { try LiveQueryTests.mutate(replica, keyType, &random) }
            try reader.refresh()
            let change = changes.withLock { waiting in
                defer { waiting = nil }
                return waiting
            }
            guard let change else { continue }
            #expect(change.version == reader.version)
            let next = try LiveQueryTests.contents(reader.store)
            for index in live.indices {
                let comment: Comment = "seed \(seed): \(LiveQueryTests.queries[index]), before \(shown[index])"
                let expected = try live[index].query.run(on: reader.store)
                if let diff = try live[index].update(change, on: reader.store) {
                    let old = shown[index]
                    for place in diff.deletions.reversed() { shown[index].remove(at: place) }
                    for place in diff.insertions { shown[index].insert(expected[place], at: place) }
                    let told = Set(diff.modifications.map { expected[$0] } + diff.insertions.map { expected[$0] })
                    let changed = expected.filter { old.contains($0) && contents[$0] != next[$0] }
                    #expect(told.isSuperset(of: changed), comment)
                    #expect(Set(diff.modifications).isDisjoint(with: diff.insertions), comment)
                    for key in diff.modifications.map({ expected[$0] }) { #expect(change.types[0]?.contains(key) == true, comment) }
                }
                #expect(live[index].runs == 1 || !live[index].isFollowed, comment)
                #expect(shown[index] == expected, comment)
                #expect(live[index].keys == expected && live[index].count == expected.count, comment)
                #expect(live[index][expected.count / 2] == (expected.isEmpty ? nil : expected[expected.count / 2]), comment)
            }
            contents = next
        }
    }

    private static func contents(_ store: RowStore) throws -> [Value: Row] {
        var rows: [Value: Row] = [:]
        try store.scan(type: 0) { rows[$0.value(0) ?? .null] = Row($0) }
        return rows
    }

    private static func mutate(_ replica: Replica, _ keyType: PropertyType, _ random: inout SplitMix64) throws {
        let transaction = try replica.beginWrite()
        for _ in 0..<random.below(4) + 1 {
            let key = key(random.below(25), keyType)
            switch random.below(4) {
            case 0: try transaction.delete(type: 0, key: key)
            case 1:
                try transaction.create(
                    type: 0, key: key,
                    values: [
                        "priority": .int(Int64(random.below(8))), "title": .string(random.pick(["a", "b", "c", "é"])),
                        "tags": .list(random.chance(50) ? [.string("a")] : []), "next": self.key(random.below(25), keyType),
                    ])
            case 2: try transaction.set(type: 0, key: key, property: 1, .string(random.pick(["a", "b", "c", "é"])))
            default: try transaction.set(type: 0, key: key, property: 2, .int(Int64(random.below(8))))
            }
        }
        if random.chance(10) { transaction.cancel() } else { try transaction.commit() }
    }

    @Test func `a result of many blocks follows changes at its ends and in its middle`() throws {
        let folder = try TemporaryFolder()
        let replica = try Replica(path: folder.file, schema: LiveQueryTests.schema(.string), isSynced: false)
        try replica.write { transaction in
            for number in 0..<5_000 {
                try transaction.create(type: 0, key: .string("k\(number)"), values: ["priority": .int(Int64(number / 2) * 2)])
            }
        }
        let reader = try replica.makeReader()
        let query = try ReplicaQuery(type: 0, in: replica.schema).narrowed(by: "priority >= 0 SORT(priority DESC)")
        var live = try LiveQuery(query, on: reader.store)
        let news = Mutex<ReplicaChange?>(nil)
        let observer = replica.observeChanges { change in news.withLock { $0 = change } }
        defer { replica.removeObserver(observer) }
        for round in 0..<8 {
            try replica.write { transaction in
                for number in 0..<200 {
                    let key = Value.string("k\((round * 611 + number * 13) % 5_000)")
                    if round % 2 == 0 { try transaction.delete(type: 0, key: key) }
                    try transaction.create(type: 0, key: key, values: ["priority": .int(Int64(2_500 + round * number))])
                }
            }
            try reader.refresh()
            let change = try #require(news.withLock { $0 })
            let old = live.keys
            let diff = try #require(try live.update(change, on: reader.store))
            let expected = try query.run(on: reader.store)
            #expect(live.keys == expected)
            var replayed = old
            for place in diff.deletions.reversed() { replayed.remove(at: place) }
            for place in diff.insertions { replayed.insert(expected[place], at: place) }
            #expect(replayed == expected)
        }
        try replica.write { for number in 0..<5_000 { try $0.delete(type: 0, key: .string("k\(number)")) } }
        try reader.refresh()
        _ = try live.update(try #require(news.withLock { $0 }), on: reader.store)
        #expect(live.count == 0)
    }
}
