import RealmTestSupport
import SluiceCore
import SluicePorts
import Testing

@testable import SluiceRealm

private typealias Fixture = ConnectionFixture

@Suite(.timeLimit(.minutes(1))) struct `The end of a connection of Realm's protocol` {
    private static let calls = ["allot", "open 2", "views 2", "begin 0", "view 0 at 2", "append [3] to 2", "integrate 6", "newest"]
    /// The deadline of each call, and the number of sleeps of this duration up to it.
    private static let deadlines = [
        ("allot", 1_001, 1), ("open 2", 1_002, 1), ("views 2", 1_002, 1), ("begin 0", 1_003, 1), ("view 0 at 2", 1_003, 2),
        ("append [3] to 2", 1_003, 3), ("integrate 6", 1_005, 1), ("newest", 1_004, 2),
    ]

    /// Leads a connection to a call that is held.
    private static func reach(_ call: String, _ run: ConnectionRun, isStubborn: Bool = false) async throws -> HeldCall {
        run.journal.hold(call, isStubborn: isStubborn)
        try run.receive(Fixture.bind(needsFileIdent: call == "allot"))
        if call != "allot" { try run.receive(Fixture.ident()) }
        if !["allot", "open 2", "views 2", "begin 0"].contains(call) {
            let view = try #require(await run.views.next())
            view.yield(.part(Fixture.part(0, at: 2)))
            if call != "view 0 at 2" { _ = await run.journal.through("1: last 2/0 ack 0 [2]") }
            view.yield(.changes([Fixture.entry(3)]))
            if call == "integrate 6" { try run.receive(Fixture.upload([6], progress: 6, server: 2, base: 2)) }
            if call == "newest" { try run.receive(.mark(session: 1, request: 1)) }
        }
        let held = try #require(await run.journal.held())
        #expect(held.name == call)
        return held
    }

    @Test(arguments: calls) func `leaves nothing, in whichever call a disconnect comes`(call: String) async throws {
        let sent = try await Self.lines(of: call, isStubborn: false)
        #expect(!sent.contains { $0.contains("error") || $0.hasPrefix("close 1") }, "\(sent)")
    }

    @Test(arguments: calls) func `ignores an answer after the end`(call: String) async throws {
        let lines = try await Self.lines(of: call, isStubborn: true)
        // The call itself is recorded when it is answered; no message follows.
        let late = lines.filter { $0.contains("error") || $0.hasPrefix("1: mark") || $0.hasPrefix("1: last") || $0.contains("ack 6") }
        #expect(late.isEmpty)
    }

    /// Disconnects in a call, and returns the lines from then on.
    private static func lines(of call: String, isStubborn: Bool) async throws -> [String] {
        var journal: Journal?
        try await ConnectionRun.with { run in
            journal = run.journal
            let held = try await reach(call, run, isStubborn: isStubborn)
            if call == "integrate 6" || call == "newest" { _ = await run.journal.through("1: download 3/0 ack 0 [3]") }
            run.connection.end(.disconnected)
            guard isStubborn else { return }
            // The machine releases its sessions before the answer comes.
            while await !run.connection.machine.isClosed { await Task.yield() }
            held.answer()
        }
        return journal?.rest ?? []
    }

    @Test(arguments: deadlines)
    func `ends a session whose call takes too long`(call: String, milliseconds: Int, times: Int) async throws {
        try await ConnectionRun.with { run in
            _ = try await Self.reach(call, run)
            await run.time.untilSleeping(milliseconds: milliseconds, times: times)
            run.time.pass(milliseconds: milliseconds)
            _ = await run.journal.through("1: error 201 Transient")
        }
    }

    @Test func `ends a session whose view does not come`() async throws {
        try await ConnectionRun.with { run in
            let view = try await run.open()
            await run.time.untilSleeping(milliseconds: 1_004)
            view.yield(.part(Fixture.part(0, at: 2, isLast: false)))
            #expect(await run.journal.through("1: more 2/0 ack 0 [2]") == ["1: more 2/0 ack 0 [2]"])
            await run.time.untilSleeping(milliseconds: 1_004, times: 2)
            run.time.pass(milliseconds: 1_004)
            #expect(await run.journal.through("close view") == ["1: error 201 Transient", "close view"])
        }
    }

    @Test func `closes with 4001 when the token expires, and not at an earlier expiry that was replaced`() async throws {
        try await ConnectionRun.with { run in
            _ = try await run.steady()
            await run.connection.expires(at: 5_000)
            await run.time.untilSleeping(milliseconds: 5_000)
            await run.connection.expires(at: 9_000)
            await run.time.untilSleeping(milliseconds: 9_000)
            run.time.pass(milliseconds: 5_000)
            try run.receive(.ping(timestamp: 7, roundTrip: 0))
            #expect(await run.journal.through("0: pong") == ["0: pong"])
            run.time.pass(milliseconds: 4_000)
            #expect(await run.journal.through("close 4001") == ["close view", "close 4001"])
        }
    }

    @Test func `closes at once although a store is slow`() async throws {
        try await ConnectionRun.with { run in
            _ = try await Self.reach("view 0 at 2", run)
            run.connection.end(.userDisabled)
            #expect(await run.journal.through("close 4002").suffix(2) == ["close view", "close 4002"])
        }
    }

    @Test(arguments: [(RealmConnectionEnd.userDisabled, "close 4002"), (.shutDown, "close 1011"), (.tokenExpired, "close 4001")])
    func `closes with the code of its reason, once`(reason: RealmConnectionEnd, close: String) async throws {
        try await ConnectionRun.with { run in
            _ = try await run.steady()
            run.connection.end(reason)
            run.connection.end(.shutDown)
            #expect(await run.journal.through(close) == ["close view", close])
            try run.receive(.ping(timestamp: 7, roundTrip: 0))
        }
    }

    @Test func `shuts down when its owner's task is cancelled`() async throws {
        let run = ConnectionRun()
        let owner = Task { await run.connection.run() }  // Unstructured because: the test cancels it.
        _ = try await run.steady()
        owner.cancel()
        await owner.value
        #expect(run.journal.rest == ["close view", "close 1011"])
        #expect(await run.connection.taskCount == 0)
    }

    // MARK: The mailbox

    @Test func `closes when too many messages wait`() async throws {
        try await ConnectionRun.with(ConnectionRun.Setup(mailbox: RealmMailboxBounds(messages: 3))) { run in
            run.journal.hold("drain")
            try run.receive(.ping(timestamp: 1, roundTrip: 0))
            let drain = try #require(await run.journal.held())
            try run.receive(.ping(timestamp: 2, roundTrip: 0), .ping(timestamp: 3, roundTrip: 0))
            #expect(run.journal.rest.isEmpty)
            try run.receive(.ping(timestamp: 4, roundTrip: 0))
            #expect(await run.journal.through("close 1011") == ["0: error 101 Transient", "close 1011"])
            drain.answer()
        }
    }

    @Test func `stops reading while many bytes wait, and reads again`() async throws {
        let bytes = "ping 1 0\n".utf8.count
        try await ConnectionRun.with(ConnectionRun.Setup(mailbox: RealmMailboxBounds(bytes: 2 * bytes))) { run in
            run.journal.hold("drain")
            try run.receive(.ping(timestamp: 1, roundTrip: 0))
            let first = try #require(await run.journal.held())
            try run.receive(.ping(timestamp: 2, roundTrip: 0))
            #expect(run.journal.rest.isEmpty)
            try run.receive(.ping(timestamp: 3, roundTrip: 0))
            #expect(await run.journal.through("pause") == ["pause"])
            first.answer()
            try #require(await run.journal.held()).answer()
            // One of two messages that fit is left, which is half the bound.
            #expect(await run.journal.through("resume") == ["0: pong", "0: pong", "resume"])
            try #require(await run.journal.held()).answer()
            _ = await run.journal.through("0: pong")
        }
    }

    @Test func `keeps the models of files without a session, up to a bound`() throws {
        let models = RealmKeptModels(files: 2, objects: 3)
        func state(_ file: UInt64, objects: Int) -> RealmClientState {
            var state = Fixture.fresh(RealmFileIdent(ident: file, salt: 1))
            for key in 0..<objects { state.model.restore(OutgoingOperation.Object(table: "Task", key: [1, UInt8(key)])) }
            return state
        }
        func stored(_ file: UInt64, _ number: UInt64) -> StoredRealmClient {
            StoredRealmClient(record: RealmClientRecord(file: RealmFileIdent(ident: file, salt: 1)), sessionNumber: number)
        }
        models.keep(state(1, objects: 1), of: RealmFileSession(file: 1, number: 5))
        #expect(models.take(stored(1, 6))?.count == 1)
        #expect(models.take(stored(1, 6)) == nil)
        models.keep(state(1, objects: 1), of: RealmFileSession(file: 1, number: 5))
        // Another session was in between.
        #expect(models.take(stored(1, 7)) == nil)
        models.keep(state(1, objects: 1), of: RealmFileSession(file: 1, number: 5))
        models.keep(state(2, objects: 2), of: RealmFileSession(file: 2, number: 1))
        models.keep(state(3, objects: 1), of: RealmFileSession(file: 3, number: 1))
        #expect(models.count == 2 && models.take(stored(1, 6)) == nil)
        models.keep(state(4, objects: 4), of: RealmFileSession(file: 4, number: 1))
        #expect(models.take(stored(4, 2)) == nil)
        var entry = stored(2, 2)
        entry.entries = [Fixture.entry(3).entry]
        // The store has an entry that the model lacks.
        #expect(models.take(entry) == nil)
        // A changeset took effect while the session ended.
        models.keep(state(3, objects: 1), of: RealmFileSession(file: 3, number: 2))
        var changeset = stored(3, 3)
        changeset.record.upload.clientVersion = 7
        #expect(models.take(changeset) == nil)
    }
}
