import SluiceCore
import SluicePorts
import SluicePostgres
import Synchronization
import TestSupport
import Testing

/// Both kinds of client replicas, by their tables.
enum ReplicaKind: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case client = "sluice.client"
    case file = "sluice.realm_file"

    var testDescription: String { rawValue }

    func allot(_ user: String, _ bound: ReplicaBound, _ fixture: StoreFixture) async throws -> UInt64 {
        switch self {
        case .client: try await ClientStore(pool: fixture.pool, bound: bound).allot(user: user, secret: [1]).id.rawValue
        case .file: try await PostgresRealmClients(pool: fixture.pool, files: bound).allot(user: user).ident
        }
    }

    func recordUse(_ ids: [UInt64], _ fixture: StoreFixture) async throws {
        switch self {
        case .client: try await ClientStore(pool: fixture.pool).recordUse(of: ids.map { ClientID(rawValue: $0) })
        case .file: try await PostgresRealmClients(pool: fixture.pool).recordUse(of: ids)
        }
    }

    func deleteOrphans(_ fixture: StoreFixture) async throws -> Int {
        switch self {
        case .client: try await ClientStore(pool: fixture.pool).deleteOrphans()
        case .file: try await PostgresRealmClients(pool: fixture.pool).deleteOrphans()
        }
    }

    func age(_ id: UInt64, seconds: Int64, _ fixture: StoreFixture) async throws {
        _ = try await fixture.sql("UPDATE \(rawValue) SET seen_at = now() - make_interval(secs => \(seconds)) WHERE id = \(id)")
    }

    func ids(_ fixture: StoreFixture) async throws -> [UInt64] {
        try await fixture.sql("SELECT id FROM \(rawValue) ORDER BY id").column(0).compactMap { UInt64($0) }
    }
}

@Suite struct `The client replicas of a user` {
    @Test(arguments: ReplicaKind.allCases) func `give way at the bound, the least recently used one first`(kind: ReplicaKind) async throws {
        try await StoreFixture.with { fixture in
            let replaced = Mutex(0)
            let bound = ReplicaBound(most: 3, idleSeconds: 100, gaveWay: { count in replaced.withLock { $0 += count } })
            let other = try await kind.allot("bob", bound, fixture)
            var ids: [UInt64] = []
            for seconds in [300, 500, 400] as [Int64] {
                ids.append(try await kind.allot("ann", bound, fixture))
                try await kind.age(ids[ids.count - 1], seconds: seconds, fixture)
            }
            try await kind.age(other, seconds: 1_000, fixture)
            let fourth = try await kind.allot("ann", bound, fixture)
            #expect(try await kind.ids(fixture) == [other, ids[0], ids[2], fourth])
            // Bounds that were exceeded by concurrent calls, or by an earlier release, are restored.
            let smaller = ReplicaBound(most: 2, idleSeconds: 100, gaveWay: { count in replaced.withLock { $0 += count } })
            let fifth = try await kind.allot("ann", smaller, fixture)
            #expect(try await kind.ids(fixture) == [other, fourth, fifth])
            #expect(replaced.withLock { $0 } == 3)
        }
    }

    /// The attack of a user who registers replicas in a loop. It must not reset the user's other devices.
    @Test(arguments: ReplicaKind.allCases) func `do not give way while they are in use, and no further one is registered`(
        kind: ReplicaKind
    ) async throws {
        try await StoreFixture.with { fixture in
            let bound = ReplicaBound(most: 2, idleSeconds: 100)
            let ids = [try await kind.allot("ann", bound, fixture), try await kind.allot("ann", bound, fixture)]
            let error = await #expect(throws: SluiceError.self) { _ = try await kind.allot("ann", bound, fixture) }
            #expect(error?.code == .tooManyRequests && error?.message.contains("2 client replicas") == true, "\(String(describing: error))")
            #expect(try await kind.ids(fixture) == ids)
            _ = try await kind.allot("bob", bound, fixture)
            // The user is not locked out: a replica that is not used any more gives way.
            try await kind.age(ids[1], seconds: 101, fixture)
            let third = try await kind.allot("ann", bound, fixture)
            #expect(try await kind.ids(fixture).filter { $0 == third || ids.contains($0) } == [ids[0], third])
        }
    }

    @Test(arguments: ReplicaKind.allCases) func `that a running write holds do not give way`(kind: ReplicaKind) async throws {
        try await StoreFixture.with { fixture in
            let bound = ReplicaBound(most: 1, idleSeconds: 100)
            let id = try await kind.allot("ann", bound, fixture)
            try await kind.age(id, seconds: 200, fixture)
            let writer = try await PostgresConnection.connect(fixture.conninfo)
            try await writer.script("BEGIN; SELECT FROM \(kind.rawValue) WHERE id = \(id) FOR NO KEY UPDATE")
            let error = await #expect(throws: SluiceError.self) { _ = try await kind.allot("ann", bound, fixture) }
            #expect(error?.code == .tooManyRequests)
            try await writer.script("COMMIT")
            await writer.close()
            _ = try await kind.allot("ann", bound, fixture)
            #expect(try await kind.ids(fixture).contains(id) == false)
        }
    }

