import SluiceCore
import SluicePorts
import TestSupport
import Testing

@testable import SluiceRealm

/// A client that sends any message at any time, and a caller that answers in any order.
private struct HostileWalk {
    private static let settings = RealmConnectionSettings(version: 14, salt: 77, sessions: 2, uploadBytes: 4_000)

    var samples: MessageSamples
    var machine = RealmConnectionMachine(settings)
    var fault: String?
    /// Sessions that ended with an error, and those that are bound.
    var ended: Set<UInt64> = []
    var ids: [RealmSessionID] = []
    var requests: [RealmConnectionAction] = []
    /// The last number that the client used. All its numbers increase.
    var counter: UInt64 = 0
    var (views, errors, closes) = (0, 0, 0)

    init(seed: UInt64) { samples = MessageSamples(seed: seed) }

    mutating func expect(_ holds: Bool, _ what: String) { if !holds, fault == nil { fault = what } }

    mutating func feed(_ input: RealmConnectionInput) {
        let wasClosed = machine.isClosed
        if case .received(.bind(let bind)) = input { ended.remove(bind.session) }
        let actions = machine.handle(input, now: 0)
        expect(!wasClosed || actions.isEmpty, "a closed connection acts")
        for action in actions { check(action) }
        expect(machine.sessions.count <= 4, "\(machine.sessions.count) sessions")
        for session in machine.sessions.values {
            expect(session.pendingBytes >= 0, "fewer than no bytes")
            expect(session.phase != .ended || session.pendingBytes == 0, "an ended session has pending bytes")
        }
        guard machine.isClosed else { return }
        // A new connection, so that the walk goes on.
        closes += 1
        machine = RealmConnectionMachine(Self.settings)
        (ended, ids, requests) = ([], [], [])
    }

    private mutating func check(_ action: RealmConnectionAction) {
        switch action {
        case .send(let message):
            let codec = RealmCodec(compression: RunLengthCompression())
            do {
                let bytes = try codec.encode(message)
                let decoded = try codec.decodeServer(bytes)
                expect(decoded.session == message.session, "another session")
            } catch { expect(false, "\(error)") }
            expect(!ended.contains(message.session), "session \(message.session) sends after its error: \(message)")
            guard case .error(let error) = message, error.code != .compensatingWrite else { break }
            errors += 1
            if error.session > 0 { ended.insert(error.session) }
        case .allotFile(let id), .openFile(let id, _), .buildView(let id, _), .integrate(let id, _), .catchUp(let id, _):
            if !ids.contains(id) { ids.append(id) }
            requests.append(action)
        case .defect(_, let error): expect(error.code == .internalError, "\(error)")
        case .store(_, .completeBootstrap): views += 1
        case .repeated(_, let entries): expect(!entries.isEmpty, "nothing is repeated")
        case .store, .superseded, .report, .release, .pauseReading, .resumeReading, .close: break
        }
    }

    mutating func step() {
        switch samples.random.below(10) {
        case 0..<4:
            let kind = samples.random.below(30)
            feed(.received(kind == 0 ? samples.clientMessage() : kind < 3 ? likelyMessage() : usualMessage()))
        case 4..<7: answer()
        case 7, 8: act()
        default: if samples.random.chance(5) { feed(.malformed(SluiceError(.badSyntax, "no"))) }
        }
    }

    /// A message that fits the situation of session 1 or 2.
    private mutating func usualMessage() -> RealmClientMessage {
        counter += 1
        let session = UInt64(1 + samples.random.below(2))
        let file = RealmFileIdent(ident: 1 + session, salt: 5)
        guard let state = machine.sessions[session] else {
            return .bind(RealmBind(session: session, needsFileIdent: samples.random.chance(50)))
        }
        switch (state.phase, samples.random.below(20)) {
        case (.bound, _): return ConnectionFixture.ident(session, file: file)
        case (.allotting, _): return .ping(timestamp: counter, roundTrip: 0)
        case (.ended, _), (_, 0): return .unbind(session: session)
        case (_, 1): return .report(RealmClientReport(session: session, code: 212, message: "bad"))
        case (_, 2..<6): return .query(session: session, RealmQuerySet(version: counter, queries: [:]))
        case (_, 6..<11): return .mark(session: session, request: counter)
        default:
            let entry = RealmUploadEntry(
                clientVersion: counter, serverVersion: state.sent, timestamp: 0, origin: 0, changeset: samples.bytes())
            let progress = RealmUploadProgress(clientVersion: counter, serverVersion: state.sent)
            return .upload(RealmUploadMessage(session: session, progress: progress, entries: [entry]))
        }
    }

