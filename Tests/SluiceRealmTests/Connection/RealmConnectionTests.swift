import SluiceCore
import SluicePorts
import Testing

@testable import SluiceRealm

private typealias Fixture = ConnectionFixture

@Suite(.timeLimit(.minutes(1))) struct `A running connection of Realm's protocol` {
    private static let lost = SluiceError(.postgresUnreachable, "Away.")

    // MARK: Order

    @Test func `opens a new client, and answers its mark behind the bootstrap`() async throws {
        try await ConnectionRun.with { run in
            try run.receive(Fixture.bind(needsFileIdent: true))
            #expect(await run.journal.through("1: ident 2") == ["allot", "1: ident 2"])
            try run.receive(Fixture.ident())
            _ = await run.journal.through("build 0 full schema")
            let view = try #require(await run.views.next())
            try run.receive(.mark(session: 1, request: 1))
            _ = await run.journal.through("newest")
            view.yield(.part(Fixture.part(0, at: 2)))
            #expect(await run.journal.through("1: mark 1") == ["view 0 at 2", "1: last 2/0 ack 0 [2]", "1: mark 1"])
            try run.receive(.unbind(session: 1))
            #expect(await run.journal.through("close view") == ["1: unbound", "close view"])
        }
    }

    @Test func `sends a bootstrap and a change once they are stored`() async throws {
        try await ConnectionRun.with { run in
            let view = try await run.open()
            run.journal.hold("view 0 at 2")
            view.yield(.part(Fixture.part(0, at: 2)))
            let complete = try #require(await run.journal.held())
            #expect(run.journal.rest.isEmpty)
            complete.answer()
            #expect(await run.journal.through("1: last 2/0 ack 0 [2]") == ["view 0 at 2", "1: last 2/0 ack 0 [2]"])
            run.journal.hold("append [3] to 2")
            view.yield(.changes([Fixture.entry(3)]))
            view.yield(.changes([Fixture.entry(4)]))
            let append = try #require(await run.journal.held())
            #expect(run.journal.rest.isEmpty)
            append.answer()
            #expect(
                await run.journal.through("1: download 4/0 ack 0 [4]") == [
                    "append [3] to 2", "1: download 3/0 ack 0 [3]", "append [4] to 2", "1: download 4/0 ack 0 [4]",
                ])
        }
    }

    /// A part that is encoded outside of the connection's actor.
    private static func large(at version: UInt64, isLast: Bool) -> RealmBootstrapPart {
        var part = Fixture.part(0, at: version, isLast: isLast)
        part.entries[0].entry.changeset = [UInt8](repeating: 7, count: 300 << 10)
        return part
    }

    @Test func `sends all in order, also if large parts are encoded beside a store`() async throws {
        try await ConnectionRun.with { run in
            let view = try await run.open()
            run.journal.hold("view 0 at 2")
            view.yield(.part(Self.large(at: 2, isLast: false)))
            view.yield(.part(Self.large(at: 2, isLast: false)))
            view.yield(.part(Self.large(at: 2, isLast: true)))
            view.yield(.changes([Fixture.entry(3)]))
            let complete = try #require(await run.journal.held())
            complete.answer()
            let calls = await run.journal.through("1: download 3/0 ack 0 [3]")
            let sent = ["1: more 2/0 ack 0 [2]", "1: more 2/0 ack 0 [2]", "1: last 2/0 ack 0 [2]", "1: download 3/0 ack 0 [3]"]
            #expect(calls.filter { $0.hasPrefix("1:") } == sent)
            // What follows may be stored while a part is encoded, but no part is sent before its store.
            for (store, message) in [("view 0 at 2", sent[2]), ("append [3] to 2", sent[3])] {
                #expect(try #require(calls.firstIndex(of: store)) < #require(calls.firstIndex(of: message)))
            }
            view.yield(.part(Self.large(at: 9, isLast: true)))
            try run.receive(.ping(timestamp: 7, roundTrip: 0))
            _ = await run.journal.through("0: pong")
        }
    }

    @Test func `acknowledges an upload behind the changes up to its version, and ahead of those made after it`() async throws {
        let rejected = [RealmRejectedUpdate(reason: "no", table: "Task", key: [1, 5])]
        let setup = ConnectionRun.Setup(versions: [6: 4], rejected: rejected)
        try await ConnectionRun.with(setup) { run in
            let view = try await run.steady()
            run.journal.hold("integrate 6")
            try run.receive(Fixture.upload([6], progress: 6, server: 2, base: 2))
            let upload = try #require(await run.journal.held())
            // The second one was made after the upload, and puts an object back.
            view.yield(.changes([Fixture.entry(3), Fixture.entry(5, client: 6, undoes: true)]))
            #expect(await run.journal.through("1: download 3/0 ack 0 [3]") == ["append [3] to 2", "1: download 3/0 ack 0 [3]"])
            #expect(run.journal.rest.isEmpty)
            upload.answer()
            #expect(
                await run.journal.through("1: download 5/6 ack 6 [5]") == [
                    "integrate 6", "record 6", "1: download 4/6 ack 6 []", "append [5] to 2", "1: error 231 Warning",
                    "1: download 5/6 ack 6 [5]",
                ])
            #expect(run.observer.counts.uploads == [1])
        }
    }

    @Test func `is settled for a gateway that ends once the uploads that it has received are acknowledged`() async throws {
        try await ConnectionRun.with { run in
            _ = try await run.steady()
            // Nothing waits for an answer.
            await run.connection.settled()
            run.journal.hold("integrate 6")
            try run.receive(Fixture.upload([6], progress: 6, server: 2, base: 2))
            let upload = try #require(await run.journal.held())
            let (connection, journal) = (run.connection, run.journal)
            let waiting = Task.immediate {  // Unstructured because: it is awaited here.
                await connection.settled()
                journal.add("settled")
            }
            upload.answer()
            let lines = await run.journal.through("settled")
            #expect(lines.contains { $0.contains("ack 6") }, "\(lines)")
            await waiting.value
        }
    }

    @Test func `applies uploads that wait as one, up to the next view`() async throws {
        try await ConnectionRun.with { run in
            _ = try await run.steady()
            run.journal.hold("integrate 6")
            try run.receive(Fixture.upload([6], progress: 6, server: 2, base: 2))
            let upload = try #require(await run.journal.held())
            try run.receive(
                Fixture.upload([], progress: 7, server: 2), Fixture.upload([], progress: 8, server: 2),
                Fixture.upload([9], progress: 9, server: 2, base: 2), Fixture.upload([10], progress: 10, server: 2, base: 2),
                Fixture.query(1), Fixture.upload([], progress: 11, server: 2), Fixture.upload([], progress: 12, server: 2))
            // Its answer shows that the uploads before it wait.
            try run.receive(.ping(timestamp: 1, roundTrip: 0))
            _ = await run.journal.through("0: pong")
            upload.answer()
            #expect(
                await run.journal.through("record 12") == [
                    "integrate 6", "record 6", "integrate 10", "record 10", "integrate 12", "record 12",
                ])
        }
    }

    @Test func `waits with the acknowledgement until the view has reached the upload's version`() async throws {
        try await ConnectionRun.with(ConnectionRun.Setup(versions: [6: 5])) { run in
            let view = try await run.steady()
            try run.receive(Fixture.upload([6], progress: 6, server: 2, base: 2))
            #expect(await run.journal.through("record 6") == ["integrate 6", "record 6"])
            view.yield(.changes([Fixture.entry(4)]))
            #expect(await run.journal.through("1: download 4/0 ack 0 [4]") == ["append [4] to 2", "1: download 4/0 ack 0 [4]"])
            view.yield(.advanced(5))
            #expect(await run.journal.through("1: download 5/6 ack 6 []") == ["1: download 5/6 ack 6 []"])
        }
    }

    @Test func `gives a bootstrap the uploads that it covers`() async throws {
        try await ConnectionRun.with(ConnectionRun.Setup(versions: [6: 4])) { run in
            let view = try await run.steady()
            try run.receive(Fixture.query(1), Fixture.upload([6], progress: 6, server: 2, base: 2))
            #expect(await run.journal.through("record 6") == ["begin 1", "build 1", "integrate 6", "record 6"])
            view.yield(.part(Fixture.part(1, at: 4, client: 6)))
            #expect(
                await run.journal.through("1: download 4/6 ack 6 []") == [
                    "view 1 at 4", "1: last 4/6 ack 6 [4]", "1: download 4/6 ack 6 []",
                ])
        }
    }

    // MARK: Views

    @Test func `ends the building of a view that a newer set supersedes, and ignores its parts`() async throws {
        try await ConnectionRun.with { run in
            let view = try await run.steady()
            try run.receive(Fixture.query(1), Fixture.query(2))
            #expect(await run.journal.through("build 2") == ["begin 1", "build 1", "supersede 1", "begin 2", "build 2"])
            view.yield(.part(Fixture.part(1, at: 3)))
            #expect(await run.journal.through("supersede 1") == ["supersede 1"])
            view.yield(.part(Fixture.part(2, at: 3)))
            #expect(await run.journal.through("1: last 3/0 ack 0 [3]") == ["view 2 at 3", "1: last 3/0 ack 0 [3]"])
        }
    }

    @Test func `keeps the view before a refused set`() async throws {
        try await ConnectionRun.with { run in
            let view = try await run.steady()
            try run.receive(Fixture.query(1))
            _ = await run.journal.through("build 1")
            view.yield(.refused(queryVersion: 1, "no"))
            #expect(await run.journal.through("cancel") == ["1: query error 1", "cancel"])
            view.yield(.changes([Fixture.entry(3)]))
            #expect(await run.journal.through("1: download 3/0 ack 0 [3]").count == 2)
        }
    }

    @Test func `continues a known file without a new view, with the objects that the client holds`() async throws {
        var record = RealmClientRecord(file: Fixture.file)
        record.view = RealmClientRecord.View(queryVersion: 1, serverVersion: 5)
        record.upload = RealmUploadProgress(clientVersion: 20, serverVersion: 5)
        let setup = ConnectionRun.Setup(record: record, entries: [Fixture.entry(7, client: 20).entry], newest: 9)
        try await ConnectionRun.with(setup) { run in
            try run.receive(Fixture.bind(), Fixture.ident(at: 6, client: 20, query: 1))
            #expect(
                await run.journal.through("1: download 7/20 ack 20 [7]") == [
                    "open 2", "views 2", "1: download 7/20 ack 20 [7]",
                ])
            let view = try #require(await run.views.next())
            let title = OutgoingOperation.Path(object: Fixture.task, property: "title")
            view.yield(.changes([Fixture.entry(8, client: 20, [.update(title, .value)])]))
            #expect(await run.journal.through("1: download 8/20 ack 20 [8]") == ["append [8] to 2", "1: download 8/20 ack 20 [8]"])
        }
    }

    @Test func `serves two sessions, of which one fails`() async throws {
        try await ConnectionRun.with { run in
            let view = try await run.steady()
            try run.receive(Fixture.bind(2), Fixture.ident(2, file: RealmFileIdent(ident: 3, salt: 5)))
            #expect(await run.journal.through("build 0 full schema") == ["open 3", "views 3", "begin 0", "build 0 full schema"])
            let second = try #require(await run.views.next())
            #expect(run.observer.counts.sessions == 2)
            run.journal.fail("append [3] to 2", Self.lost)
            view.yield(.changes([Fixture.entry(3)]))
            #expect(
                await run.journal.through("close view") == ["fail append [3] to 2", "1: error 201 Transient", "close view"])
            second.yield(.part(Fixture.part(0, at: 2)))
            #expect(await run.journal.through("2: last 2/0 ack 0 [2]") == ["view 0 at 2", "2: last 2/0 ack 0 [2]"])
            #expect(run.observer.counts.sessions == 1)
            try run.receive(.unbind(session: 1), .unbind(session: 2))
            #expect(await run.journal.through("close view") == ["2: unbound", "close view"])
        }
    }

    @Test func `ignores the result of an upload whose session is over, also in a session of the same number`() async throws {
        try await ConnectionRun.with { run in
            _ = try await run.steady()
            run.journal.hold("integrate 6", isStubborn: true)
            try run.receive(Fixture.upload([6], progress: 6, server: 2, base: 2))
            let upload = try #require(await run.journal.held())
            try run.receive(.unbind(session: 1))
            #expect(await run.journal.through("close view") == ["1: unbound", "close view"])
            let second = try await run.open()
            upload.answer()
            _ = await run.journal.through("integrate 6")
            second.yield(.part(Fixture.part(0, at: 2)))
            #expect(await run.journal.through("1: last 2/0 ack 0 [2]") == ["view 0 at 2", "1: last 2/0 ack 0 [2]"])
            #expect(run.observer.counts.uploads.isEmpty)
        }
    }

    /// The upload waits in the views for the end of a bootstrap, whose slices a slow client takes one by one.
    @Test func `does not give up an upload while a bootstrap has parts or the client reads`() async throws {
        try await ConnectionRun.with { run in
            let view = try await run.steady()
            try run.receive(Fixture.query(1))
            _ = await run.journal.through("build 1")
            run.journal.hold("integrate 6")
            try run.receive(Fixture.upload([6], progress: 6, server: 2, base: 2))
            _ = await run.journal.held()
            await run.time.untilSleeping(milliseconds: 1_005)
            run.journal.hold("drain")
            view.yield(.part(Fixture.part(1, at: 3, isLast: false)))
            let drain = try #require(await run.journal.held())
            // A part has come, and later the client still reads.
            for times in 2...3 {
                run.time.pass(milliseconds: 1_005)
                await run.time.untilSleeping(milliseconds: 1_005, times: times)
            }
            drain.answer()
            view.yield(.part(Fixture.part(1, at: 3)))
            try #require(await run.journal.held()).answer()
            _ = await run.journal.through("1: last 3/0 ack 0 [3]")
            run.time.pass(milliseconds: 1_005)
            await run.time.untilSleeping(milliseconds: 1_005, times: 4)
            // Other events count for nothing: the ingest may hold the upload for ever.
            view.yield(.advanced(4))
            try #require(await run.journal.held()).answer()
            while await run.connection.sessionCounts.draining > 0 { await Task.yield() }
            run.time.pass(milliseconds: 1_005)
            #expect(await run.journal.through("close view").contains("1: error 201 Transient"))
        }
    }

    @Test func `stops the views of a client that does not read`() async throws {
        try await ConnectionRun.with { run in
            let view = try await run.steady()
            run.journal.hold("drain")
            view.yield(.changes([Fixture.entry(3)]))
            let drain = try #require(await run.journal.held())
            #expect(run.journal.rest.isEmpty)
            drain.answer()
            #expect(await run.journal.through("1: download 3/0 ack 0 [3]") == ["append [3] to 2", "1: download 3/0 ack 0 [3]"])
        }
    }

    @Test func `answers a confirmation once its progress is stored, without an upload`() async throws {
        try await ConnectionRun.with(ConnectionRun.Setup(confirms: true)) { run in
            let view = try await run.steady()
            view.yield(.changes([Fixture.entry(3)]))
            _ = await run.journal.through("1: download 3/0 ack 0 [3]")
            run.journal.hold("record 1")
            try run.receive(Fixture.upload([], progress: 1, server: 3))
            let record = try #require(await run.journal.held())
            #expect(run.journal.rest == ["confirm 3", "drop 3"])
            record.answer()
            #expect(await run.journal.through("1: download 3/0 ack 1 []").suffix(2) == ["record 1", "1: download 3/0 ack 1 []"])
        }
    }

    @Test func `drops the entries of a confirmation while an earlier one is being stored`() async throws {
        try await ConnectionRun.with(ConnectionRun.Setup(confirms: true)) { run in
            let view = try await run.steady()
            view.yield(.changes([Fixture.entry(3), Fixture.entry(4)]))
            _ = await run.journal.through("1: download 4/0 ack 0 [3, 4]")
            run.journal.hold("record 1")
            try run.receive(Fixture.upload([], progress: 1, server: 3))
            let record = try #require(await run.journal.held())
            try run.receive(Fixture.upload([], progress: 1, server: 4))
            #expect(await run.journal.through("drop 4") == ["confirm 3", "drop 3", "confirm 4", "drop 4"])
            record.answer()
        }
    }

    @Test func `answers confirmations with the changesets behind them`() async throws {
        try await ConnectionRun.with(ConnectionRun.Setup(versions: [3: 4], confirms: true)) { run in
            let view = try await run.steady()
            run.journal.hold("record 1")
            try run.receive(Fixture.upload([], progress: 1, server: 2))
            let record = try #require(await run.journal.held())
            try run.receive(Fixture.upload([], progress: 2, server: 2), Fixture.upload([3], progress: 3, server: 2, base: 2))
            _ = await run.journal.through("record 3")
            view.yield(.advanced(4))
            #expect(await run.journal.through("1: download 4/3 ack 3 []").last == "1: download 4/3 ack 3 []")
            // Its answer would be the second one for the same uploads.
            record.answer()
            view.yield(.changes([Fixture.entry(5, client: 3)]))
            #expect(
                await run.journal.through("1: download 5/3 ack 3 [5]").filter { $0.contains("download") || $0.contains("error") }
                    == ["1: download 5/3 ack 3 [5]"])
        }
    }

    @Test func `stops reading while large uploads are under way, and reads again`() async throws {
        let setup = ConnectionRun.Setup(settings: RealmConnectionSettings(version: 14, salt: 77, uploadBytes: 1_000))
        try await ConnectionRun.with(setup) { run in
            _ = try await run.steady()
            run.journal.hold("integrate 1")
            try run.receive(Fixture.upload([1], progress: 1, server: 2, base: 2, bytes: 500))
            let first = try #require(await run.journal.held())
            try run.receive(Fixture.upload([2], progress: 2, server: 2, base: 2, bytes: 500))
            #expect(await run.journal.through("pause") == ["pause"])
            first.answer()
            #expect(
                await run.journal.through("resume") == [
                    "integrate 1", "record 1", "1: download 2/1 ack 1 []", "integrate 2", "record 2", "1: download 2/2 ack 2 []", "resume",
                ])
        }
    }

    // MARK: Failures

    @Test func `sends nothing that depends on a store that failed`() async throws {
        try await ConnectionRun.with { run in
            let view = try await run.open()
            run.journal.fail("view 0 at 2", Self.lost)
            view.yield(.part(Fixture.part(0, at: 2)))
            #expect(await run.journal.through("close view") == ["fail view 0 at 2", "1: error 201 Transient", "close view"])
            #expect(run.observer.counts.errors == [.otherSessionError])
        }
    }

    @Test(arguments: [
        ("allot", ErrorCode.postgresUnreachable, "error 201 Transient"), ("open 2", .badClientFile, "error 208 ClientReset"),
        ("open 2", .userMismatch, "error 223 LogOutUser"), ("open 2", .postgresUnreachable, "error 201 Transient"),
        ("views 2", .logUnreachable, "error 201 Transient"), ("begin 0", .postgresStatement, "error 201 Transient"),
        // The file was opened again: no reset.
        ("begin 0", .resync, "error 201 Transient"),
    ])
    func `answers a failure with the error for it`(call: String, code: ErrorCode, error: String) async throws {
        try await ConnectionRun.with { run in
            run.journal.fail(call, SluiceError(code, "No."))
            try run.receive(Fixture.bind(needsFileIdent: call == "allot"))
            if call != "allot" { try run.receive(Fixture.ident()) }
            _ = await run.journal.through("fail \(call)")
            #expect(await run.journal.through("1: \(error)") == ["1: \(error)"])
        }
    }

    @Test(arguments: [("append [3] to 2", false), ("integrate 6", true)])
    func `leaves a file that another connection has opened`(call: String, isUpload: Bool) async throws {
        try await ConnectionRun.with { run in
            let view = try await run.steady()
            run.journal.fail(call, SluiceError(.resync, "The file was opened again."))
            if isUpload {
                try run.receive(Fixture.upload([6], progress: 6, server: 2, base: 2))
            } else {
                view.yield(.changes([Fixture.entry(3)]))
            }
            #expect(await run.journal.through("close view") == ["fail \(call)", "1: error 201 Transient", "close view"])
        }
    }

    @Test func `counts a message that would stop the client, and withholds it`() async throws {
        try await ConnectionRun.with { run in
            let view = try await run.steady()
            let title = OutgoingOperation.Path(object: Fixture.missing, property: "title")
            view.yield(.changes([Fixture.entry(3, [.update(title, .value)])]))
            #expect(
                await run.journal.through("close view") == ["append [3] to 2", "1: error 208 ClientReset", "close view"])
            #expect(run.observer.counts.defects == 1)
        }
    }

    @Test func `closes behind a message that cannot be read`() async throws {
        try await ConnectionRun.with { run in
            _ = try await run.steady()
            run.connection.received(Array("nonsense\n".utf8))
            #expect(await run.journal.through("close 1011") == ["0: error 102 Transient", "close view", "close 1011"])
        }
    }

    @Test func `counts messages and bytes by direction`() async throws {
        try await ConnectionRun.with { run in
            try run.receive(.ping(timestamp: 7, roundTrip: 0))
            _ = await run.journal.through("0: pong")
            let counts = run.observer.counts
            #expect((counts.received, counts.sent) == (1, 1))
            #expect((counts.bytesIn, counts.bytesOut) == ("ping 7 0\n".utf8.count, "pong 7\n".utf8.count))
        }
    }
}
