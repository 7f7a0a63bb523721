import DequeModule
import SluiceCore
import SluicePorts

/// One session of a connection: the phases, the order of messages, uploads and marks. `RealmConnectionMachine` owns it.
struct RealmSession: Sendable {
    enum Phase: String, CaseIterable, Sendable {
        /// BIND asked for a file ident.
        case allotting
        /// The client's IDENT is next.
        case bound
        /// The file's state is being loaded. Messages wait.
        case opening
        /// A view is being built and sent. Changes wait.
        case bootstrapping
        case steady
        /// An error was sent. Nothing follows it.
        case ended
    }

    /// An upload under way.
    private struct Upload {
        var progress: RealmUploadProgress
        var cost: Int
        var hasChangesets: Bool
        /// `false` if its changesets took effect before.
        var isNew: Bool
    }

    let id: RealmSessionID
    let bind: RealmBind
    let settings: RealmConnectionSettings
    var phase = Phase.bound
    /// The allotted file, or that of the IDENT.
    private(set) var file: RealmFileIdent?
    private var ident: RealmIdent?
    /// Meaningful from `opened` on.
    var client = RealmClientState(
        stream: ClientStream(StoredRealmClient(record: RealmClientRecord(file: RealmFileIdent(ident: 0, salt: 0)))), model: ClientModel())
    var isOpened = false
    /// The checks of the client on progress. Present from `opened` on.
    var check: ProgressCheck?
    /// The bytes of deferred messages and of uploads under way.
    private(set) var pendingBytes = 0

    // Views
    /// The query set of the last complete view, or of the IDENT.
    var current = RealmQuerySet(version: 0, queries: [:])
    /// The query version that is being built, or the current one.
    var wanted: UInt64 = 0
    /// Query sets without a complete view, in the order of their versions.
    var open: [RealmQuerySet] = []
    /// The highest version of a query set that was received.
    private var requested: UInt64 = 0
    /// `true` until a bootstrap has erased everything that the file may hold.
    var needsFull = false
    /// `true` until a bootstrap has sent the schema.
    var needsSchema = false
    /// The number of the last request for a view.
    var built: UInt64 = 0
    /// `true` until the first part of the view of an IDENT, if the client may have parts of another one. It drops them at that part.
    /// Without it, the client would append the next view of the same set to them.
    var isReplacing = false
    /// The parts of the bootstrap under way, and the model after them.
    var parts = 0
    var partsModel: ClientModel?
    /// The query version of which the client has parts without the last one.
    var partial: UInt64?
    /// Entries that arrived during the bootstrap.
    var waiting: [OutgoingEntry] = []
    var waitingBytes = 0

    // Downloads
    /// The server version of the last DOWNLOAD: the client may name it.
    var sent: UInt64 = 0
    /// The stream has every entry up to this version.
    var position: UInt64 = 0
    /// The newest known version of the server.
    var latest: UInt64 = 0
    /// The last compensating write that was sent.
    var compensated: UInt64 = 0
    /// `true` if an upload took effect and was not acknowledged yet.
    var needsAcknowledgement = false

    // Uploads
    private var uploads: Deque<Upload> = []
    /// The client's version up to which its changesets took effect. Versions behind it have none. Entries name it.
    private(set) var applied: UInt64 = 0
    /// The progress of the last UPLOAD, and the version of the last changeset in this session.
    private var uploaded = RealmUploadProgress()
    private var lastChangeset: UInt64 = 0
    private var deferred: [RealmClientMessage] = []

    // Marks
    private var lastMark: UInt64 = 0
    private var mark: UInt64?
    private var isCaughtUp = false

    init(_ id: RealmSessionID, _ bind: RealmBind, _ settings: RealmConnectionSettings) {
        (self.id, self.bind, self.settings) = (id, bind, settings)
    }

