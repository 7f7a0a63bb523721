import SluiceCore
import SluicePorts

@testable import SluiceRealm

/// Texts of actions, as the tables and scenarios compare them.
extension RealmConnectionAction {
    var text: String {
        switch self {
        case .allotFile: "allot"
        case .openFile(_, let ident): "open \(ident.file.ident)"
        case .store(_, let change): "store \(change.text)"
        case .buildView(_, let request):
            "build \(request.query.version)\(request.isFull ? " full" : "")\(request.hasSchema ? " schema" : "")"
        case .superseded(_, let version): "superseded \(version)"
        case .repeated(_, let entries): "repeated \(entries.map(\.clientVersion))"
        case .integrate(_, let upload): "integrate \(upload.entries.map(\.clientVersion))"
        case .catchUp(_, let request): "catch \(request)"
        case .send(let message): message.text
        case .report: "report"
        case .defect: "defect"
        case .release(_, let state): state == nil ? "release nothing" : "release"
        case .pauseReading: "pause"
        case .resumeReading: "resume"
        case .close(let reason, _): "close \(reason.code.rawValue)"
        }
    }
}

extension RealmRecordChange {
    fileprivate var text: String {
        switch self {
        case .beginBootstrap(let version): "begin \(version)"
        case .cancelBootstrap: "cancel"
        case .completeBootstrap(let view): "view \(view.queryVersion) at \(view.serverVersion)"
        case .lose: "lose"
        }
    }
}

extension RealmServerMessage {
    fileprivate var text: String {
        switch self {
        case .ident(_, let file): "ident \(file.ident)"
        case .download(let download): download.text
        case .mark(_, let request): "mark \(request)"
        case .unbound: "unbound"
        case .pong: "pong"
        case .error(let error): "error \(error.code.rawValue) \(error.action.rawValue)"
        case .plainError: "plain error"
        case .queryError(let error): "query error \(error.queryVersion)"
        case .log: "log"
        case .testCommand: "test"
        }
    }
}

extension RealmDownload {
    /// The cursor, the acknowledged version and the versions of the entries.
    fileprivate var text: String {
        let kind = batch == .steadyState ? "download" : batch == .lastInBatch ? "last" : "more"
        let cursor = "\(progress.download.serverVersion)/\(progress.download.clientVersion)"
        return "\(kind) \(cursor) ack \(progress.upload.clientVersion) \(entries.map(\.serverVersion))"
    }
}

/// A connection with session 1, and the inputs of a usual exchange.
struct ConnectionFixture {
    static let file = RealmFileIdent(ident: 2, salt: 4_244)
    static let task = OutgoingOperation.Object(table: "Task", key: [1, 5])
    static let missing = OutgoingOperation.Object(table: "Task", key: [1, 6])

    var machine: RealmConnectionMachine
    let id = RealmSessionID(session: 1, generation: 1)

    init(_ settings: RealmConnectionSettings = RealmConnectionSettings(version: 14, salt: 77)) {
        machine = RealmConnectionMachine(settings)
    }

    /// Feeds an input and returns the actions' texts.
    mutating func feed(_ input: RealmConnectionInput, now: Int64 = 0) -> [String] { machine.handle(input, now: now).map(\.text) }

    mutating func feed(_ message: RealmClientMessage) -> [String] { feed(.received(message)) }

    // MARK: Inputs

    static func bind(_ session: UInt64 = 1, needsFileIdent: Bool = false) -> RealmClientMessage {
        .bind(RealmBind(session: session, needsFileIdent: needsFileIdent))
    }

    static func ident(
        _ session: UInt64 = 1, file: RealmFileIdent = file, at server: UInt64 = 0, client: UInt64 = 0, query: UInt64 = 0, salt: UInt64 = 77
    ) -> RealmClientMessage {
        .ident(
            RealmIdent(
                session: session, file: file, download: RealmDownloadCursor(serverVersion: server, clientVersion: client),
                latest: RealmServerVersion(version: server, salt: server == 0 ? 0 : salt),
                query: RealmQuerySet(version: query, queries: [:])))
    }

