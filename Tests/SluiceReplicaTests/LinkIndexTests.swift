import SluiceCore
import SluiceReplica
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
