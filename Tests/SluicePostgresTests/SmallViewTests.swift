import SluiceCore
import SluicePorts
import Synchronization
import TestSupport
import Testing

@testable import SluicePostgres

@Suite struct `Small views that are asked for together` {
    private struct Refused: Error {}

    /// What came of reading a view: the keys of its rows and where its snapshot stands; nil when it did not see everything.
    private typealias Read = (keys: Set<Int64>, snapshot: TransactionSnapshot?)
    private typealias Reading = @Sendable (PostgresSnapshotStore, @escaping View) async throws -> Read

    /// Again, when the snapshot did not see everything.
    @Sendable private static func read(_ store: PostgresSnapshotStore, _ choose: @escaping View) async throws -> Read {
        try await untilSeen {
            let read = try await once(store, choose)
            return read.snapshot == nil ? nil : read
        }
    }

    @Sendable private static func once(_ store: PostgresSnapshotStore, _ choose: @escaping View) async throws -> Read {
        let keys = Mutex<Set<Int64>>([])
        let identity = try await store.read(choose: choose) { _, buffer, rows in
            for row in rows {
                if case .int(let key)? = buffer.withView(row, { $0.value(0) }) { keys.withLock { _ = $0.insert(key) } }
            }
        }
        return (keys.withLock { $0 }, identity?.snapshot)
    }

    private typealias View = @Sendable (SnapshotStart) throws -> [SnapshotSelection]

    /// Reads views that all had to wait for a connection: the first on their own, a snapshot each, and these together.
    private static func together(
        _ fixture: StoreFixture, _ views: [View], at reading: @escaping Reading = read
    ) async throws -> [Result<Read, any Error>] {
        let pool = PostgresPool(fixture.conninfo, size: 1)
        let store = PostgresSnapshotStore(pool: pool)
        let tasks = try await pool.withConnection { _ in
            // Unstructured because: they outlive the loan that they wait for.
            let first = (0..<SmallViews.snapshots).map { _ in Task { await result(reading, store) { _ in [] } } }
            while pool.waiting < SmallViews.snapshots { await Task.yield() }
            let tasks = views.map { view in Task { await result(reading, store, view) } }  // Unstructured because: see above.
            while store.small.waiting < views.count { await Task.yield() }
            return first + tasks
        }
        var results: [Result<Read, any Error>] = []
        for task in tasks { results.append(await task.value) }
        await pool.close()
        return Array(results.dropFirst(SmallViews.snapshots))
    }

    private static func result(
        _ read: Reading, _ store: PostgresSnapshotStore, _ view: @escaping View
    ) async -> Result<Read, any Error> {
        do { return .success(try await read(store, view)) } catch { return .failure(error) }
    }

    @Sendable private static func above(_ number: Int) throws -> SnapshotSelection {
        SnapshotSelection(try StoreFixture.shape("Reading"), where: "_id > $1", [.int(number)])
    }

    @Test func `have their own rows of one snapshot`() async throws {
        try await StoreFixture.with { fixture in
            _ = try await fixture.sql("INSERT INTO \"Reading\" SELECT g, 's', g FROM generate_series(1, 20) g")
            let views = (0..<12).map { number in
                { @Sendable (_: SnapshotStart) throws in [try Self.above(number), try Self.above(18)] }
            }
            let results = try await untilSeen {
                let results = try await Self.together(fixture, views, at: Self.once).map { try $0.get() }
                return results.contains { $0.snapshot == nil } ? nil : results
            }
            for (number, result) in results.enumerated() { #expect(result.keys == Set((Int64(number) + 1)...20)) }
            #expect(Set(results.map(\.snapshot)).count == 1)
        }
    }

    @Test func `fail alone, are large alone, and are read all the same where others do`() async throws {
        try await StoreFixture.with { fixture in
            _ = try await fixture.sql("INSERT INTO \"Reading\" SELECT g, 's', g FROM generate_series(1, 600) g")
            let results = try await Self.together(
                fixture,
                [
                    { _ in [try Self.above(590)] },
                    { _ in [try Self.above(0)] },
                    { _ in throw Refused() },
                    { _ in [try Self.above(598), SnapshotSelection(try StoreFixture.shape("Reading"), where: "1 / (_id - 1) > 5")] },
                    { _ in [try Self.above(595)] },
                    { _ in [SnapshotSelection(try StoreFixture.shape("Reading"), where: "nowhere = 1")] },
                    { _ in [try Self.above(599)] },
                ])
            #expect(try results[0].get().keys == Set(591...600))
            #expect(try results[1].get().keys == Set(1...600))
            #expect(throws: Refused.self) { try results[2].get() }
            #expect(throws: SluiceError.self) { try results[3].get() }
            #expect(try results[4].get().keys == Set(596...600))
            #expect(throws: SluiceError.self) { try results[5].get() }
            #expect(try results[6].get().keys == [600])
        }
    }

    @Test func `outlive a column that changes under their prepared statements`() async throws {
        try await StoreFixture.with { fixture in
            let pool = PostgresPool(fixture.conninfo, size: 2)
            let store = PostgresSnapshotStore(pool: pool)
            _ = try await fixture.sql("INSERT INTO \"Reading\" SELECT g, 's', g FROM generate_series(1, 20) g")
            for type in ["double precision", "real", "double precision"] {
                _ = try await fixture.sql("ALTER TABLE \"Reading\" ALTER value TYPE \(type)")
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<100 {
                        group.addTask {
                            let read = try await Self.read(store) { _ in [try Self.above(number % 20)] }
                            #expect(read.keys == Set((Int64(number % 20) + 1)...20))
                        }
                    }
                    try await group.waitForAll()
                }
            }
            await pool.close()
        }
    }

    @Test func `stop their statement when nobody waits for it any more`() async throws {
        try await StoreFixture.with { fixture in
            let pool = PostgresPool(fixture.conninfo, size: 1)
            let store = PostgresSnapshotStore(pool: pool)
            let running =
                "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(6000)%' AND state = 'active' AND pid <> pg_backend_pid()"
            let reading = Task {  // Unstructured because: it is cancelled.
                try await Self.read(store) { _ in
                    [SnapshotSelection(try StoreFixture.shape("Store"), where: "(SELECT pg_sleep(6000)) IS NULL")]
                }
            }
            try #require(try await eventually { try await fixture.sql(running).int(0, 0) != 0 })
            reading.cancel()
            await #expect(throws: CancellationError.self) { try await reading.value }
            try #require(try await eventually { try await fixture.sql(running).int(0, 0) == 0 })
            #expect(try await Self.read(store) { _ in [try Self.above(0)] }.keys == [])
            await pool.close()
        }
    }
}
