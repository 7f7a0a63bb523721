import Logging
package import SluiceCore
package import SluicePorts
import SluiceValues
import SluiceWire

/// One client's connection, from Hello to close.
/// The caller passes messages one at a time, in order of arrival. Bootstraps, ingest and acknowledgements run concurrently.
package actor Session {
    let services: SessionServices
    let channel: any SessionChannel
    private(set) var logger: Logger
    var state = SessionState()
    var user: Authenticated?
    var file: ClientFile?
    var plan = SessionPlan(types: [:]) {
        didSet {
            plans += 1
            bound = nil
        }
    }
    /// `plan`, bound to the schema of its last use; nil before the first.
    var bound: SessionPermissions?
    /// The number of times that the rules have returned permissions.
    private(set) var plans = 0
    /// The queryable fields for which the rules were asked.
    var planned = QueryableFields()
    private(set) var clientTypes: [ObjectType] = []
    var view = View.empty
    /// The view that is live or will be.
    var target = View.empty
    /// The view that writes are judged by. It changes just before `view`, because the client may know the new view already.
    var writable = View.empty
    /// The client view record; nil if unknown.
    var held: ClientViewRecord?
    /// The resume offer of the client's Hello; nil once a bootstrap has begun, or if its history is unproven.
    var greeting: (held: PBHeld, applied: LSN, witness: HistoryAnchor)?
    /// The staged rows of unfinished bootstraps.
    var progress = BootstrapProgress()
    var seen = ClientViewHistory()
    /// The live subscriber of the fan-out, from Hello on.
    var subscriber: Fanout.Handle?
    /// `true` once a view of this session is live. Before, the client's rows are from an earlier session, and no position may claim more.
    var isInStep = false
    /// The acknowledgement deferred until a view is live.
    var unannounced: (lsn: LSN, isCommit: Bool)?
    /// The number up to which the replica's changesets are committed.
    var committed: UInt64 = 0
    /// The first of them with a compensating write that was not sent yet.
    private var firstUntold: UInt64?
    /// The number up to which the client may drop its changesets: they are committed, and their compensating writes were sent.
    var told: UInt64 { firstUntold.map { $0 - 1 } ?? committed }
    /// The committed changesets without an acknowledgement, and the task that sends it.
    private var unacknowledged: [Acknowledgement] = []
    var acknowledging: Task<Void, Never>?
    /// The unacknowledged batches of asymmetric objects, in order, and the task that takes them.
    var batches: [WaitingBatch] = []
    var ingesting: Task<Void, Never>?
    var bootstrap: Task<Void, Never>?
    /// The set of the live or pending view.
    var set = PBSubscribe()
    /// The pending objects of `set`.
    var pending = PendingObjects()
    /// The number of subscriptions reported to the observer.
    var counted = 0
    /// The number of calls of `bring`.
    var brings = 0
    /// `true` while `bootstrap` runs.
    var isBuilding = false
    var watch: (id: Fanout.Handle, channel: MemberWatch)?
    /// The number of member searches begun, and the number of the last one completed.
    var looks = (begun: 0, over: 0)
    /// The unanswered barriers, and the task that answers them.
    var marks: [UInt64] = []
    var marking: Task<Void, Never>?
    private var expiry: Task<Void, Never>?
    /// The task that asks the rules while the permissions are unknown; nil otherwise.
    var doubt: Task<Void, Never>?
    /// The number of reasons so far to ask the rules again.
    var reviews = 0

    package init(services: SessionServices, channel: any SessionChannel) {
        self.services = services
        self.channel = channel
        logger = services.logger
    }

    /// Handles one message of the client. Never throws: every error is sent to the client.
    package func handle(_ bytes: [UInt8]) async {
        // Messages that arrive after a failure belong to no session.
        guard state.phase != .closed else { return }
        do {
            if state.phase == .awaitingHello {
                guard try await prove(bytes) else { return }
            }
            let message = try decode(bytes)
            // The permissions must be known before the message is judged.
            if message.needsRules {
                await markRulesAvailable()
                guard state.phase != .closed else { return }
            }
            switch message {
            case .hello(let hello): try await open(hello)
            case .subscribe(let set): try await subscribe(set)
            case .upload(let upload): try await self.upload(upload)
            case .ingest(let batch): try await ingest(batch)
            case .mark(let mark): await reach(mark)
            case .refreshToken(let refresh): try await self.refresh(token: refresh.accessToken)
            case .reportError(let report): try await note(report)
            }
        } catch let error as SluiceError {
            fail(error)
        } catch is CancellationError {
            fail(SluiceError(.shuttingDown, "The gateway is stopping."))
        } catch {
            fail(SluiceError(.internalError, "The gateway could not handle a message.", cause: ErrorCause(error)))
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

    /// Sends an error to the client and ends the session, once.
    func fail(_ error: SluiceError) {
        guard state.phase != .closed else { return }
        // Close first: concurrent tasks check the phase, and a second failure must not send another error.
        state.close()
        // The client receives neither a detail nor the text of an internal error.
        let level: Logger.Level = error.code == .internalError ? .error : error.isWithheld ? .warning : .info
        logger.log(
            level: level, "A session ends with an error.",
            metadata: ["code": "\(error.code.rawValue)", "reason": "\(error.operatorText)"])
        channel.send([services.frames.frame(SessionMessages.error(error, isRecoveryAllowed: services.isRecoveryAllowed))])
        channel.close(error)
    }

    /// Releases everything that the session holds, after its connection has closed.
    package func closed() async {
        // The tasks awaited below check the phase and end.
        state.close()
        if let file { services.files.end(self, of: file) }
        bootstrap?.cancel()
        doubt?.cancel()
        expiry?.cancel()
        ingesting?.cancel()
        // Await the tasks before removing subscribers: a bootstrap may still add one.
        await markRulesAvailable()
        await bootstrap?.value
        if let subscriber { await services.fanout.remove(subscriber) }
        if let watch { await services.fanout.remove(watch.id) }
        (subscriber, watch) = (nil, nil)
        count(subscriptions: 0)
        await services.feed.release(view.partitions)
        view = .empty
    }

    /// Ends the session at once if it belongs to `user`; nil matches every user.
    package func end(user: String?, _ error: SluiceError) {
        if user == nil || self.user?.user.id == user { fail(error) }
    }

    /// Reports the number of subscriptions in force to the observer.
    func count(subscriptions: Int) {
        services.observer.subscribed(subscriptions - counted)
        counted = subscriptions
    }

    func send(_ message: [UInt8]) { channel.send([services.frames.frame(message)]) }

    // MARK: Hello

    private func open(_ hello: PBHello) async throws {
        guard let user else { return }
        let file = try await openFile(hello, user: user.user.id)
        logger[metadataKey: "client"] = "\(file.id)"
        let types = try SessionMessages.types(of: hello.schema)
        let schema = try await SchemaCheck.accept(types, authority: services.authority)
        clientTypes = types
        // Records of another history of the database are meaningless in this one.
        if file.isPointProven {
            held = ClientViewRecord(hello.held, user: user.user.id, services.sealer, schema.schema)
            seen = ClientViewHistory(hello.held)
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
        // A new replica has written nothing that could be rejected.
        if hello.client != 0 { try await tellUndone(file.id) }
        logger.debug("A session is open.")
    }

    /// Sends the compensating writes that the client has not acknowledged, at the client's pace.
    private func tellUndone(_ client: ClientID) async throws {
        var told: UInt64 = 0
        while case let open = try await services.clients.openCompensations(id: client, after: told), let last = open.last {
            for (id, writes) in open { send(SessionMessages.compensation(id: id, writes: writes)) }
            await channel.drained(below: Limits.outboxBytes / 4)
            guard !channel.isClosed else { return }
            told = last.id
        }
    }

    /// Authenticates the user of a new session, or of one with a token ahead of its Hello.
    /// - Throws: `userMismatch` if the two tokens belong to different users.
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
        if upload.compensation > 0 { try await services.clients.acknowledgeCompensations(id: file.id, upTo: upload.compensation) }
        // All changesets of the message are judged by one permission snapshot and one view, as they are after the last suspension.
        let permissions = boundPermissions()
        let schema = permissions.schema
        let writer = Committer.Writer(
            client: file.id, session: file.session, user: user.user, permissions: permissions, view: writable,
            compensation: upload.compensation, seen: seen)
        for message in upload.changesets {
            // A session that failed meanwhile writes no more.
            guard state.phase == .open else { return }
            let changeset = try SessionMessages.changeset(message, schema: schema.schema)
            // A resend: acknowledge it again without effect.
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
            // No suspension until `firstUntold` is set: `told` must never include a changeset with an unsent compensating write.
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

    /// Logs one line for a changeset, however many of its writes were rejected. The database has the others.
    private func note(_ rejected: [WriteRejection]) {
        guard let first = rejected.first else { return }
        logger.log(
            level: rejected.contains { $0.cause == .database } ? .warning : .info, "Writes were undone.",
            metadata: [
                "count": "\(rejected.count)", "changeset": "\(first.changeset)", "type": "\(first.object.type)",
                "key": "\(ExtendedJSON.json(first.object.key).text.prefix(200))", "reason": "\(first.reason)",
                "rule": "\(first.rule ?? "")",
            ])
    }

    /// Acknowledges a changeset once it survives a crash. The next changeset is processed meanwhile.
    private func acknowledge(_ next: Acknowledgement) async {
        unacknowledged.append(next)
        if acknowledging == nil {
            // Unstructured because: later messages need not wait for the disk; it ends with its statement, which has a deadline.
            acknowledging = Task { await self.acknowledge() }
        }
        // Backpressure: the client's next messages wait for the disk.
        if unacknowledged.count >= Acknowledgement.most { await acknowledging?.value }
    }

    /// Sends acknowledgements until none is left: one wait for the disk covers all changesets committed before it.
    private func acknowledge() async {
        defer { acknowledging = nil }
        // Loop: a changeset committed during the wait is not covered by it.
        while let last = unacknowledged.last, state.phase == .open {
            let durable = unacknowledged
            unacknowledged = []
            do {
                try await services.committer.durable()
            } catch {
                fail(SluiceError(error, otherwise: .internalError, "Committed changesets could not be flushed to disk."))
                return
            }
            // Compensating writes precede the acknowledgement, after which the client drops its changeset.
            for message in durable.compactMap(\.compensation) { send(message) }
            // The compensating writes above are sent; only those committed during the wait are open.
            firstUntold = unacknowledged.first { $0.compensation != nil }?.changeset
            send(SessionMessages.uploadAck(of: durable, lsn: last.lsn))
            await announce(last.lsn, isCommit: last.isCommit)
        }
    }

    /// Notifies the client once delivery has passed `lsn`. If no view is live, the notification is deferred.
    func announce(_ lsn: LSN, isCommit: Bool) async {
        guard let subscriber else { return }
        // Before the first view, a position would claim rows that the client lacks.
        if isInStep, await services.fanout.announce(lsn, isCommit: isCommit, to: subscriber) { return }
        // If another subscriber has replaced this one meanwhile, try again with that one.
        if !isInStep || self.subscriber == subscriber {
            unannounced = (max(lsn, unannounced?.lsn ?? .zero), isCommit && unannounced?.isCommit != false)
        } else {
            await announce(lsn, isCommit: isCommit)
        }
    }
}

extension ErrorCode {
    /// `true` for errors that fail one subscription version and leave the session open.
    var isQueryError: Bool { (300..<400).contains(rawValue) }
}

extension PBClientMessage.OneOf_Kind {
    /// `true` if the answer depends on the user's permissions.
    fileprivate var needsRules: Bool {
        switch self {
        case .subscribe, .upload, .ingest: true
        // A barrier waits for the rules concurrently with later messages.
        case .hello, .mark, .refreshToken, .reportError: false
        }
    }
}
