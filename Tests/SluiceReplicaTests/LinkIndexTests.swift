import ReplicaTestSupport
import SluiceCore
import SluiceReplica
import TestSupport
import Testing

@Suite struct LinkIndexTests {
    let folder: TemporaryFolder

    private static let schema = Schema([
        ObjectType(
            name: "Person",
            properties: [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "friends", type: .link(to: "Person"), collection: .list),
                Property(id: 3, name: "best", type: .link(to: "Person"), isOptional: true),
            ])
    ])

    init() throws { folder = try TemporaryFolder() }

    private func open() throws -> Replica { try Replica(path: folder.file, schema: Self.schema, environment: TestEnvironment()) }

    private func person(_ id: Int64, friends: [Int64] = [], best: Int64? = nil) -> Row {
        Row([.int(id), .list(friends.map { .int($0) }), best.map { .int($0) } ?? .null])
    }

    /// Who has an object among the friends, and whose best friend it is.
    private func fans(_ replica: Replica, of id: Int64) throws -> [[Value]] {
        let store = try replica.makeReader().store
        return try [1, 2].map { try store.origins(of: .int(id), type: 0, property: $0) }
    }

    @Test func `links of the server's rows are followed backwards`() async throws {
        let replica = try open()
        try await replica.apply(batch(10, put: [person(1, friends: [2, 3, 2], best: 3), person(2, friends: [3])]))
        #expect(try fans(replica, of: 2) == [[.int(1), .int(1)], []])
        #expect(try fans(replica, of: 3) == [[.int(1), .int(2)], [.int(1)]])
        try await replica.apply(batch(20, put: [person(1, friends: [3])], leave: [2]))
        #expect(try fans(replica, of: 2) == [[], []] && fans(replica, of: 3) == [[.int(1)], []])
    }

    @Test func `a bootstrap replaces them`() async throws {
        let replica = try open()
        try await replica.apply(batch(10, put: [person(1, friends: [2]), person(2, friends: [1])]))
        try await replica.beginBootstrap(version: 1)
        var buffer = RowBuffer()
        let rows = [person(2, friends: [3]), person(4, friends: [3])].map { buffer.append($0) }
        try await replica.stage(type: 0, rows: rows, of: buffer)
        try await replica.endBootstrap(version: 1, lsn: LSN(rawValue: 50), types: [0])
        #expect(try fans(replica, of: 1)[0] == [] && fans(replica, of: 2)[0] == [] && fans(replica, of: 3)[0] == [.int(2), .int(4)])
    }

    /// Bulk inserts pay for each object's own links, not for those of the objects before it.
    @Test func `what an object's links cost does not grow with the links of others`() throws {
        let replica = try Replica(path: folder.file, schema: Self.schema, isSynced: false, environment: TestEnvironment())
        try replica.write { transaction in
            for id in 0..<2_000 {
                let friends = (1...5).map { Value.int(Int64(id * 7 + $0) % 100) }
                try transaction.create(type: 0, key: .int(Int64(id)), values: ["friends": .list(friends)])
            }
        }
        try replica.write { transaction in
            _ = try transaction.store.origins(of: .int(9_999), type: 0, property: 1)
            let before = transaction.instructions
            try transaction.create(type: 0, key: .int(5_000), values: ["friends": .list([.int(9_999), .int(1), .int(2)])])
            try transaction.set(type: 0, key: .int(1), property: 1, .list([.int(9_999)]))
            #expect(try transaction.store.origins(of: .int(9_999), type: 0, property: 1) == [.int(1), .int(5_000)])
            let spent = transaction.instructions - before
            #expect(spent < 2_000, "\(spent) instructions for 4 of 10,000 links")
        }
    }

    @Test func `a change of a list costs the links that it concerns, not the list's length`() throws {
        let replica = try Replica(path: folder.file, schema: Self.schema, isSynced: false, environment: TestEnvironment())
        var friends = (0..<5_000).map { Value.int($0) }
        try replica.write { try $0.create(type: 0, key: .int(1), values: ["friends": .list(friends)]) }
        try replica.write { transaction in
            let before = transaction.instructions
            friends.append(.int(9_999))
            try transaction.set(type: 0, key: .int(1), property: 1, .list(friends))
            friends.remove(at: 7)
            try transaction.set(type: 0, key: .int(1), property: 1, .list(friends))
            #expect(try transaction.store.origins(of: .int(9_999), type: 0, property: 1) == [.int(1)])
            #expect(try transaction.store.origins(of: .int(7), type: 0, property: 1) == [])
            let spent = transaction.instructions - before
            #expect(spent < 2_000, "\(spent) instructions for 2 of 5,000 links")
        }
    }

    @Test(arguments: seeds(3)) func `lists that change in many ways keep their links`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let replica = try Replica(path: folder.file, schema: Self.schema, isSynced: random.chance(50), environment: TestEnvironment())
        if replica.isSynced { _ = try replica.addSubscriptionSet([subscription("Person", "TRUEPREDICATE")]) }
        var people: [Int64: [Value]] = [:]
        for _ in 0..<40 {
            try replica.write { transaction in
                for _ in 0...random.below(6) {
                    let id = Int64(random.below(3))
                    try change(id, &people[id], transaction, &random)
                }
                if random.chance(50) { try check(transaction.store, people) }
            }
            try check(replica.makeReader().store, people)
        }
    }

    /// Makes, changes or deletes a person, whose friends are given.
    private func change(
        _ id: Int64, _ friends: inout [Value]?, _ transaction: WriteTransaction, _ random: inout SplitMix64
    ) throws {
        func someone() -> Value { .int(Int64(random.below(5))) }
        guard var list = friends else {
            friends = (0..<random.below(5)).map { _ in someone() }
            try transaction.create(type: 0, key: .int(id), values: ["friends": .list(friends ?? [])])
            return
        }
        let edit: ShownEdit.Change
        let index = random.below(list.count + 1)
        switch random.below(7) {
        case 0:
            try transaction.delete(type: 0, key: .int(id))
            friends = nil
            return
        case 1:
            friends = (0..<random.below(5)).map { _ in someone() }
            _ = try transaction.set(type: 0, key: .int(id), property: 1, .list(friends ?? []))
            return
        case 2 where index < list.count:
            list.remove(at: index)
            edit = .removeElement(index)
        case 3 where index < list.count:
            list[index] = someone()
            edit = .setElement(index, list[index])
        default:
            list.insert(someone(), at: index)
            edit = .insert(list[index], at: index)
        }
        friends = list
        _ = try transaction.set(type: 0, key: .int(id), property: 1, .list(list), by: ShownEdit([edit]))
    }

    private func check(_ store: RowStore, _ people: [Int64: [Value]]) throws {
        for target in 0..<5 {
            let fans = people.sorted { $0.key < $1.key }.flatMap { id, friends in
                friends.filter { $0 == .int(Int64(target)) }.map { _ in Value.int(id) }
            }
            #expect(try store.origins(of: .int(Int64(target)), type: 0, property: 1) == fans)
        }
    }

    @Test func `a file without an index of links gets one from what is there`() async throws {
        do {
            let properties = [
                Property(id: 1, name: "_id", type: .int), Property(id: 2, name: "friends", type: .int, collection: .list),
                Property(id: 3, name: "best", type: .int, isOptional: true),
            ]
            let replica = try Replica(
                path: folder.file, schema: Schema([ObjectType(name: "Person", properties: properties)]), environment: TestEnvironment())
            try await replica.apply(batch(10, put: [person(1, friends: [2], best: 3), person(3)]))
        }
        let replica = try open()
        #expect(try fans(replica, of: 2) == [[.int(1)], []] && fans(replica, of: 3) == [[], [.int(1)]])
        try await replica.apply(batch(20, put: [person(1, friends: [3, 3])]))
        #expect(try fans(replica, of: 2) == [[], []] && fans(replica, of: 3) == [[.int(1), .int(1)], []])
    }
}
