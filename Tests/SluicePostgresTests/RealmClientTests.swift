import PortsTestSupport
import SluiceCore
import SluicePorts
import SluicePostgres
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct `Client files of Realm's protocol` {
    @Test(arguments: RealmStoreScenario.all) func `are stored as the port says`(scenario: RealmStoreScenario) async throws {
        try await StoreFixture.with { fixture in
            let store = PostgresRealmClients(pool: fixture.pool, bounds: RealmStoreScenario.bounds)
            let findings = try await scenario.findings(of: store)
            #expect(findings == [])
        }
    }

    @Test(arguments: seeds(4, soak: 40)) func `are stored as in memory, whatever is called`(seed: UInt64) async throws {
        try await StoreFixture.with { fixture in
            let bounds = ClientStreamBounds(entries: 12, bytes: 2_000, age: 2_000, compensations: 3)
            var expected = RealmStorePlay(MemoryRealmClients(bounds: bounds))
            var actual = RealmStorePlay(PostgresRealmClients(pool: fixture.pool, bounds: bounds))
            var steps = RealmStoreSteps(seed: seed)
            var (stored, number) = (0, 0)
            // Some draws open no file with entries for long.
            while number < 400 || (stored == 0 && number < 4_000) {
                number += 1
                let step = steps.next()
                let (wanted, found) = (try await expected.perform(step), try await actual.perform(step))
                try #require(found == wanted, "seed \(seed), step \(number): \(step)")
                if case .opened(let client) = found, !client.entries.isEmpty { stored += 1 }
            }
            #expect(stored > 0, "seed \(seed): no file with entries was opened")
            for file in expected.files.indices {
                let (wanted, found) = (try await expected.reopen(file: file), try await actual.reopen(file: file))
                #expect(found == wanted, "seed \(seed), file \(file)")
            }
            let wrong = try await fixture.sql(
                """
                SELECT f.id, f.entries, f.bytes, count(e.file), coalesce(sum(e.cost), 0)
                FROM sluice.realm_file AS f LEFT JOIN sluice.realm_entry AS e ON e.file = f.id AND NOT e.is_covered
                GROUP BY f.id HAVING f.entries <> count(e.file) OR f.bytes <> coalesce(sum(e.cost), 0)
                """)
            #expect(wrong.isEmpty, "seed \(seed): file \(wrong[0, 0] ?? ""), \(wrong[0, 1] ?? "") entries, \(wrong[0, 2] ?? "") bytes")
        }
    }

    @Test func `belong to the gateway that opened them last`() async throws {
        try await StoreFixture.with { fixture in
            let other = PostgresPool(fixture.conninfo, size: 1)
            let (first, second) = (PostgresRealmClients(pool: fixture.pool), PostgresRealmClients(pool: other))
            let file = try await first.allot(user: "ann")
            let old = try await first.open(file, user: "ann").session
            try await first.append([RealmStoreScenario.entry(1)], to: old)
            let new = try await second.open(file, user: "ann")
            #expect(new.entries == [RealmStoreScenario.entry(1)])
            let error = await #expect(throws: SluiceError.self) { try await first.append([RealmStoreScenario.entry(2)], to: old) }
            #expect(error?.code == .resync)
            try await second.record(RealmUploadProgress(clientVersion: 0, serverVersion: 1), of: new.session)
            #expect(try await first.open(file, user: "ann").entries.isEmpty)
            await other.close()
        }
    }

    @Test func `are opened with all that a running write of the session before stores`() async throws {
        try await StoreFixture.with { fixture in
            let store = PostgresRealmClients(pool: fixture.pool)
            let file = try await store.allot(user: "ann")
            let old = try await store.open(file, user: "ann").session
            let writer = try await PostgresConnection.connect(fixture.conninfo)
            try await writer.script(
                """
                BEGIN;
                SELECT FROM sluice.realm_file WHERE id = \(old.file) FOR NO KEY UPDATE;
                INSERT INTO sluice.realm_entry (file, server_version, client_version, origin, stamp, created, cost, changeset)
                VALUES (\(old.file), 1, 0, 1, 5, 0, 67, '\\x090909')
                """)
            async let opening = store.open(file, user: "ann")
            try await fixture.waitForBlocked("UPDATE sluice.realm_file%")
            try await writer.script("COMMIT")
            #expect(try await opening.entries == [RealmStoreScenario.entry(1)])
            await writer.close()
        }
    }

    @Test func `are written together for many sessions, and what one may not write fails alone`() async throws {
        try await StoreFixture.with { fixture in
            let store = PostgresRealmClients(pool: fixture.pool)
            var sessions: [RealmFileSession] = []
            var files: [RealmFileIdent] = []
            for _ in 0..<40 {
                files.append(try await store.allot(user: "ann"))
                sessions.append(try await store.open(files[files.count - 1], user: "ann").session)
            }
            // One is superseded, and one has a later entry already.
            _ = try await store.open(files[5], user: "ann")
            try await store.append([RealmStoreScenario.entry(9)], to: sessions[7])
            let appended = await Self.codes(sessions) { try await store.append([RealmStoreScenario.entry(1)], to: $0) }
            #expect(appended == [5: .resync, 7: .internalError])
            for (index, file) in files.enumerated() where index != 5 {
                let expected = [RealmStoreScenario.entry(index == 7 ? 9 : 1)]
                let stored = try await store.open(file, user: "ann")
                #expect(stored.entries == expected, "file \(index)")
                sessions[index] = stored.session
            }
            let progress = RealmUploadProgress(clientVersion: 3, serverVersion: 1)
            #expect(await Self.codes(sessions) { try await store.record(progress, of: $0) } == [5: .resync])
            for (index, file) in files.enumerated() where index != 5 {
                let stored = try await store.open(file, user: "ann")
                #expect(stored.record.upload == progress && stored.record.acknowledged == 1, "file \(index)")
                #expect(stored.entries.count == (index == 7 ? 1 : 0), "file \(index)")
            }
        }
    }

    /// Calls the body for all sessions at once, and returns the errors by index.
    private static func codes(
        _ sessions: [RealmFileSession], _ body: @escaping @Sendable (RealmFileSession) async throws -> Void
    ) async -> [Int: ErrorCode] {
        await withTaskGroup(of: (Int, ErrorCode?).self) { group in
            for (index, session) in sessions.enumerated() {
                group.addTask {
                    do {
                        try await body(session)
                        return (index, nil)
                    } catch {
                        return (index, (error as? SluiceError)?.code)
                    }
                }
            }
            return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
    }

    @Test func `that another transaction holds delay no others`() async throws {
        try await StoreFixture.with { fixture in
            let store = PostgresRealmClients(pool: fixture.pool)
            let (held, free) = (try await store.allot(user: "ann"), try await store.allot(user: "ann"))
            let (first, second) = (try await store.open(held, user: "ann").session, try await store.open(free, user: "ann").session)
            let writer = try await PostgresConnection.connect(fixture.conninfo)
            try await writer.script("BEGIN; SELECT FROM sluice.realm_file WHERE id = \(first.file) FOR NO KEY UPDATE")
            async let waiting: Void = store.append([RealmStoreScenario.entry(1)], to: first)
            try await fixture.waitForBlocked("%FOR NO KEY UPDATE%")
            try await store.append([RealmStoreScenario.entry(1)], to: second)
            try await store.record(RealmUploadProgress(clientVersion: 1, serverVersion: 1), of: second)
            try await writer.script("COMMIT")
            try await waiting
            #expect(try await store.open(held, user: "ann").entries == [RealmStoreScenario.entry(1)])
            await writer.close()
        }
    }

    @Test func `that are opened at once have one owner`() async throws {
        try await StoreFixture.with { fixture in
            let store = PostgresRealmClients(pool: fixture.pool)
            let file = try await store.allot(user: "ann")
            let sessions = try await withThrowingTaskGroup(of: RealmFileSession.self) { group in
                for _ in 0..<12 { group.addTask { try await store.open(file, user: "ann").session } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(Set(sessions.map(\.number)) == Set(1...12))
            for session in sessions where session.number < 12 {
                let error = await #expect(throws: SluiceError.self) { try await store.lose(session) }
                #expect(error?.code == .resync)
            }
            try await store.append([RealmStoreScenario.entry(1)], to: RealmFileSession(file: file.ident, number: 12))
        }
    }

    @Test func `that have been unused for too long are forgotten`() async throws {
        try await StoreFixture.with { fixture in
            let store = PostgresRealmClients(pool: fixture.pool)
            let (old, young) = (try await store.allot(user: "ann"), try await store.allot(user: "ann"))
            for file in [old, young] {
                let session = try await store.open(file, user: "ann").session
                try await store.append([RealmStoreScenario.entry(1)], to: session)
            }
            #expect(try await store.forget(unusedFor: 60) == 0)
            for (file, days) in [(old, 61), (young, 59)] {
                _ = try await fixture.sql(
                    "UPDATE sluice.realm_file SET seen_at = now() - make_interval(days => \(days)) WHERE id = \(file.ident)")
            }
            #expect(try await store.forget(unusedFor: 60) == 1)
            #expect(try await store.forget(unusedFor: 60) == 0)
            #expect(try await fixture.sql("SELECT file FROM sluice.realm_entry").column(0) == ["\(young.ident)"])
            let error = await #expect(throws: SluiceError.self) { _ = try await store.open(old, user: "ann") }
            #expect(error?.code == .badClientFile)
            // Opening counts as use.
            _ = try await store.open(young, user: "ann")
            #expect(try await store.forget(unusedFor: 1) == 0)
            let session = RealmFileSession(file: old.ident, number: 1)
            let gone = await #expect(throws: SluiceError.self) { try await store.append([RealmStoreScenario.entry(2)], to: session) }
            #expect(gone?.code == .badClientFile)
        }
    }

    @Test func `with an unreadable compensating write are an error of the gateway`() async throws {
        try await StoreFixture.with { fixture in
            let store = PostgresRealmClients(pool: fixture.pool)
            let file = try await store.allot(user: "ann")
            let session = try await store.open(file, user: "ann").session
            try await store.append([RealmStoreScenario.entry(1, undoes: true)], to: session)
            for bytes in ["\\x", "\\x7b7d", "\\xff"] {
                _ = try await fixture.sql("UPDATE sluice.realm_entry SET compensation = '\(bytes)'")
                let error = await #expect(throws: SluiceError.self) { _ = try await store.open(file, user: "ann") }
                #expect(error?.code == .internalError, "\(bytes)")
            }
        }
    }
}