    static func query(_ version: UInt64) -> RealmClientMessage {
        .query(session: 1, RealmQuerySet(version: version, queries: ["Task": "(priority > \(version))"]))
    }

    static func upload(_ clients: [UInt64], progress: UInt64, server: UInt64 = 0, base: UInt64 = 0, bytes: Int = 4) -> RealmClientMessage {
        let entries = clients.map {
            RealmUploadEntry(
                clientVersion: $0, serverVersion: base, timestamp: 0, origin: 0, changeset: [UInt8](repeating: 1, count: bytes))
        }
        return .upload(
            RealmUploadMessage(
                session: 1, progress: RealmUploadProgress(clientVersion: progress, serverVersion: server), entries: entries))
    }

    /// A change; without operations it is one that no client refuses.
    static func entry(
        _ server: UInt64, client: UInt64 = 0, _ operations: [OutgoingOperation] = [], undoes: Bool = false, bytes: Int = 4
    ) -> OutgoingEntry {
        let compensation = RealmCompensation(
            serverVersion: server, clientVersion: client, rejected: [RealmRejectedUpdate(reason: "no", table: "Task", key: [1, 5])])
        return OutgoingEntry(
            entry: RealmStreamEntry(
                serverVersion: server, clientVersion: client, timestamp: 0, origin: 1, changeset: [UInt8](repeating: 1, count: bytes),
                created: 0, compensation: undoes ? compensation : nil),
            operations: operations)
    }

    static func part(
        _ query: UInt64, at server: UInt64, client: UInt64 = 0, _ operations: [[OutgoingOperation]] = [[]], isLast: Bool = true
    ) -> RealmBootstrapPart {
        RealmBootstrapPart(
            queryVersion: query, serverVersion: server, clientVersion: client,
            entries: operations.map { entry(server, client: client, $0) }, isLast: isLast)
    }

    static func fresh(_ file: RealmFileIdent = file) -> RealmClientState { state(RealmClientRecord(file: file), []) }

    static func state(
        _ record: RealmClientRecord, _ entries: [RealmStreamEntry], bounds: ClientStreamBounds = ClientStreamBounds()
    )
        -> RealmClientState
    {
        RealmClientState(
            stream: ClientStream(StoredRealmClient(record: record, entries: entries), bounds: bounds), model: ClientModel())
    }

    // MARK: Situations

    /// A session that has the view of query version 0 at version 2, with the object `task`.
    static func steady(_ settings: RealmConnectionSettings = RealmConnectionSettings(version: 14, salt: 77)) -> ConnectionFixture {
        var fixture = ConnectionFixture(settings)
        _ = fixture.feed(bind())
        _ = fixture.feed(ident())
        _ = fixture.feed(.opened(fixture.id, fresh(), newest: 2))
        _ = fixture.feed(.bootstrap(fixture.id, part(0, at: 2, [[.create(task)]])))
        return fixture
    }

    /// A session of a file that had the view of query version 1 at version 5, uploads up to 20, and the entries 7 and 8.
    static func resumed(at server: UInt64, query: UInt64 = 1) -> (fixture: ConnectionFixture, actions: [String]) {
        var record = RealmClientRecord(file: file)
        record.view = RealmClientRecord.View(queryVersion: 1, serverVersion: 5)
        record.upload = RealmUploadProgress(clientVersion: 20, serverVersion: 5)
        record.acknowledged = 5
        var fixture = ConnectionFixture()
        _ = fixture.feed(bind())
        _ = fixture.feed(ident(at: server, client: 20, query: query))
        let entries = [entry(7, client: 20, undoes: true).entry, entry(8, client: 20).entry]
        let actions = fixture.feed(.opened(fixture.id, state(record, entries), newest: 9))
        return (fixture, actions)
    }
}