    /// A message that fits some situation of session 1 or 2.
    private mutating func likelyMessage() -> RealmClientMessage {
        let session = UInt64(1 + samples.random.below(2))
        let file = RealmFileIdent(ident: 1 + session, salt: 5)
        let number = UInt64(samples.random.below(12))
        switch samples.random.below(8) {
        case 0: return .bind(RealmBind(session: session, needsFileIdent: samples.random.chance(50)))
        case 1, 2: return ConnectionFixture.ident(session, file: file, at: samples.random.chance(50) ? 0 : number, query: number / 4)
        case 3: return .query(session: session, RealmQuerySet(version: number * 5, queries: [:]))
        case 4:
            var entries: [RealmUploadEntry] = []
            for _ in 0..<samples.random.below(3) {
                entries.append(
                    RealmUploadEntry(clientVersion: number, serverVersion: 0, timestamp: 0, origin: 0, changeset: samples.bytes()))
            }
            let progress = RealmUploadProgress(clientVersion: number + 2, serverVersion: UInt64(samples.random.below(3)))
            return .upload(RealmUploadMessage(session: session, progress: progress, entries: entries))
        case 5: return .mark(session: session, request: number * 3)
        case 6: return samples.random.chance(30) ? .unbind(session: session) : .ping(timestamp: number, roundTrip: 0)
        default: return samples.random.chance(10) ? samples.clientMessage() : .mark(session: session, request: samples.number())
        }
    }

    /// Answers a request, not always the first.
    private mutating func answer() {
        guard !requests.isEmpty else { return }
        switch requests.remove(at: samples.random.below(min(requests.count, 3))) {
        case .allotFile(let id): feed(.allotted(id, RealmFileIdent(ident: 1 + id.session, salt: 5)))
        case .openFile(let id, let ident): feed(.opened(id, ConnectionFixture.fresh(ident.file), newest: 8))
        case .buildView(let id, let request):
            let part = ConnectionFixture.part(
                request.query.version, at: UInt64(8 + samples.random.below(4)), [[.create(ConnectionFixture.task)]],
                isLast: samples.random.chance(60))
            feed(samples.random.chance(80) ? .bootstrap(id, part) : .queryFailed(id, queryVersion: request.query.version, "no"))
        case .integrate(let id, let upload):
            feed(.integrated(id, RealmIntegratedUpload(clientVersion: upload.progress.clientVersion, serverVersion: samples.number())))
        case .catchUp(let id, let request): feed(.caughtUp(id, request: request))
        default: break
        }
    }

    /// An event of the server for some session, at times one that is over.
    private mutating func act() {
        guard !ids.isEmpty else { return }
        let id = samples.random.pick(ids)
        switch samples.random.below(8) {
        case 0, 1, 2:
            let object = samples.random.chance(80) ? ConnectionFixture.task : ConnectionFixture.missing
            let change = OutgoingOperation.update(OutgoingOperation.Path(object: object, property: "title"), .value)
            feed(.append(id, [ConnectionFixture.entry(UInt64(samples.random.below(40)), [change], undoes: samples.random.chance(30))]))
        case 3: feed(.advanced(id, UInt64(samples.random.below(30))))
        case 4: feed(.permissionsChanged(id))
        case 5: feed(.bootstrap(id, ConnectionFixture.part(UInt64(samples.random.below(20)), at: samples.number(), [])))
        case 6: feed(.queryFailed(id, queryVersion: UInt64(samples.random.below(20)), "no"))
        default: if samples.random.chance(20) { feed(.replaced(id)) }
        }
    }
}

@Suite struct `A hostile client` {
    /// Reproduces by its seed. The test passes if nothing traps and every message is one that a client reads.
    @Test(arguments: seeds(exactly: 100)) func `brings the machine to no message that a client refuses to read`(seed: UInt64) {
        var walk = HostileWalk(seed: seed)
        for _ in 0..<1_000 where walk.fault == nil { walk.step() }
        #expect(walk.fault == nil, "seed \(seed)")
    }

    /// So that the walk above is one: its steps lead everywhere.
    @Test func `comes to views, errors and closed connections`() {
        var (views, errors, closes) = (0, 0, 0)
        for seed in UInt64(1)...20 {
            var walk = HostileWalk(seed: seed)
            for _ in 0..<1_000 { walk.step() }
            views += walk.views
            errors += walk.errors
            closes += walk.closes
        }
        #expect(views > 20 && errors > 100 && closes > 20)
    }
}