    /// Judges the BIND.
    mutating func begin() -> [RealmConnectionAction] {
        guard !bind.isSubserver else { return fail(.otherSessionError, .applicationBug, "Sub-servers are not served.") }
        guard bind.schemaVersion == 0 || bind.schemaVersion == settings.schemaVersion else {
            return fail(
                .invalidSchemaChange, .applicationBug,
                "The client has schema version \(bind.schemaVersion), and the app \(settings.schemaVersion).")
        }
        guard bind.needsFileIdent else { return [] }
        phase = .allotting
        return [.allotFile(id)]
    }

    mutating func allotted(_ file: RealmFileIdent) -> [RealmConnectionAction] {
        guard phase == .allotting else { return [] }
        phase = .bound
        self.file = file
        return [.send(.ident(session: id.session, file))]
    }

    // MARK: Messages

    mutating func received(_ message: RealmClientMessage) throws(ConnectionFault) -> [RealmConnectionAction] {
        switch (phase, message) {
        case (.ended, _): return []
        case (_, .testCommand(let command)):
            return [.send(.testCommand(RealmTestCommand(session: id.session, request: command.request, body: "{}")))]
        case (_, .report(let report)): return clientFailed(report)
        case (.bound, .ident(let ident)): return identify(ident)
        case (.allotting, _), (.bound, _), (_, .ident), (_, .bind):
            throw ConnectionFault(.badMessageOrder, "The message \(message.name) came while session \(id.session) was \(phase.rawValue).")
        case (.opening, _):
            deferred.append(message)
            pendingBytes += Self.cost(message)
            return []
        case (_, .query(_, let query)): return try request(query)
        case (_, .upload(let upload)): return receive(upload)
        case (_, .mark(_, let request)): return try receiveMark(request)
        // The machine handles them.
        case (_, .unbind), (_, .ping): return []
        }
    }

    private static func cost(_ message: RealmClientMessage) -> Int {
        switch message {
        case .upload(let upload): upload.cost
        case .query(_, let query): 256 + bytes(query)
        default: 256
        }
    }

    private static func bytes(_ query: RealmQuerySet) -> Int {
        query.queries.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
    }

    private mutating func identify(_ ident: RealmIdent) -> [RealmConnectionAction] {
        if let file, file != ident.file { return reset(.badClientFileIdent, "The client's file is not the one that it received.") }
        guard ident.file.ident > RealmProtocol.serverFile, ident.file.salt > 0 else {
            return reset(.badClientFileIdent, "The client names file \(ident.file.ident).")
        }
        guard Self.bytes(ident.query) <= settings.queryBytes else {
            return reset(.badClientFileIdent, "The subscriptions are larger than \(settings.queryBytes) bytes.")
        }
        guard ident.latest.version == 0 || ident.latest.salt == settings.salt else {
            return reset(.divergingHistories, "The client has seen another history of the server.")
        }
        file = ident.file
        phase = .opening
        current = ident.query
        (wanted, requested) = (ident.query.version, ident.query.version)
        needsSchema = ident.download.serverVersion == 0 || bind.reason == .clientReset
        self.ident = ident
        return [.openFile(id, ident)]
    }

    mutating func opened(_ state: RealmClientState, newest: UInt64, now: Int64) throws(ConnectionFault) -> [RealmConnectionAction] {
        guard phase == .opening, let ident else { return [] }
        client = state
        applied = state.stream.record.upload.clientVersion
        isOpened = true
        sent = ident.download.serverVersion
        position = sent
        latest = max(newest, ident.latest.version)
        var actions: [RealmConnectionAction]
        let wasLost = client.stream.record.isLost
        switch client.stream.resume(ident, newest: newest, now: now) {
        case .reset(let code, let message):
            let isNew = client.stream.record.isLost && !wasLost
            return (isNew ? [.store(id, .lose)] : []) + reset(code, message)
        case .bootstrap:
            check = ProgressCheck(ident, upload: client.stream.record.upload)
            needsFull = true
            isReplacing = client.stream.record.view != nil || client.stream.record.building != nil
            actions = build(ident.query)
        case .resend:
            check = ProgressCheck(ident, upload: client.stream.record.upload)
            phase = .steady
            // The entries that the client has stay stored until its uploads confirm them: changes that it made without them may be on
            // their way, and after a crash the views judge those by the entries.
            actions = flush(always: true)
        }
        let messages = deferred
        deferred = []
        pendingBytes = 0
        for message in messages { actions += try received(message) }
        return actions
    }

