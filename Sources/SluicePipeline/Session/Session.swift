import Logging
package import SluiceCore
package import SluicePorts
import SluiceWire

/// One client's connection, from Hello to close.
/// The caller passes messages one at a time, in order of arrival. Bootstraps, ingest and acknowledgements run concurrently.
package actor Session {
    let services: SessionServices
    let channel: any SessionChannel
    let completion: (any ChangesetCompletion)?
    private(set) var logger: Logger
    var machine: SessionMachine
    var tasks = Tasks()
    var user: Authenticated?
    var file: ClientFile?
    private(set) var clientTypes: [ObjectType] = []
    /// The SDK and the app as the client names them, from Hello on.
    private(set) var sdk = ""
    var replica = ReplicaRecord()
    /// The live subscriber of the fan-out, from Hello on.
    var subscriber: Fanout.Handle?
    /// The subscriber for the changes that affect the members of the live or pending view.
    var watch: (id: Fanout.Handle, channel: MemberWatch)?
    var pace = SubscriptionPace()
    /// The user whose sessions have this one, and the number of subscriptions reported to the observer.
    private var counted: (user: String?, subscriptions: Int) = (nil, 0)

    /// The running tasks of a session. The machine decides when one starts, so each runs at most once at a time.
    struct Tasks {
        /// The bootstrap or member search.
        var work: Task<Void, Never>?
        /// Asks the rules while they are unavailable.
        var asking: Task<Void, Never>?
        var flushing: Task<Void, Never>?
        var taking: Task<Void, Never>?
        var answering: Task<Void, Never>?
    }

    /// Ends the session when its token expires.
    private var expiry: EnvironmentTimer?

    /// - Parameters:
    ///   - numbering: The numbers of the client's changesets.
    ///   - completion: The completion of a client in this process.
    package init(
        services: SessionServices, channel: any SessionChannel, numbering: ChangesetNumbering = .contiguous,
        completion: (any ChangesetCompletion)? = nil
    ) {
        machine = SessionMachine(numbering: numbering)
        self.completion = completion
        self.services = services
        self.channel = channel
        logger = services.logger
    }

    /// Handles one message of the client. Never throws: every error is sent to the client.
    package func handle(_ bytes: [UInt8]) async {
        // Messages that arrive after a failure belong to no session.
        guard !machine.isClosed else { return }
        do {
            if machine.awaitsHello {
                guard try await prove(bytes) else { return }
            }
            let message = try decode(bytes)
            perform(machine.handle(.received(message.name)))
            // The permissions must be known before the message is judged.
            if message.needsRules { await rulesAvailable() }
            guard !machine.isClosed else { return }
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
        return kind
    }

    /// Performs the machine's effects. Tasks start and end here and nowhere else; their results go back as inputs.
    func perform(_ effects: [SessionEffect]) {
        for effect in effects {
            switch effect {
            // Unstructured because: later messages need not wait for the disk; it ends with its statement, which has a deadline.
            case .flush: tasks.flushing = Task { await self.flush() }
            // Unstructured because: later messages must not wait for it; it ends when no batch waits, or with the session.
            case .takeBatches: tasks.taking = Task { await self.takeBatches() }
            // Unstructured because: later messages need not wait for the barrier.
            // It ends with the bootstrap that it waits for, or by the deadline of the delivery.
            case .answerBarriers: tasks.answering = Task { await self.answerBarriers() }
            // Unstructured because: uploads continue beside it; it is cancelled by the next one or the close, and awaited there.
            case .bootstrap(let number, let view): tasks.work = Task { await self.bootstrap(view, number) }
            case .search(let number): tasks.work = Task { await self.search(number) }  // Unstructured because: as the bootstrap.
            case .cancelWork: tasks.work?.cancel()
            case .askRules(let number, let error): askRules(number, after: error)
            case .end(let error): report(error)
            }
        }
    }

    /// Ends the session with an error, once.
    func fail(_ error: SluiceError) {
        for case .end(let error) in machine.handle(.failed(error)) { report(error) }
    }

    /// Sends the error that ends the session. The machine is closed already.
    private func report(_ error: SluiceError) {
        // The client receives neither a value, a cause nor the text of an internal error.
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
        perform(machine.handle(.disconnected))
        if let file { services.files.end(self, of: file) }
        if let user = counted.user.take() { services.users.end(user) }
        tasks.asking?.cancel()
        expiry?.cancel()
        tasks.taking?.cancel()
        // Await the tasks before removing subscribers: a bootstrap may still add one.
        await rulesAvailable()
        await tasks.work?.value
        if let subscriber { await services.fanout.remove(subscriber) }
        if let watch { await services.fanout.remove(watch.id) }
        (subscriber, watch) = (nil, nil)
        count(subscriptions: 0)
        await services.feed.release(machine.views.live.partitions)
        machine.clear()
    }

    /// Ends the session at once if the scope contains it. One that has no user yet is in `all` alone.
    package func end(_ scope: SessionScope, _ error: SluiceError) {
        if scope == .all || user.map({ scope.contains(user: $0.user.id, login: $0.login) }) == true { fail(error) }
    }

    /// Reports the number of subscriptions in force to the observer.
    func count(subscriptions: Int) {
        services.observer.subscribed(subscriptions - counted.subscriptions)
        counted.subscriptions = subscriptions
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
        sdk = ClientText.printable(hello.sdk)
        // Records of another history of the database are meaningless in this one.
        if file.proven.point {
            replica.held = ClientViewRecord(hello.held, user: user.user.id, services.sealer, schema.schema)
            replica.seen = ClientViewHistory(hello.held)
            if replica.held != nil, file.proven.position, let anchor = hello.history.position {
                replica.offer = ResumeOffer(held: hello.held, applied: LSN(rawValue: hello.appliedLsn), anchor: anchor)
            }
        }
        if let witness = hello.checkpoint.point, try await services.snapshots.hasSeen(witness) {
            replica.progress = BootstrapProgress(hello.checkpoint, schema.schema)
        }
        self.file = file
        let plan = try await patientlyOpen(user.user, types.map(\.name))
        self.user?.user.functions = plan.functions
        machine.planned(plan, for: schema.fields)
        perform(machine.handle(.opened(changeset: file.changeset)))
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
        if counted.user == nil, !channel.isLocal {
            try services.users.begin(user.user.id)
            counted.user = user.user.id
        }
        self.user = user
        channel.belongs(to: user.user.id)
        expiry?.cancel()
        // Never, for a session in this process.
        guard user.expires < .max else { return user }
        // 34 years at most, so that the nanoseconds fit.
        let wait = min(max(user.expires - services.environment.wallMilliseconds(), 0), 1 << 40)
        expiry = services.environment.after(nanoseconds: UInt64(wait) * 1_000_000) { [weak self] in
            Task { await self?.expire(user.expires) }  // Unstructured because: the timer does not wait. It ends the session, and ends.
        }
        return user
    }

    /// - Parameter time: The expiry of the token, which may have been replaced since.
    private func expire(_ time: Int64) {
        guard user?.expires == time else { return }
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
        // The plan remains, and so do the results that it depends on.
        self.user?.user.functions = before?.functions ?? []
    }
}

extension PBClientMessage.OneOf_Kind {
    fileprivate var name: ClientMessageKind {
        switch self {
        case .hello: .hello
        case .subscribe: .subscribe
        case .upload: .upload
        case .ingest: .ingest
        case .mark: .mark
        case .refreshToken: .refreshToken
        case .reportError: .reportError
        }
    }

    /// `true` if the answer depends on the user's permissions.
    fileprivate var needsRules: Bool {
        switch self {
        case .subscribe, .upload, .ingest: true
        // A barrier waits for the rules concurrently with later messages.
        case .hello, .mark, .refreshToken, .reportError: false
        }
    }
}
