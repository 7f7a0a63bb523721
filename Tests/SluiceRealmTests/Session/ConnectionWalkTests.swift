import SluiceCore
import SluicePorts
import TestSupport
import Testing

@testable import SluiceRealm

/// A server and a client on both sides of the connection machine. Work completes in any order that the machine permits, and connections
/// break at any time with messages on their way.
private struct Walk {
    private static let task = OutgoingOperation.Object(table: "Task", key: [1])
    private static let change = OutgoingOperation.update(OutgoingOperation.Path(object: task, property: "title"), .value)

    /// The answers that the machine waits for.
    enum Work {
        case allot(RealmSessionID)
        case open(RealmSessionID)
        case build(RealmSessionID, RealmViewRequest, begun: RealmBootstrapPart?)
        case integrate(RealmSessionID, RealmUploadMessage)
        case catchUp(RealmSessionID, UInt64)
    }

    var random: SplitMix64
    var machine: RealmConnectionMachine?
    var client = WalkClient()
    var fault: String?
    var steps: [Int] = []
    var (bootstraps, resumptions, refusals) = (0, 0, 0)

    // The server
    var stream: ClientStream?
    var model = ClientModel()
    var version: UInt64 = 2
    var session: RealmSessionID?
    var changes: [UInt64] = []
    var undone: [UInt64] = []
    var applied: [UInt64] = []
    var work: [Work] = []
    /// Messages on their way to the client.
    var wire: [RealmServerMessage] = []

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    mutating func expect(_ holds: Bool, _ what: String) { if !holds, fault == nil { fault = what } }

    // MARK: The connection

    mutating func feed(_ input: RealmConnectionInput) {
        for action in machine?.handle(input, now: 0) ?? [] { perform(action) }
    }

    mutating func send(_ messages: [RealmClientMessage]) { for message in messages { feed(.received(message)) } }

    private mutating func perform(_ action: RealmConnectionAction) {
        switch action {
        case .allotFile(let id): work.append(.allot(id))
        case .openFile(let id, _): work.append(.open(id))
        case .buildView(let id, let request):
            work.removeAll { if case .build = $0 { true } else { false } }
            work.append(.build(id, request, begun: nil))
        case .integrate(let id, let upload): work.append(.integrate(id, upload))
        case .repeated(_, let entries):
            for entry in entries { expect(applied.contains(entry.clientVersion), "changeset \(entry.clientVersion) had no effect before") }
        case .catchUp(let id, let request): work.append(.catchUp(id, request))
        case .send(let message): wire.append(message)
        case .store(_, let change): store(change)
        case .release(_, let state):
            session = nil
            if let state { model = state.model }
        case .superseded: break
        case .report, .defect, .close, .pauseReading, .resumeReading: expect(false, action.text)
        }
    }

    private mutating func store(_ change: RealmRecordChange) {
        switch change {
        case .beginBootstrap(let version): stream?.beginBootstrap(queryVersion: version)
        case .cancelBootstrap: stream?.cancelBootstrap()
        case .completeBootstrap(let view):
            bootstraps += 1
            stream?.completeBootstrap(queryVersion: view.queryVersion, serverVersion: view.serverVersion)
        case .lose: expect(false, "a lost stream")
        }
    }

    private mutating func connect() {
        guard machine == nil else { return }
        machine = RealmConnectionMachine(RealmConnectionSettings(version: 14, salt: 77, batchBytes: 60))
        send(client.connect())
    }

    private mutating func disconnect() {
        feed(.disconnected)
        machine = nil
        (session, work, wire) = (nil, [], [])
    }

    private mutating func deliver() {
        guard !wire.isEmpty else { return }
        send(client.receive(wire.removeFirst()))
        expect(client.fault == nil, "the client refuses: \(client.fault ?? "")")
    }

    // MARK: The server

    /// Makes a change for the client, stored first.
    private mutating func change(undoing isUndoing: Bool = false) {
        guard let upload = stream?.record.upload else { return }
        version += 1
        var entry = RealmStreamEntry(
            serverVersion: version, clientVersion: upload.clientVersion, timestamp: 0, origin: 1,
            changeset: [UInt8](repeating: 1, count: random.below(40)), created: 0)
        if isUndoing {
            entry.compensation = RealmCompensation(serverVersion: version, clientVersion: upload.clientVersion, rejected: [])
            undone.append(version)
        }
        changes.append(version)
        do { expect(try stream?.append(entry, now: 0) == true, "a lost stream") } catch { expect(false, "\(error)") }
        if let session { feed(.append(session, [OutgoingEntry(entry: entry, operations: [Self.change])])) }
    }