    // MARK: Queries

    private mutating func request(_ query: RealmQuerySet) throws(ConnectionFault) -> [RealmConnectionAction] {
        guard query.version > requested else {
            throw ConnectionFault(.badMessageOrder, "Query version \(query.version) came after version \(requested).")
        }
        requested = query.version
        guard Self.bytes(query) <= settings.queryBytes else {
            let message = "Invalid query: the subscriptions are larger than \(settings.queryBytes) bytes"
            return [.send(.queryError(RealmQueryError(session: id.session, queryVersion: query.version, message: message)))]
        }
        open.append(query)
        if open.count > settings.openQueries { open.removeFirst() }
        return isReplacing ? [] : build(query)
    }

    // MARK: Uploads

    private mutating func receive(_ upload: RealmUploadMessage) -> [RealmConnectionAction] {
        let progress = upload.progress
        guard progress.serverVersion <= sent, progress.serverVersion >= uploaded.serverVersion else {
            return reset(.badServerVersion, "The client confirms version \(progress.serverVersion), and received \(sent).")
        }
        guard progress.clientVersion >= uploaded.clientVersion else {
            return reset(.badClientVersion, "The upload version \(progress.clientVersion) follows \(uploaded.clientVersion).")
        }
        var (fresh, repeated) = (upload, [RealmUploadEntry]())
        fresh.entries = []
        for entry in upload.entries {
            guard entry.origin == 0 else { return reset(.badOriginFileIdent, "A changeset is of file \(entry.origin).") }
            guard entry.clientVersion > lastChangeset, entry.clientVersion <= progress.clientVersion else {
                return reset(.badClientVersion, "A changeset of version \(entry.clientVersion) follows \(lastChangeset).")
            }
            guard entry.serverVersion <= sent else {
                return reset(.badServerVersion, "A changeset is based on version \(entry.serverVersion), and \(sent) was sent.")
            }
            lastChangeset = entry.clientVersion
            // A changeset that took effect is acknowledged and not applied again.
            if client.stream.isDuplicate(entry.clientVersion) { repeated.append(entry) } else { fresh.entries.append(entry) }
        }
        uploaded = progress
        check?.uploaded(progress.clientVersion)
        uploads.append(
            Upload(progress: progress, cost: upload.cost, hasChangesets: !upload.entries.isEmpty, isNew: !fresh.entries.isEmpty))
        pendingBytes += upload.cost
        return (repeated.isEmpty ? [] : [.repeated(id, repeated)]) + [.integrate(id, fresh)]
    }

    mutating func integrated(_ result: RealmIntegratedUpload) -> [RealmConnectionAction] {
        guard !uploads.isEmpty else { return [] }
        let answered = uploads.prefix(result.uploads)
        guard let last = answered.last, last.progress.clientVersion == result.clientVersion else {
            let (version, expected) = (result.clientVersion, answered.last?.progress.clientVersion ?? 0)
            return defect(SluiceError(.internalError, "The upload \(version) took effect before \(expected)."))
        }
        uploads.removeFirst(answered.count)
        pendingBytes -= answered.reduce(0) { $0 + $1.cost }
        client.stream.integrated(last.progress)
        // The views count these versions alone.
        if answered.contains(where: \.isNew) { applied = max(applied, last.progress.clientVersion) }
        client.model.received(result.operations)
        partsModel?.received(result.operations)
        needsAcknowledgement = true
        // The client confirms each newer server version by an upload. If the answer to one without changesets named a newer version, the
        // two would answer each other for as long as others write.
        return advanced(to: result.serverVersion) + flush(always: true, advances: answered.contains(where: \.hasChangesets))
    }

