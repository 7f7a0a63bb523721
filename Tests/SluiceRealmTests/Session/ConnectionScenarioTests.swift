import SluiceCore
import SluicePorts
import Testing

@testable import SluiceRealm

private typealias Fixture = ConnectionFixture

@Suite struct `A connection of Realm's protocol` {
    private static let id = RealmSessionID(session: 1, generation: 1)

    // MARK: Opening

    @Test func `opens as a real client opens it`() {
        var fixture = Fixture()
        #expect(fixture.feed(Fixture.bind(needsFileIdent: true)) == ["allot"])
        #expect(fixture.feed(.allotted(Self.id, Fixture.file)) == ["ident 2"])
        #expect(fixture.feed(Fixture.ident()) == ["open 2"])
        #expect(fixture.feed(.mark(session: 1, request: 1)).isEmpty)
        #expect(
            fixture.feed(.opened(Self.id, Fixture.fresh(), newest: 2)) == ["store begin 0", "build 0 full schema", "catch 1"])
        #expect(fixture.feed(.caughtUp(Self.id, request: 1)).isEmpty)
        #expect(
            fixture.feed(.bootstrap(Self.id, Fixture.part(0, at: 2))) == ["store view 0 at 2", "last 2/0 ack 0 [2]", "mark 1"])
        #expect(fixture.feed(Fixture.upload([6], progress: 6, server: 2)) == ["integrate [6]"])
        #expect(fixture.feed(Fixture.query(1)) == ["store begin 1", "build 1"])
        #expect(fixture.feed(.mark(session: 1, request: 2)) == ["catch 2"])
        // During a bootstrap the acknowledgement waits.
        #expect(fixture.feed(.integrated(Self.id, RealmIntegratedUpload(clientVersion: 6, serverVersion: 3))).isEmpty)
        #expect(fixture.feed(.caughtUp(Self.id, request: 2)).isEmpty)
        let part = Fixture.part(1, at: 3, client: 6, [[.create(Fixture.task)]])
        #expect(
            fixture.feed(.bootstrap(Self.id, part)) == ["store view 1 at 3", "last 3/6 ack 6 [3]", "download 3/6 ack 6 []", "mark 2"])
        #expect(fixture.feed(.unbind(session: 1)) == ["unbound", "release"])
    }

    @Test func `refuses another schema version, a sub-server and one session too many`() {
        var fixture = Fixture(RealmConnectionSettings(version: 14, salt: 77, schemaVersion: 3, sessions: 2))
        let versions: [(UInt64, [String])] = [(1, ["error 225 ApplicationBug", "release nothing"]), (0, []), (3, [])]
        for (place, (version, actions)) in versions.enumerated() {
            let bind = RealmBind(session: UInt64(place + 1), needsFileIdent: false, schemaVersion: version)
            #expect(fixture.feed(.bind(bind)) == actions, "version \(version)")
        }
        #expect(fixture.feed(Fixture.bind(4)) == ["error 201 Transient", "release nothing"])
        // Refused sessions count until their UNBIND.
        #expect(fixture.feed(Fixture.bind(5)) == ["error 101 Transient", "release nothing", "release nothing", "close 1011"])
        var other = Fixture()
        let bind = RealmBind(session: 1, needsFileIdent: false, isSubserver: true)
        #expect(other.feed(.bind(bind)) == ["error 201 ApplicationBug", "release nothing"])
    }

    @Test func `refuses an identity that cannot be the client's`() {
        let allotted = RealmFileIdent(ident: 9, salt: 1)
        let cases: [(String, RealmClientMessage, String)] = [
            ("another file", Fixture.ident(), "error 208 ClientReset"),
            ("the server's file", Fixture.ident(file: RealmFileIdent(ident: 1, salt: 1)), "error 208 ClientReset"),
            ("no salt", Fixture.ident(file: RealmFileIdent(ident: 9, salt: 0)), "error 208 ClientReset"),
            ("another history", Fixture.ident(file: allotted, at: 4, salt: 78), "error 211 ClientReset"),
        ]
        for (name, ident, error) in cases {
            var fixture = Fixture()
            _ = fixture.feed(Fixture.bind(needsFileIdent: true))
            _ = fixture.feed(.allotted(Self.id, allotted))
            #expect(fixture.feed(ident) == [error, "release nothing"], "\(name)")
        }
    }

    @Test func `serves a file in one session only`() {
        var fixture = Fixture.steady()
        #expect(fixture.feed(Fixture.bind(2)).isEmpty)
        #expect(fixture.feed(Fixture.ident(2)) == ["error 201 Transient", "release nothing"])
        #expect(fixture.feed(.append(Self.id, [Fixture.entry(3)])) == ["download 3/0 ack 0 [3]"])
    }

    /// Two steady sessions, of which the first ends by an input.
    private static func ended(by input: RealmConnectionInput) -> (fixture: ConnectionFixture, actions: [String]) {
        var fixture = Fixture.steady()
        let other = RealmFileIdent(ident: 3, salt: 5)
        _ = fixture.feed(Fixture.bind(2))
        _ = fixture.feed(Fixture.ident(2, file: other))
        _ = fixture.feed(.opened(second, Fixture.fresh(other), newest: 2))
        _ = fixture.feed(.bootstrap(second, Fixture.part(0, at: 2)))
        let actions = fixture.feed(input)
        return (fixture, actions)
    }

    private static let second = RealmSessionID(session: 2, generation: 2)

    @Test(
        arguments: [
            (.received(.unbind(session: 1)), ["unbound", "release"], "error 106 Transient"),
            (.failed(id, SluiceError(.badClientFile, "no")), ["error 208 ClientReset", "release"], ""),
            (.replaced(id), ["error 201 Transient", "release"], ""),
        ] as [(RealmConnectionInput, [String], String)])
    func `continues a session when another one of the connection ends`(input: RealmConnectionInput, actions: [String], late: String) {
        var (fixture, ended) = Self.ended(by: input)
        #expect(ended == actions)
        // Answers for the ended session come late.
        #expect(fixture.feed(.append(Self.id, [Fixture.entry(3)])).isEmpty)
        #expect(fixture.feed(.append(Self.second, [Fixture.entry(3)])) == ["download 3/0 ack 0 [3]"])
        #expect(fixture.feed(.mark(session: 2, request: 1)) == ["catch 1"])
        #expect(fixture.feed(.caughtUp(Self.second, request: 1)) == ["mark 1"])
        var bound = fixture
        // The client of an ended session may not know of its end. Behind UNBIND it does.
        #expect(fixture.feed(.mark(session: 1, request: 1)).first ?? "" == late)
        guard late.isEmpty else {
            #expect(bound.feed(Fixture.bind()).isEmpty)
            #expect(bound.feed(Fixture.ident()) == ["open 2"])
            return
        }
        #expect(fixture.feed(.unbind(session: 1)).isEmpty)
        #expect(fixture.feed(.append(Self.second, [Fixture.entry(4)])) == ["download 4/0 ack 0 [4]"])
    }

    @Test func `ignores answers for a session of the same number that is over`() {
        var fixture = Fixture.steady()
        _ = fixture.feed(.unbind(session: 1))
        _ = fixture.feed(Fixture.bind())
        #expect(fixture.feed(.append(Self.id, [Fixture.entry(3)])).isEmpty)
        #expect(fixture.feed(.failed(Self.id, SluiceError(.timeout, "late"))).isEmpty)
        #expect(fixture.feed(Fixture.ident()) == ["open 2"])
    }

    // MARK: Resuming

    @Test func `sends unconfirmed changes again, with the notice of a compensating write before them`() {
        let (_, actions) = Fixture.resumed(at: 6)
        #expect(actions == ["error 231 Warning", "download 8/20 ack 20 [7, 8]"])
        #expect(Fixture.resumed(at: 7).actions == ["download 8/20 ack 20 [8]"])
        #expect(Fixture.resumed(at: 8).actions == ["download 8/20 ack 20 []"])
    }

    @Test func `bootstraps or resets a client that does not fit its stream`() {
        #expect(Fixture.resumed(at: 6, query: 2).actions == ["store begin 2", "build 2 full"])
        #expect(Fixture.resumed(at: 4).actions == ["error 208 ClientReset", "release"])
        #expect(Fixture.resumed(at: 10).actions == ["error 209 ClientReset", "release"])
    }

    @Test func `resets a client whose changes wait beyond a bound`() {
        var fixture = Fixture()
        _ = fixture.feed(Fixture.bind())
        _ = fixture.feed(Fixture.ident())
        let state = Fixture.state(RealmClientRecord(file: Fixture.file), [], bounds: ClientStreamBounds(entries: 1))
        _ = fixture.feed(.opened(Self.id, state, newest: 2))
        #expect(fixture.feed(.append(Self.id, [Fixture.entry(3)])).isEmpty)
        #expect(fixture.feed(.append(Self.id, [Fixture.entry(4)])) == ["store lose", "error 208 ClientReset", "release"])
    }

    // MARK: Uploads

    @Test func `acknowledges a changeset that comes again and does not apply it again`() {
        var (fixture, _) = Fixture.resumed(at: 8)
        #expect(fixture.feed(Fixture.upload([19, 20, 21], progress: 22, server: 8, base: 8)) == ["repeated [19, 20]", "integrate [21]"])
        #expect(fixture.feed(Fixture.upload([], progress: 23, server: 8)) == ["integrate []"])
        #expect(
            fixture.feed(.integrated(Self.id, RealmIntegratedUpload(clientVersion: 22, serverVersion: 9))) == ["download 9/22 ack 22 []"])
        #expect(
            fixture.feed(.integrated(Self.id, RealmIntegratedUpload(clientVersion: 23, serverVersion: 9))) == ["download 9/22 ack 23 []"])
    }

    @Test func `does not advance the client by the answer to an upload without changesets`() {
        var fixture = Fixture.steady()
        #expect(fixture.feed(.append(Self.id, [Fixture.entry(3)])) == ["download 3/0 ack 0 [3]"])
        #expect(fixture.feed(.advanced(Self.id, 5)).isEmpty)
        // A client confirms each newer server version by an upload, so a newer one here would go on for ever.
        #expect(fixture.feed(Fixture.upload([], progress: 7, server: 3)) == ["integrate []"])
        let first = RealmIntegratedUpload(clientVersion: 7, serverVersion: 5)
        #expect(fixture.feed(.integrated(Self.id, first)) == ["download 3/0 ack 7 []"])
        #expect(fixture.feed(Fixture.upload([8], progress: 8, server: 3, base: 3)) == ["integrate [8]"])
        let second = RealmIntegratedUpload(clientVersion: 8, serverVersion: 6)
        #expect(fixture.feed(.integrated(Self.id, second)) == ["download 6/8 ack 8 []"])
    }

    @Test func `answers uploads that took effect together once`() {
        var fixture = Fixture.steady()
        _ = fixture.feed(Fixture.upload([], progress: 7, server: 2))
        _ = fixture.feed(Fixture.upload([8], progress: 9, server: 2, base: 2))
        _ = fixture.feed(Fixture.upload([], progress: 10, server: 2))
        let both = RealmIntegratedUpload(clientVersion: 9, serverVersion: 4, uploads: 2)
        #expect(fixture.feed(.integrated(Self.id, both)) == ["download 4/9 ack 9 []"])
        let last = RealmIntegratedUpload(clientVersion: 10, serverVersion: 4)
        #expect(fixture.feed(.integrated(Self.id, last)) == ["download 4/9 ack 10 []"])
        _ = fixture.feed(Fixture.upload([], progress: 11, server: 4))
        let wrong = RealmIntegratedUpload(clientVersion: 12, serverVersion: 4)
        #expect(fixture.feed(.integrated(Self.id, wrong)) == ["defect", "error 208 ClientReset", "release nothing"])
    }

    @Test func `resets a client whose progress cannot be true`() {
        let uploads: [(String, RealmClientMessage, Int)] = [
            ("confirms the future", Fixture.upload([], progress: 21, server: 9), 209),
            ("based on the future", Fixture.upload([21], progress: 21, server: 8, base: 9), 209),
            ("beyond its progress", Fixture.upload([21], progress: 20, server: 8), 210),
            ("not in order", Fixture.upload([22, 21], progress: 25, server: 8), 210),
            ("twice", Fixture.upload([22, 22], progress: 25, server: 8), 210),
            ("version 0", Fixture.upload([0], progress: 25, server: 8), 210),
        ]
        for (name, upload, code) in uploads {
            var (fixture, _) = Fixture.resumed(at: 8)
            #expect(fixture.feed(upload) == ["error \(code) ClientReset", "release"], "\(name)")
        }
        var (fixture, _) = Fixture.resumed(at: 8)
        #expect(fixture.feed(Fixture.upload([21], progress: 21, server: 8)) == ["integrate [21]"])
        #expect(fixture.feed(Fixture.upload([], progress: 20, server: 8)) == ["error 210 ClientReset", "release"])
        var (other, _) = Fixture.resumed(at: 8)
        let foreign = RealmUploadEntry(clientVersion: 21, serverVersion: 8, timestamp: 0, origin: 3, changeset: [])
        let upload = RealmUploadMessage(
            session: 1, progress: RealmUploadProgress(clientVersion: 21, serverVersion: 8), entries: [foreign])
        #expect(other.feed(.upload(upload)) == ["error 216 ClientReset", "release"])
    }

    @Test func `stops reading while uploads under way are large, and closes beyond that`() {
        var fixture = Fixture.steady(RealmConnectionSettings(version: 14, salt: 77, uploadBytes: 1_000))
        #expect(fixture.feed(Fixture.upload([1], progress: 1, bytes: 500)) == ["integrate [1]"])
        #expect(fixture.feed(Fixture.upload([2], progress: 2, bytes: 500)) == ["integrate [2]", "pause"])
        #expect(fixture.feed(Fixture.upload([3], progress: 3, bytes: 200)) == ["integrate [3]"])
        #expect(
            fixture.feed(.integrated(Self.id, RealmIntegratedUpload(clientVersion: 1, serverVersion: 3))) == ["download 3/1 ack 1 []"])
        #expect(
            fixture.feed(.integrated(Self.id, RealmIntegratedUpload(clientVersion: 2, serverVersion: 4)))
                == ["download 4/2 ack 2 []", "resume"])
        #expect(
            fixture.feed(Fixture.upload([4], progress: 4, bytes: 5_000)) == ["error 101 Transient", "release", "close 1011"])
    }

    // MARK: Downloads

    @Test func `cuts changes into messages and lets only the last one pass its entries`() {
        var fixture = Fixture.steady(RealmConnectionSettings(version: 14, salt: 77, batchBytes: 100))
        _ = fixture.feed(Fixture.upload([5], progress: 5))
        _ = fixture.feed(.integrated(Self.id, RealmIntegratedUpload(clientVersion: 5, serverVersion: 3)))
        _ = fixture.feed(.advanced(Self.id, 9))
        let entries = [
            Fixture.entry(4, client: 2, bytes: 60), Fixture.entry(5, client: 3, bytes: 60), Fixture.entry(6, client: 4, bytes: 40),
            Fixture.entry(7, client: 5, bytes: 400),
        ]
        // An entry's client version may not go back behind the last message's, which is 5.
        #expect(fixture.feed(.append(Self.id, entries)).last == "release nothing")
        var other = Fixture.steady(RealmConnectionSettings(version: 14, salt: 77, batchBytes: 100))
        _ = other.feed(Fixture.upload([5], progress: 5))
        #expect(
            other.feed(.append(Self.id, [Fixture.entry(4, bytes: 60), Fixture.entry(5, bytes: 60), Fixture.entry(6, bytes: 40)]))
                == ["download 4/0 ack 0 [4]", "download 6/0 ack 0 [5, 6]"])
        #expect(
            other.feed(.integrated(Self.id, RealmIntegratedUpload(clientVersion: 5, serverVersion: 7))) == ["download 7/5 ack 5 []"])
        #expect(
            other.feed(.append(Self.id, [Fixture.entry(8, client: 5, bytes: 400), Fixture.entry(9, client: 5)]))
                == ["download 8/5 ack 5 [8]", "download 9/5 ack 5 [9]"])
    }

    @Test func `never sends what would stop the client`() {
        let title = OutgoingOperation.Path(object: Fixture.missing, property: "title")
        let tags = OutgoingOperation.Path(object: Fixture.task, property: "tags")
        let operations: [(String, OutgoingOperation)] = [
            ("a missing object", .update(title, .value)), ("an index", .set(tags, index: 0)), ("a class", .eraseTable("Task")),
            ("a property", .eraseColumn(table: "Task", name: "tags")),
        ]
        for (name, operation) in operations {
            var fixture = Fixture.steady()
            let actions = fixture.feed(.append(Self.id, [Fixture.entry(3, [operation])]))
            #expect(actions == ["defect", "error 208 ClientReset", "release nothing"], "\(name)")
            #expect(fixture.feed(.append(Self.id, [Fixture.entry(4)])).isEmpty, "\(name)")
            #expect(fixture.feed(.unbind(session: 1)).isEmpty, "\(name)")
        }
        var empty = Fixture.steady()
        _ = empty.feed(Fixture.query(1))
        #expect(
            empty.feed(.bootstrap(Self.id, Fixture.part(1, at: 3, []))) == ["defect", "error 208 ClientReset", "release nothing"])
        var late = Fixture.steady()
        #expect(late.feed(.append(Self.id, [Fixture.entry(2)])).first == "defect")
    }

    @Test func `knows the objects of a bootstrap and of the client's own changes`() {
        var fixture = Fixture.steady()
        _ = fixture.feed(Fixture.query(1))
        _ = fixture.feed(.bootstrap(Self.id, Fixture.part(1, at: 3, [[.create(Fixture.missing)]], isLast: false)))
        _ = fixture.feed(.bootstrap(Self.id, Fixture.part(1, at: 3, [[.erase(Fixture.task)]])))
        let title = OutgoingOperation.Path(object: Fixture.missing, property: "title")
        #expect(fixture.feed(.append(Self.id, [Fixture.entry(4, [.update(title, .value)])])) == ["download 4/0 ack 0 [4]"])
        _ = fixture.feed(Fixture.upload([5], progress: 5, server: 4))
        let result = RealmIntegratedUpload(
            clientVersion: 5, serverVersion: 5, operations: [.erase(Fixture.missing), .create(Fixture.task)])
        _ = fixture.feed(.integrated(Self.id, result))
        let own = OutgoingOperation.Path(object: Fixture.task, property: "title")
        #expect(fixture.feed(.append(Self.id, [Fixture.entry(6, client: 5, [.update(own, .value)])])) == ["download 6/5 ack 5 [6]"])
        #expect(fixture.feed(.append(Self.id, [Fixture.entry(7, client: 5, [.update(title, .value)])])).first == "defect")
    }
}