    private mutating func doWork() {
        guard !work.isEmpty else { return }
        switch work.removeFirst() {
        case .allot(let id):
            let file = RealmFileIdent(ident: 2, salt: 9)
            if stream == nil { stream = ClientStream(StoredRealmClient(record: RealmClientRecord(file: file))) }
            feed(.allotted(id, file))
        case .open(let id):
            guard let stream else { return expect(false, "an unknown file") }
            session = id
            let before = wire.count
            feed(.opened(id, RealmClientState(stream: stream, model: model), newest: version))
            if wire.count > before { resumptions += 1 }
        case .build(let id, let request, let begun): build(id, request, begun)
        case .integrate(let id, let upload): integrate(id, upload)
        case .catchUp(let id, let request): feed(.caughtUp(id, request: request))
        }
    }

    private mutating func build(_ id: RealmSessionID, _ request: RealmViewRequest, _ begun: RealmBootstrapPart?) {
        // The set of a complete view is never refused: the client's process would end.
        let isOpen = machine?.sessions[1]?.open.contains { $0.version == request.query.version } ?? false
        if begun == nil, isOpen, random.chance(20) {
            refusals += 1
            return feed(.queryFailed(id, queryVersion: request.query.version, "no"))
        }
        let entry = RealmStreamEntry(
            serverVersion: begun?.serverVersion ?? version, clientVersion: begun?.clientVersion ?? stream?.record.upload.clientVersion ?? 0,
            timestamp: 0, origin: 1, changeset: [], created: 0)
        var part = RealmBootstrapPart(
            queryVersion: request.query.version, serverVersion: entry.serverVersion, clientVersion: entry.clientVersion,
            entries: [OutgoingEntry(entry: entry, operations: [.erase(Self.task), .create(Self.task)])], isLast: random.chance(60))
        // The last part may be empty if another part was not.
        if begun != nil, part.isLast, random.chance(30) { part.entries = [] }
        feed(.bootstrap(id, part))
        if !part.isLast { work.append(.build(id, request, begun: part)) }
    }

    /// Applies an upload, and at times breaks the connection before the machine learns of it.
    private mutating func integrate(_ id: RealmSessionID, _ upload: RealmUploadMessage) {
        for entry in upload.entries {
            expect(!applied.contains(entry.clientVersion), "changeset \(entry.clientVersion) took effect twice")
            applied.append(entry.clientVersion)
        }
        version += 1
        stream?.integrated(upload.progress)
        if random.chance(10) { return disconnect() }
        feed(.integrated(id, RealmIntegratedUpload(clientVersion: upload.progress.clientVersion, serverVersion: version)))
        if !upload.entries.isEmpty, random.chance(20) { change(undoing: true) }
    }

    // MARK: Steps

    mutating func step() {
        let number = random.below(100)
        steps.append(number)
        switch number {
        case 0..<12: connect()
        case 12..<15: disconnect()
        case 15..<38: deliver()
        case 38..<65: doWork()
        case 65..<75: change()
        case 75..<83: client.write()
        case 83..<90: send(client.upload())
        case 90..<95: send(client.subscribe())
        case 95..<98: send(client.mark())
        default: if let session { feed(.permissionsChanged(session)) }
        }
    }

    /// Lets everything under way end, and compares both sides.
    mutating func settle() {
        for _ in 0..<20 {
            connect()
            for _ in 0..<400 where fault == nil && !(work.isEmpty && wire.isEmpty) {
                doWork()
                deliver()
            }
            send(client.upload())
        }
        for _ in 0..<400 where fault == nil && !(work.isEmpty && wire.isEmpty) {
            doWork()
            deliver()
        }
        guard machine != nil, fault == nil else { return }
        expect(client.pendingQueries.isEmpty, "query sets wait: \(client.pendingQueries)")
        expect(client.changesets.isEmpty, "changesets wait: \(client.changesets.map(\.version))")
        expect(applied.sorted() == Array(1..<client.newest + 1), "applied \(applied.sorted()) of \(client.newest)")
        let due = changes.filter { $0 > client.bootstrapped }
        expect(client.received == due, "received \(client.received), due \(due), bootstrap at \(client.bootstrapped)")
        expect(client.received.filter { undone.contains($0) }.allSatisfy { client.noticed.contains($0) }, "a silent compensating write")
    }
}

@Suite struct `A walk through a connection` {
    /// Reproduces by its seed.
    @Test(arguments: seeds(exactly: 200)) func `loses nothing and sends nothing that a client refuses`(seed: UInt64) {
        var walk = Walk(seed: seed)
        for _ in 0..<400 where walk.fault == nil { walk.step() }
        if walk.fault == nil { walk.settle() }
        #expect(walk.fault == nil, "seed \(seed), steps \(walk.steps)")
    }

    /// So that the walk above is one: its steps lead everywhere.
    @Test func `comes to bootstraps, resumptions, refusals and compensating writes`() {
        var (bootstraps, resumptions, refusals, undone) = (0, 0, 0, 0)
        for seed in UInt64(1)...100 {
            var walk = Walk(seed: seed)
            for _ in 0..<400 where walk.fault == nil { walk.step() }
            bootstraps += walk.bootstraps
            resumptions += walk.resumptions
            refusals += walk.refusals
            undone += walk.undone.count
        }
        #expect(bootstraps > 100 && resumptions > 20 && refusals > 20 && undone > 20)
    }
}