    /// Takes a changeset ahead of the last one of the uploads that take effect together. It alone is acknowledged at once.
    mutating func changesetIntegrated(_ result: RealmIntegratedUpload) -> [RealmConnectionAction] {
        guard isOpened, phase != .ended, let last = uploads.last, result.clientVersion <= last.progress.clientVersion else { return [] }
        let confirmed = client.stream.record.upload.serverVersion
        client.stream.integrated(RealmUploadProgress(clientVersion: result.clientVersion, serverVersion: confirmed))
        applied = max(applied, result.clientVersion)
        client.model.received(result.operations)
        partsModel?.received(result.operations)
        needsAcknowledgement = true
        return advanced(to: result.serverVersion)
    }

    // MARK: Marks

    private mutating func receiveMark(_ request: UInt64) throws(ConnectionFault) -> [RealmConnectionAction] {
        guard request > lastMark else { throw ConnectionFault(.badMessageOrder, "Mark \(request) came after mark \(lastMark).") }
        lastMark = request
        mark = request
        isCaughtUp = false
        return [.catchUp(id, request: request)]
    }

    mutating func caughtUp(_ request: UInt64) -> [RealmConnectionAction] {
        // The newest mark alone is answered.
        guard mark == request else { return [] }
        isCaughtUp = true
        return answerMark()
    }

    /// Answers the mark unless a bootstrap must precede the answer.
    mutating func answerMark() -> [RealmConnectionAction] {
        guard phase == .steady, isCaughtUp, let request = mark else { return [] }
        mark = nil
        let actions = flush(always: false)
        // A defect in the flush ends the session, and no mark follows an error.
        return phase == .steady ? actions + [.send(.mark(session: id.session, request: request))] : actions
    }

    // MARK: The end

    /// Ends the session with an error. Nothing follows it, not even the answer to UNBIND.
    mutating func fail(_ code: RealmErrorCode, _ action: RealmErrorAction, _ message: String) -> [RealmConnectionAction] {
        guard phase != .ended else { return [] }
        let error = RealmServerError(
            session: id.session, code: code, message: message, action: action, tryAgain: action == .transient)
        return [.send(.error(error))] + release()
    }

    mutating func fail(_ error: SluiceError) -> [RealmConnectionAction] {
        fail(RealmErrorCode(ending: error), RealmErrorAction(ending: error), ClientError(error).message)
    }

    /// Ends the session by a client reset.
    mutating func reset(_ code: RealmErrorCode, _ message: String) -> [RealmConnectionAction] { fail(code, .clientReset, message) }

    /// Ends the session because of a message that must not be sent.
    mutating func defect(_ error: SluiceError) -> [RealmConnectionAction] {
        // The model may describe a part of the changeset.
        isOpened = false
        return [.defect(id, error)] + reset(.badClientFileIdent, "The client's copy must be replaced.")
    }

    private mutating func clientFailed(_ report: RealmClientReport) -> [RealmConnectionAction] {
        // A new copy would not differ: the client meets the app's declarations before its own arrive here.
        if let mismatch = report.schemaMismatch {
            let fix = "Let the client's model and the app's schema agree."
            return [.report(id, report)] + fail(.invalidSchemaChange, .applicationBug, "\(mismatch) \(fix)")
        }
        return [.report(id, report)] + reset(.badClientFileIdent, "The client could not apply a change.")
    }

    mutating func unbind() -> [RealmConnectionAction] {
        guard phase != .ended else { return [] }
        return [.send(.unbound(session: id.session))] + release()
    }

    /// Gives the state back and frees memory.
    mutating func release() -> [RealmConnectionAction] {
        guard phase != .ended else { return [] }
        phase = .ended
        let state = isOpened ? client : nil
        client.stream = ClientStream(StoredRealmClient(record: client.stream.record))
        client.model = ClientModel()
        (open, waiting, uploads, deferred, partsModel) = ([], [], [], [], nil)
        (waitingBytes, pendingBytes) = (0, 0)
        return [.release(id, state)]
    }
}