    @Test(arguments: ReplicaKind.allCases) func `that are connected stay in use`(kind: ReplicaKind) async throws {
        try await StoreFixture.with { fixture in
            let bound = ReplicaBound(most: 2)
            let ids = [try await kind.allot("ann", bound, fixture), try await kind.allot("ann", bound, fixture)]
            for id in ids { try await kind.age(id, seconds: 2 * Limits.replicaIdleSeconds, fixture) }
            try await kind.recordUse([ids[0], 1 << 40, .max], fixture)
            let third = try await kind.allot("ann", bound, fixture)
            #expect(try await kind.ids(fixture) == [ids[0], third])
            try await kind.recordUse([], fixture)
        }
    }

    @Test(arguments: ReplicaKind.allCases) func `go with their user`(kind: ReplicaKind) async throws {
        try await StoreFixture.with { fixture in
            try await UserStore(pool: fixture.pool).create(UserAccount(id: "ann", provider: "anon-user"))
            let (kept, gone, young) = (
                try await kind.allot("ann", ReplicaBound(), fixture), try await kind.allot("bob", ReplicaBound(), fixture),
                try await kind.allot("bob", ReplicaBound(), fixture)
            )
            for id in [kept, gone] { try await kind.age(id, seconds: 2 * Limits.replicaIdleSeconds, fixture) }
            #expect(try await kind.deleteOrphans(fixture) == 1)
            // One in use may have a session that is about to end.
            #expect(try await kind.ids(fixture) == [kept, young])
        }
    }
}

@Suite struct `Rejected writes that no client acknowledges` {
    private static func insert(_ client: ClientID, _ count: Int, values: String = "{}", _ fixture: StoreFixture) async throws {
        _ = try await fixture.sql(
            """
            INSERT INTO sluice.rejected_write (compensation, client, changeset, type, key, key_value, code, reason, values)
            SELECT n, \(client.rawValue), 1, 'Item', n, '1', 231, 'refused', '\(values)' FROM generate_series(1, \(count)) AS n
            """)
    }

    private static func count(_ fixture: StoreFixture, _ condition: String = "true") async throws -> Int64? {
        try await fixture.sql("SELECT count(*) FROM sluice.rejected_write WHERE \(condition)").int(0, 0)
    }

    /// The attack of a user who writes what the rules reject and never acknowledges it.
    @Test func `cost the client with the most of them its replica, and then go`() async throws {
        try await StoreFixture.with { fixture in
            let (clients, writes) = (ClientStore(pool: fixture.pool), WriteRejectionStore(pool: fixture.pool))
            let (honest, attacker) = (
                try await clients.allot(user: "ann", secret: [1]).id, try await clients.allot(user: "eve", secret: [1]).id
            )
            try await Self.insert(honest, 5, fixture)
            try await Self.insert(attacker, 30, fixture)
            #expect(try await writes.prune(keeping: 10) == 0)
            #expect(try await writes.deleteLargest(keeping: 35) == false)
            #expect(try await writes.deleteLargest(keeping: 10))
            #expect(try await writes.deleteLargest(keeping: 10) == false)
            #expect(try await fixture.sql("SELECT id FROM sluice.client").column(0) == ["\(honest)"])
            #expect(try await writes.prune(keeping: 10) == 20)
            #expect(try await Self.count(fixture, "client = \(honest)") == 5)
        }
    }

    @Test func `lose their values, the oldest first, beyond the bound of all values`() async throws {
        try await StoreFixture.with { fixture in
            let (clients, writes) = (ClientStore(pool: fixture.pool), WriteRejectionStore(pool: fixture.pool))
            let client = try await clients.allot(user: "eve", secret: [1]).id
            let text = String(repeating: "x", count: 80)
            try await Self.insert(client, 100, values: "{\"text\": \"\(text)\"}", fixture)
            let size = try #require(try await fixture.sql("SELECT min(pg_column_size(values)) FROM sluice.rejected_write").int(0, 0))
            #expect(try await writes.dropValues(keeping: 1 << 30) == 0)
            #expect(try await writes.dropValues(keeping: Int(size) * 40) == 60)
            #expect(try await writes.dropValues(keeping: Int(size) * 40) == 0)
            let newest = "id > (SELECT max(id) - 40 FROM sluice.rejected_write)"
            #expect(try await Self.count(fixture, "values <> '{}' AND rule IS NULL AND \(newest)") == 40)
            #expect(try await Self.count(fixture, "values = '{}' AND rule = '; the values are not kept'") == 60)
        }
    }
}
