import Logging
package import SluiceCore
import SluiceWire

/// One client's connection from Hello to the end. Messages are handled one after another, in the order they came;
/// bootstraps run beside them.
package actor Session {
    let services: SessionServices
    let channel: any SessionChannel
    private(set) var logger: Logger
    var state = SessionState()
    var user: Authenticated?
    var file: ClientFile?
    var plan = SessionPlan(types: [:]) { didSet { plans += 1 } }
    /// How often the rules have said what the user may.
    private(set) var plans = 0
    /// What was queryable when the rules were asked for it.
    var planned = QueryableFields()
    private(set) var clientTypes: [ObjectType] = []
    var view = View.empty
    /// The view that is live or becomes it.
    var target = View.empty
    /// What writes are judged by: the view that the client may already have heard is live, the moment before `view` is.
    var writable = View.empty
    /// What the client's file has.
    var held: HeldView?
    /// What the client said in its Hello that it has, and up to where; nil once a bootstrap has begun, and when it cannot be proved.
    var greeting: (held: PBHeld, applied: LSN, witness: Witness)?
    /// What it has put aside.
    var progress = BootstrapProgress()
    var seen = SeenRows()
    /// The live subscriber in the fan-out, from Hello on.
    var subscriber: Fanout.Handle?
    /// Whether a view of this session is live: before, the client's rows are as an earlier session left them, and no position may
    /// say that they have more.
    var isInStep = false
    /// What was to be announced while no view was live, or when a bootstrap had just put another subscriber in the place of one.
    var unannounced: (lsn: LSN, isCommit: Bool)?
    /// The file's changesets up to this number are committed.
    var committed: UInt64 = 0
    /// The first of them of which a write was undone and the client has not been told.
    private var firstUntold: UInt64?
    /// The client may drop what it keeps of its changesets up to this number: they are committed, and it knows what was undone.
    var told: UInt64 { firstUntold.map { $0 - 1 } ?? committed }
    /// What is committed and not acknowledged yet, and who sees to that.
    private var unacknowledged: [Acknowledgement] = []
    var acknowledging: Task<Void, Never>?
    /// Asymmetric objects that are not acknowledged, in order, and who sees to that.
    var batches: [WaitingBatch] = []
    var ingesting: Task<Void, Never>?
    var bootstrap: Task<Void, Never>?
    /// The set whose view is live or under way.
    var set = PBSubscribe()
    /// Of `set`.
    var pending = PendingObjects()
    /// How many subscriptions of this session the observer knows of.
    var counted = 0
    /// How often a view was to be brought.
    var brings = 0
    /// Whether `bootstrap` is under way.
    var isBuilding = false
    var watch: (id: Fanout.Handle, channel: MemberWatch)?
    /// How often the view's members were looked for, and the last time that this is over of.
    var looks = (begun: 0, over: 0)
    /// Marks that are not answered yet, and who sees to that.
    var marks: [UInt64] = []
    var marking: Task<Void, Never>?
    private var expiry: Task<Void, Never>?
    /// While it is not known what the user may: who asks for it.
    var doubt: Task<Void, Never>?
    /// How often there was reason to ask the rules anew.
    var reviews = 0

    package init(services: SessionServices, channel: any SessionChannel) {
        self.services = services
        self.channel = channel
        logger = services.logger
    }

    /// Handles one message of the client. Never throws: what is wrong becomes an error for the client.
    package func handle(_ bytes: [UInt8]) async {
        // What was on its way when the session failed is part of nothing any more.
        guard state.phase != .closed else { return }
        do {
            if state.phase == .awaitingHello {
                guard try await prove(bytes) else { return }
            }
            let message = try decode(bytes)
            if message.needsRules {
                await settleDoubt()
                guard state.phase != .closed else { return }
            }
            switch message {
            case .hello(let hello): try await open(hello)
            case .subscribe(let set): try await subscribe(set)
            case .upload(let upload): try await self.upload(upload)
            case .ingest(let batch): try await ingest(batch)
            case .mark(let mark): await reach(mark)
            case .refreshToken(let refresh): try await self.refresh(token: refresh.accessToken)
            case .reportError(let report): note(report)
            }
        } catch let error as SluiceError {
            fail(error)
        } catch is CancellationError {
            fail(SluiceError(.shuttingDown, "The gateway is stopping."))
        } catch {
            fail(SluiceError(.internalError, "The gateway could not handle a message.", detail: "\(error)"))
        }
    }

    private func decode(_ bytes: [UInt8]) throws -> PBClientMessage.OneOf_Kind {
        let message = try WireProtocol.decode(PBClientMessage.self, from: bytes)
        guard let kind = message.kind else {
            throw SluiceError(.unknownMessage, "A message of \(bytes.count) bytes has no kind that this gateway knows.")
        }
        let name: SessionState.Message =
            switch kind {
            case .hello: .hello
            case .subscribe: .subscribe
            case .upload: .upload
            case .ingest: .ingest
            case .mark: .mark
            case .refreshToken: .refreshToken
            case .reportError: .reportError
            }
        try state.receive(name)
        return kind
    }

    /// Tells the client and ends the session, once.
    func fail(_ error: SluiceError) {
        guard state.phase != .closed else { return }
        state.close()
        // The client gets neither a detail nor the text of an internal error.
        let level: Logger.Level = error.code == .internalError ? .error : error.code.isInternal || error.detail != nil ? .warning : .info
        logger.log(
            level: level, "A session ends with an error.",
            metadata: ["code": "\(error.code.rawValue)", "reason": "\(error.operatorText)"])
        channel.send([services.frames.frame(SessionMessages.error(error, isRecoveryAllowed: services.isRecoveryAllowed))])
        channel.close(error)
    }

    /// The connection is gone: gives back what the session held.
    package func closed() async {
        state.close()
        if let file { services.files.end(self, of: file) }
        bootstrap?.cancel()
        doubt?.cancel()
        expiry?.cancel()
        ingesting?.cancel()
        await settleDoubt()
        await bootstrap?.value
        if let subscriber { await services.fanout.remove(subscriber) }
        if let watch { await services.fanout.remove(watch.id) }
        (subscriber, watch) = (nil, nil)
        count(subscriptions: 0)
        await services.feed.release(view.partitions)
        view = .empty
    }

    /// Ends the session when it belongs to this user (AUTH-5: at once), or to whomever.
    package func end(user: String?, _ error: SluiceError) {
        if user == nil || self.user?.user.id == user { fail(error) }
    }

    func count(subscriptions: Int) {
        services.observer.subscribed(subscriptions - counted)
        counted = subscriptions
    }

    func send(_ message: [UInt8]) { channel.send([services.frames.frame(message)]) }

    /// What went wrong at the client; whoever runs the gateway may be the only one who can look.
    private func note(_ report: PBReportError) {
        guard state.takeReport() else { return }
        logger.warning(
            "A client reports an error.", metadata: ["code": "\(report.code)", "reason": "\(report.message.prefix(2_000))"])
    }

    // MARK: Hello

    private func open(_ hello: PBHello) async throws {
        guard let user else { return }
        let file = try await openFile(hello, user: user.user.id)
        logger[metadataKey: "client"] = "\(file.id)"
        let types = try SessionMessages.types(of: hello.schema)
        let schema = try await SchemaCheck.accept(types, authority: services.authority)
        clientTypes = types
        // What another history of the database had means nothing in this one.
        if file.isPointProven {
            held = HeldView(hello.held, user: user.user.id, services.sealer, schema.schema)
            seen = SeenRows(hello.held)
            if held != nil, file.isPositionProven, let witness = hello.history.position {
                greeting = (hello.held, LSN(rawValue: hello.appliedLsn), witness)
            }
        }
        if let witness = hello.checkpoint.point, try await services.snapshots.hasSeen(witness) {
            progress = BootstrapProgress(hello.checkpoint, schema.schema)
        }
        self.file = file
        committed = file.changeset
        state.begin(changeset: file.changeset)
        plan = try await patientlyOpen(user.user, types.map(\.name))
        planned = schema.fields
        send(
            SessionMessages.welcome(
                file: file, schema: schema.schema, client: types, time: services.environment.wallMilliseconds()))
        await replaceOlder(of: file)
        subscriber = await services.fanout.add(channel, view: .empty, staged: false, client: file.id)
        // A new file has written nothing that could have been undone.
        if hello.client != 0 { try await tellUndone(file.id) }
        logger.debug("A session is open.")
    }

    /// Tells what the client has not noted, as fast as it takes it.
    private func tellUndone(_ client: ClientID) async throws {
        var told: UInt64 = 0
        while case let open = try await services.clients.openCompensations(id: client, after: told), let last = open.last {
            for (id, writes) in open { send(SessionMessages.compensation(id: id, writes: writes)) }
            await channel.drained(below: Limits.outboxBytes / 4)
            guard !channel.isClosed else { return }
            told = last.id
        }
    }

    /// Authenticates the user of a session that begins, or one whose token came ahead of its Hello.
    func open(token: String) async throws {
        let before = user?.user.id
        let user = try await authenticate(token)
        guard before == nil || before == user.user.id else {
            throw SluiceError(.userMismatch, "The token of Hello belongs to another user than the one before it.")
        }
        logger[metadataKey: "user"] = "\(user.user.id)"
    }

    private func authenticate(_ token: String) async throws -> Authenticated {
        let user = try await services.authenticator.authenticate(token: token)
        self.user = user
        channel.belongs(to: user.user.id)
        expiry?.cancel()
        let wait = max(user.expires - services.environment.wallMilliseconds(), 0)
        let environment = services.environment
        // Unstructured because: it outlives the message that set it and is cancelled by the next token or the close.
        expiry = Task { [weak self] in
            guard (try? await environment.sleep(nanoseconds: UInt64(wait) * 1_000_000)) != nil else { return }
            await self?.expire()
        }
        return user
    }

    private func expire() {
        fail(SluiceError(.tokenExpired, "The access token of user \(user?.user.id ?? "") has expired."))
    }

    private func openFile(_ hello: PBHello, user: String) async throws -> ClientFile {
        if hello.client == 0 { return try await services.clients.allot(user: user) }
        return try await services.clients.open(
            id: ClientID(rawValue: hello.client), secret: Array(hello.secret), user: user, oldestBase: LSN(rawValue: hello.oldestBase),
            seen: hello.history)
    }

    private func refresh(token: String) async throws {
        let before = user?.user
        let after = try await authenticate(token)
        guard before?.id == after.user.id else {
            throw SluiceError(.userMismatch, "The new token belongs to user \(after.user.id), the session to \(before?.id ?? "nobody").")
        }
    }

    // MARK: Uploads

    private func upload(_ upload: PBUpload) async throws {
        guard let file, let user else { return }
        let schema = services.authority.current()
        if upload.compensation > 0 { try await services.clients.acknowledgeCompensations(id: file.id, upTo: upload.compensation) }
        let writer = Committer.Writer(
            client: file.id, session: file.session, user: user.user, plan: plan, view: writable, schema: schema,
            compensation: upload.compensation, seen: seen)
        for message in upload.changesets {
            // Whoever was sent away meanwhile writes no more.
            guard state.phase == .open else { return }
            let changeset = try SessionMessages.changeset(message, schema: schema.schema)
            guard try state.take(changeset: changeset.number) else {
                let lsn = try await services.snapshots.currentLSN()
                services.observer.uploaded(undone: 0, nanoseconds: nil)
                await acknowledge(Acknowledgement(changeset: changeset.number, lsn: lsn, isCommit: false))
                continue
            }
            let begin = services.environment.monotonicNanoseconds()
            let outcome = try await services.committer.commit(changeset, by: writer)
            services.observer.uploaded(
                undone: outcome.rejected.count, nanoseconds: services.environment.monotonicNanoseconds() - begin)
            committed = changeset.number
            if outcome.compensation != nil, firstUntold == nil { firstUntold = committed }
            note(outcome.rejected)
            let compensation = outcome.compensation.map {
                SessionMessages.compensation(id: $0, writes: outcome.rejected)
            }
            await acknowledge(
                Acknowledgement(
                    changeset: changeset.number, lsn: outcome.lsn, isCommit: true, compensation: compensation, futile: outcome.futile))
        }
    }

    /// For operators: one line for a changeset, however many of its writes were undone; the others are in the database.
    private func note(_ rejected: [RejectedWrite]) {
        guard let first = rejected.first else { return }
        logger.log(
            level: rejected.contains { $0.cause == .database } ? .warning : .info, "Writes were undone.",
            metadata: [
                "count": "\(rejected.count)", "changeset": "\(first.changeset)", "type": "\(first.object.type)",
                "key": "\(ExtendedJSON.json(first.object.key).text.prefix(200))", "reason": "\(first.reason)",
                "rule": "\(first.rule ?? "")",
            ])
    }

    /// Has a changeset acknowledged once it will outlive a crash; the next may be worked on meanwhile.
    private func acknowledge(_ next: Acknowledgement) async {
        unacknowledged.append(next)
        if acknowledging == nil {
            // Unstructured because: later messages need not wait for the disk; it ends with its statement, which has a deadline.
            acknowledging = Task { await self.acknowledge() }
        }
        if unacknowledged.count >= Acknowledgement.most { await acknowledging?.value }
    }

    private func acknowledge() async {
        defer { acknowledging = nil }
        while let last = unacknowledged.last, state.phase == .open {
            let durable = unacknowledged
            unacknowledged = []
            do {
                try await services.committer.durable()
            } catch {
                fail(
                    error as? SluiceError
                        ?? SluiceError(.internalError, "What was committed could not be made durable.", detail: "\(error)"))
                return
            }
            for message in durable.compactMap(\.compensation) { send(message) }
            firstUntold = unacknowledged.first { $0.compensation != nil }?.changeset
            send(SessionMessages.uploadAck(of: durable, lsn: last.lsn))
            await announce(last.lsn, isCommit: last.isCommit)
        }
    }

    /// Has the client told when everything up to `lsn` has been said, whichever of its subscribers is live then.
    func announce(_ lsn: LSN, isCommit: Bool) async {
        guard let subscriber else { return }
        if isInStep, await services.fanout.announce(lsn, isCommit: isCommit, to: subscriber) { return }
        if !isInStep || self.subscriber == subscriber {
            unannounced = (max(lsn, unannounced?.lsn ?? .zero), isCommit && unannounced?.isCommit != false)
        } else {
            await announce(lsn, isCommit: isCommit)
        }
    }
}

extension ErrorCode {
    /// Errors that fail one subscription version and leave the session alone (QL-8).
    var isQueryError: Bool { (300..<400).contains(rawValue) }
}

extension PBClientMessage.OneOf_Kind {
    /// Whether the answer depends on what the user may.
    fileprivate var needsRules: Bool {
        switch self {
        case .subscribe, .upload, .ingest: true
        // A mark waits for the rules beside what comes after it.
        case .hello, .mark, .refreshToken, .reportError: false
        }
    }
}
