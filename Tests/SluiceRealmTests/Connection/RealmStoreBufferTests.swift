import PortsTestSupport
import SluiceCore
import SluicePorts
import TestSupport
import Testing

@testable import SluiceRealm

@Suite(.timeLimit(.minutes(2))) struct `What waits for the store of client files` {
    private static let session = RealmFileSession(file: 2, number: 1)

    private static func entry(_ version: UInt64) -> RealmStreamEntry { RealmStoreScenario.entry(version) }

    /// A buffer over a store that records its calls.
    private struct Stage {
        let journal = Journal()
        let time = ManualTime()
        let buffer: RealmStoreBuffer

        init(bytes: Int = 1 << 20) {
            buffer = RealmStoreBuffer(
                JournalStore(journal: journal), environment: time, bounds: .init(delay: 500, bytes: bytes, width: 4))
        }

        func later(_ versions: UInt64...) throws {
            #expect(try buffer.appendLater(versions.map(entry), to: session))
        }

        func passDelay(_ times: Int = 1) async {
            await time.untilSleeping(milliseconds: 500, times: times)
            time.pass(milliseconds: 500)
        }
    }

    @Test func `is stored after the delay, without the entries that were confirmed meanwhile`() async throws {
        let stage = Stage()
        try stage.later(3, 4)
        try stage.later(5)
        async let recorded: Void = stage.buffer.recordSoon(RealmUploadProgress(clientVersion: 7, serverVersion: 4), of: Self.session)
        while stage.buffer.bytes > Self.entry(5).cost { await Task.yield() }
        #expect(stage.journal.rest == [])
        await stage.passDelay()
        try await recorded
        #expect(stage.journal.rest == ["append [5] to 2", "record 7"])
        #expect(stage.buffer.bytes == 0)
    }

    @Test func `of an entry that is confirmed in time is nothing`() async throws {
        let stage = Stage()
        try stage.later(3)
        async let recorded: Void = stage.buffer.recordSoon(RealmUploadProgress(clientVersion: 7, serverVersion: 3), of: Self.session)
        while stage.buffer.bytes > 0 { await Task.yield() }
        await stage.passDelay()
        try await recorded
        #expect(stage.journal.rest == ["record 7"])
    }

    @Test func `of an entry that is confirmed while an earlier confirmation waits is nothing`() async throws {
        let stage = Stage()
        try stage.later(3)
        async let recorded: Void = stage.buffer.recordSoon(RealmUploadProgress(clientVersion: 7, serverVersion: 3), of: Self.session)
        while stage.buffer.bytes > 0 { await Task.yield() }
        try stage.later(4, 5)
        stage.buffer.confirmed(upTo: 4, of: Self.session)
        #expect(stage.buffer.bytes == Self.entry(5).cost)
        await stage.passDelay()
        try await recorded
        #expect(stage.journal.rest == ["append [5] to 2", "record 7"])
    }

    @Test func `comes before every other call for the file`() async throws {
        let stage = Stage()
        try stage.later(3)
        try await stage.buffer.append([Self.entry(4)], to: Self.session)
        try stage.later(5)
        try await stage.buffer.keep(replica: [], ofView: 0, of: Self.session)
        try stage.later(6)
        try await stage.buffer.completeBootstrap(RealmClientRecord.View(queryVersion: 1, serverVersion: 6), of: Self.session)
        try stage.later(7)
        _ = try await stage.buffer.open(ConnectionFixture.file, user: "anna")
        #expect(
            stage.journal.rest == [
                "append [3] to 2", "append [4] to 2", "append [5] to 2", "keep", "append [6] to 2", "view 1 at 6", "append [7] to 2",
                "open 2",
            ])
    }

    @Test func `is dropped once the client has confirmed it with changesets`() async throws {
        let stage = Stage()
        try stage.later(3, 4)
        try await stage.buffer.record(RealmUploadProgress(clientVersion: 9, serverVersion: 3), of: Self.session)
        #expect(stage.journal.rest == ["append [4] to 2", "record 9"])
    }

    @Test func `has a bound, beyond which entries are stored at once`() async throws {
        let stage = Stage(bytes: Self.entry(3).cost + 1)
        try stage.later(3)
        try stage.later(4)
        #expect(try !stage.buffer.appendLater([Self.entry(5)], to: Self.session))
        await stage.buffer.storeAll()
        #expect(stage.journal.rest == ["append [3, 4] to 2"])
        try stage.later(5)
    }

    @Test func `and cannot be stored ends the session that gave it, and no other`() async throws {
        let stage = Stage()
        try stage.later(3)
        stage.journal.fail("append [3] to 2", SluiceError(.resync, "Opened again."))
        await stage.buffer.storeAll()
        let error = #expect(throws: SluiceError.self) { try stage.buffer.appendLater([Self.entry(4)], to: Self.session) }
        #expect(error?.code == .resync)
        let next = RealmFileSession(file: 2, number: 2)
        #expect(try stage.buffer.appendLater([Self.entry(4)], to: next))
        let old = #expect(throws: SluiceError.self) { try stage.buffer.appendLater([Self.entry(5)], to: Self.session) }
        #expect(old?.code == .resync)
        await stage.buffer.storeAll()
        #expect(stage.journal.rest == ["fail append [3] to 2", "append [4] to 2"])
    }

    @Test func `and cannot be stored fails those who wait for its confirmation`() async throws {
        let stage = Stage()
        stage.journal.fail("record 7", SluiceError(.internalError, "No store."))
        let error = await withTaskGroup(of: Void.self) { group in
            group.addTask { await stage.passDelay() }
            return await #expect(throws: SluiceError.self) {
                try await stage.buffer.recordSoon(RealmUploadProgress(clientVersion: 7, serverVersion: 4), of: Self.session)
            }
        }
        #expect(error?.message == "No store.")
    }

    @Test func `and cannot be stored keeps newer entries and states of its session out, which would hide the gap`() async throws {
        let stage = Stage()
        try stage.later(3)
        stage.journal.fail("append [3] to 2", SluiceError(.timeout, "No store."))
        await stage.buffer.storeAll()
        let progress = RealmUploadProgress(clientVersion: 7, serverVersion: 3)
        let calls: [@Sendable (RealmStoreBuffer) async throws -> Void] = [
            { try await $0.append([Self.entry(4)], to: Self.session) }, { try await $0.record(progress, of: Self.session) },
            { try await $0.recordSoon(progress, of: Self.session) },
            { try await $0.keep(replica: [], ofView: 0, of: Self.session) },
            { try await $0.keep(replica: [], ofView: 0, of: Self.session) },
        ]
        for call in calls {
            let error = await #expect(throws: SluiceError.self) { try await call(stage.buffer) }
            #expect(error?.code == .timeout)
        }
        #expect(stage.journal.rest == ["fail append [3] to 2"])
        _ = try await stage.buffer.open(ConnectionFixture.file, user: "anna")
        #expect(stage.journal.rest == ["fail append [3] to 2", "open 2"])
    }

    @Test func `is stored although the call behind it is cancelled`() async throws {
        let stage = Stage()
        try stage.later(3)
        stage.journal.hold("append [3] to 2")
        let record = Task { try await stage.buffer.record(RealmUploadProgress(clientVersion: 7, serverVersion: 2), of: Self.session) }
        let append = try #require(await stage.journal.held())
        record.cancel()
        append.answer()
        _ = await record.result
        #expect(stage.journal.rest.first == "append [3] to 2")
        try await stage.buffer.keep(replica: [], ofView: 0, of: Self.session)
        #expect(stage.journal.rest.last == "keep")
    }

    @Test func `and is stored before another call is given up after the deadline`() async throws {
        let stage = Stage()
        try stage.later(3)
        stage.journal.hold("append [3] to 2")
        let keep = Task { try await stage.buffer.keep(replica: [], ofView: 0, of: Self.session) }
        _ = try #require(await stage.journal.held())
        // The end of the connection does not end the wait, the deadline does.
        keep.cancel()
        await stage.time.untilSleeping(milliseconds: 30_000)
        stage.time.pass(milliseconds: 30_000)
        await #expect(throws: CancellationError.self) { try await keep.value }
        await #expect(throws: CancellationError.self) { try await stage.buffer.append([Self.entry(4)], to: Self.session) }
        #expect(stage.journal.rest == [])
    }

    @Test func `of one file does not wait for another's`() async throws {
        let stage = Stage()
        try stage.later(3)
        stage.journal.hold("append [3] to 2")
        async let first: Void = stage.buffer.storeAll()
        let append = try #require(await stage.journal.held())
        let other = RealmFileSession(file: 3, number: 1)
        #expect(try stage.buffer.appendLater([Self.entry(4)], to: other))
        try stage.later(5)
        await stage.buffer.storeAll()
        #expect(stage.journal.rest == ["append [4] to 3"])
        append.answer()
        await first
        await stage.buffer.storeAll()
        #expect(stage.journal.rest == ["append [4] to 3", "append [3] to 2", "append [5] to 2"])
    }

    @Test func `is given up after the deadline`() async throws {
        let stage = Stage()
        stage.journal.hold("record 7")
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                await stage.passDelay()
                _ = await stage.journal.held()
                await stage.time.untilSleeping(milliseconds: 30_000)
                stage.time.pass(milliseconds: 30_000)
            }
            await #expect(throws: CancellationError.self) {
                try await stage.buffer.recordSoon(RealmUploadProgress(clientVersion: 7, serverVersion: 4), of: Self.session)
            }
        }
    }

    @Test(arguments: seeds(8, soak: 200)) func `is in the end what it is without the buffer`(seed: UInt64) async throws {
        var random = SplitMix64(seed: seed)
        let (direct, inner) = (MemoryRealmClients(), MemoryRealmClients())
        let buffer = RealmStoreBuffer(inner, environment: ManualTime())
        let files = (try await direct.allot(user: "ann"), try await buffer.allot(user: "ann"))
        var version: UInt64 = 1
        for step in 0..<20 {
            let sessions = (try await direct.open(files.0, user: "ann").session, try await buffer.open(files.1, user: "ann").session)
            for _ in 0..<random.below(12) {
                version += 1 + UInt64(random.below(2))
                let progress = RealmUploadProgress(
                    clientVersion: UInt64(random.below(100)), serverVersion: version - UInt64(random.below(Int(min(version, 4)))))
                switch random.below(6) {
                case 0...2:
                    try await direct.append([Self.entry(version)], to: sessions.0)
                    #expect(try buffer.appendLater([Self.entry(version)], to: sessions.1))
                case 3:
                    try await direct.append([Self.entry(version)], to: sessions.0)
                    try await buffer.append([Self.entry(version)], to: sessions.1)
                default:
                    try await direct.record(progress, of: sessions.0)
                    try await buffer.record(progress, of: sessions.1)
                }
            }
            var wanted = try await direct.open(files.0, user: "ann")
            wanted.record.file = files.1
            #expect(try await buffer.open(files.1, user: "ann") == wanted, "seed \(seed), step \(step)")
        }
    }
}
