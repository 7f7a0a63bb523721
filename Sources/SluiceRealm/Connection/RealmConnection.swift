import DequeModule
import Logging
import SluiceCore
import SluicePorts
import Synchronization

/// An end of a connection from outside of its messages.
package enum RealmConnectionEnd: Hashable, Sendable {
    case tokenExpired
    /// The user is disabled or deleted.
    case userDisabled
    case shutDown
    /// The socket is closed.
    case disconnected

    fileprivate var input: RealmConnectionInput {
        switch self {
        case .tokenExpired: .tokenExpired
        case .userDisabled: .userDisabled
        case .shutDown: .shutDown
        case .disconnected: .disconnected
        }
    }
}

/// One client's connection of Realm's protocol, from the upgrade to the close.
///
/// The actor owns a `RealmConnectionMachine` and performs its actions in order. Each source of inputs waits until its actions are
/// performed: the client's messages, the views, the uploads and the marks of each session. The queue of actions is bounded by that. The
/// one exception is a large message: its source goes on while it is encoded, and the next message waits for it.
///
/// The end, from any side, discards the actions that wait and cancels all tasks. Answers that come later are ignored.
///
/// A small message, and the events of the views, are handled by the thread of the socket if nothing must be awaited. An idle connection has
/// no task: a task exists while messages, events or actions wait, or a call is under way.
package actor RealmConnection {
    /// The size up to which a message is handled by the thread that received it, in bytes after decompression. Larger ones would delay
    /// other sockets.
    private static let smallBytes = 4_096

    let executor = EnterableExecutor()
    package nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }
    let services: RealmConnectionServices
    let sink: any RealmFrameSink
    let user: String
    private(set) var machine: RealmConnectionMachine
    var sessions: [RealmSessionID: FileSession] = [:]
    private let mailbox: RealmMailbox
    /// Handles the messages of the mailbox.
    let handling = OnDemand()
    private var hasBegun = false
    /// `true` once an end has come from outside. Every end is final, so the first one suffices.
    private let hasEnd = Atomic<Bool>(false)
    /// Actions that were not performed, in order.
    private var queue: Deque<RealmConnectionAction> = []
    /// `true` while actions are performed without a wait. Those that they cause follow.
    private var isPerforming = false
    /// The task that performs actions; nil while there are none.
    private(set) var performing: Task<Void, Never>?
    /// The large message that is being encoded; nil for none. The messages behind it wait in the queue.
    var sending: Task<Void, Never>?
    /// The encoding of a large message that waits for the store; nil for none.
    var ahead: Encoding?
    /// The sources whose actions are in the queue.
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private(set) var tasks: [UInt64: (owner: RealmSessionID?, task: Task<Void, Never>)] = [:]
    /// The tasks that answer uploads.
    var answering: Set<UInt64> = []
    private var lastTask: UInt64 = 0
    /// The call at the token's expiry.
    private var expiry: EnvironmentTimer?
    private var isStopping = false
    private var isOver = false
    /// Those who wait for the end.
    private var enders: [CheckedContinuation<Void, Never>] = []

    /// - Parameter user: The user of the token that the upgrade had.
    package init(_ settings: RealmConnectionSettings, user: String, services: RealmConnectionServices, sink: any RealmFrameSink) {
        (self.services, self.sink, self.user) = (services, sink, user)
        machine = RealmConnectionMachine(settings)
        mailbox = RealmMailbox(services.mailbox, sink)
    }

    /// Made for each line: the metadata of a logger would be several hundred bytes of an idle connection.
    var logger: Logger {
        var logger = services.logger
        logger[metadataKey: "user"] = "\(user)"
        if let sdk = services.sdk { logger[metadataKey: "sdk"] = "\(sdk)" }
        return logger
    }

    /// The idents of the open client files, in no order.
    package var files: [UInt64] { sessions.values.compactMap { $0.file?.file } }

    /// The number of sessions, and of those whose views wait for the client to read.
    package var sessionCounts: (all: Int, draining: Int) { (sessions.count, sessions.values.count(where: \.isDraining)) }

    /// The number of running tasks; 0 for an idle connection and after the end.
    package var taskCount: Int {
        let deliveries = sessions.values.count { $0.delivery.task.isWorking }
        return tasks.count + deliveries + (performing == nil ? 0 : 1) + (sending == nil ? 0 : 1) + (handling.isWorking ? 1 : 0)
    }

    // MARK: The owner

    /// Begins to handle messages, also those that have come. `end` must follow at the latest when the socket is closed.
    package func begin() {
        hasBegun = true
        handling.start { await self.handleMessages() }
    }

    /// Waits until the connection has ended, with all of its tasks.
    package func ended() async {
        if !isOver { await withCheckedContinuation { enders.append($0) } }
    }

    /// Handles a message of the client, or adds it to the mailbox. Never blocks. One call at a time.
    ///
    /// A message beyond a bound of the mailbox closes the connection, and the client retries.
    package nonisolated func received(_ message: [UInt8]) {
        if services.coding.workBytes(ofClient: message) <= Self.smallBytes, enterIfIdle({ $0.handleNow(message) }) ?? false { return }
        guard mailbox.put(message) else {
            let reason = "More than \(services.mailbox.messages) messages or \(4 * services.mailbox.bytes) bytes wait to be handled."
            end(by: .malformed(SluiceError(.tooManyRequests, reason, fix: "Send fewer, larger messages.")))
            return
        }
        handling.ask()
    }

    /// Ends the connection and returns at once. Only the first end counts.
    package nonisolated func end(_ reason: RealmConnectionEnd) { end(by: reason.input) }

    private nonisolated func end(by input: RealmConnectionInput) {
        guard !hasEnd.exchange(true, ordering: .acquiringAndReleasing) else { return }
        Task.detached { await self.advance(input) }  // Unstructured because: the caller does not wait. It hands over one input, and ends.
    }

    /// Closes the connection with 4001 at a time, unless a later call sets another one.
    ///
    /// - Parameter milliseconds: The expiry of the token, since 1970.
    package func expires(at milliseconds: Int64) {
        expiry?.cancel()
        guard !machine.isClosed else { return }
        // 34 years at most, so that the nanoseconds fit.
        let wait = min(max(max(milliseconds, 0) - services.environment.wallMilliseconds(), 0), 1 << 40)
        // `stop` cancels it. A weak reference would slow each use of the connection down.
        expiry = services.environment.after(nanoseconds: UInt64(wait) * 1_000_000) { self.end(.tokenExpired) }
    }

    /// Calls `body` on this thread; nil if the connection is busy.
    nonisolated func enterIfIdle(_ body: (isolated RealmConnection) -> Bool) -> Bool? {
        executor.enterIfIdle { assumeIsolated(body) }
    }

    /// Handles a message unless it must wait.
    private func handleNow(_ message: [UInt8]) -> Bool {
        guard hasBegun, !machine.isClosed, performing == nil, mailbox.count == 0, sink.bufferedBytes < Limits.outboxBytes else {
            return false
        }
        advance(input(of: message))
        return true
    }

    private func handleMessages() async {
        await performed()
        while !machine.isClosed, let message = mailbox.take() {
            // Each message may cause an answer, so a client that does not read must read first.
            if sink.bufferedBytes >= Limits.outboxBytes { await sink.drained(below: Limits.outboxBytes) }
            if !machine.isClosed { await submit(input(of: message)) }
            mailbox.handled(message.count)
        }
    }

    private func input(of message: [UInt8]) -> RealmConnectionInput {
        services.observer.received(bytes: message.count)
        do throws(SluiceError) {
            return .received(try services.coding.decodeClient(message))
        } catch {
            return .malformed(error)
        }
    }

    /// Begins the end, behind the last action.
    private func stop() {
        guard !isStopping else { return }
        isStopping = true
        expiry?.cancel()
        mailbox.close()
        Task.detached { await self.finish() }  // Unstructured because: it awaits all other tasks of the connection. `ended` waits for it.
    }

    /// Releases everything. The machine is closed, so no task begins any more.
    private func finish() async {
        if let handler = handling.close() {
            handler.cancel()
            await handler.value
        }
        while let running = performing ?? sending { await running.value }
        _ = await ahead?.value
        for id in Array(sessions.keys) { release(id, nil) }
        for (_, task) in tasks.values { task.cancel() }
        while let (number, entry) = tasks.first {
            await entry.task.value
            tasks[number] = nil
        }
        isOver = true
        sink.ended()
        let waiting = enders
        enders = []
        for ender in waiting { ender.resume() }
    }

    // MARK: Inputs

    /// Hands an input to the machine and waits until its actions are performed.
    func submit(_ input: RealmConnectionInput) async {
        advance(input)
        await performed()
    }

    /// Waits until the actions of earlier inputs are performed.
    func performed() async {
        if performing != nil { await withCheckedContinuation { waiting.append($0) } }
    }

    /// Hands an input to the machine. The actions are performed later.
    func advance(_ input: RealmConnectionInput) {
        guard !machine.isClosed else { return }
        let actions = machine.handle(input, now: services.environment.wallMilliseconds())
        if machine.isClosed {
            // The end does not wait for a slow store, and nothing after it depends on one.
            queue = []
            performing?.cancel()
        }
        guard performing == nil, !isPerforming else {
            queue += actions
            return
        }
        performReady(actions)
        guard queue.isEmpty else {
            // Unstructured because: the source of an input may be cancelled, and its actions must not be. `finish` awaits it.
            performing = Task { await self.performAll() }
            return
        }
        // An idle connection keeps no room for actions.
        queue = []
        if machine.isClosed { stop() }
    }

    /// Performs new actions, and those that they cause, before the next one that must wait. It and those behind it enter the queue. Most
    /// inputs need no queue.
    private func performReady(_ actions: [RealmConnectionAction]) {
        let wasClosed = machine.isClosed
        isPerforming = true
        defer { isPerforming = false }
        for (index, action) in actions.enumerated() {
            guard !mustWait(action) else {
                queue.insert(contentsOf: actions[index...], at: 0)
                return
            }
            perform(action)
            // The end has discarded the actions that waited.
            if machine.isClosed != wasClosed { break }
        }
        performReady()
    }

    /// Performs the actions of the queue before the next one that must wait.
    private func performReady() {
        while let action = queue.first, !mustWait(action) {
            queue.removeFirst()
            perform(action)
        }
    }

    /// `true` if an action waits for the store, or behind a large message.
    private func mustWait(_ action: RealmConnectionAction) -> Bool {
        switch action {
        case .store: true
        // The close comes with the end of the machine, after which no message matters any more.
        case .send: sending != nil && !machine.isClosed
        default: false
        }
    }

    private func performAll() async {
        // The end of the connection may have replaced the actions before this task began.
        performReady()
        while let action = queue.first {
            if case .store(let id, let change) = action {
                queue.removeFirst()
                // A client waits for its bootstrap, which is encoded meanwhile.
                if case .send(let next)? = queue.first { encodeAhead(next) }
                await store(change, for: id)
            } else {
                await sending?.value
            }
            performReady()
        }
        (performing, queue) = (nil, [])
        if machine.isClosed { stop() }
        let sources = waiting
        waiting = []
        for source in sources { source.resume() }
    }

    /// Starts a task of a session, or of the connection for nil.
    /// - Returns: The number of the task, for `cancel`.
    @discardableResult
    func start(_ owner: RealmSessionID?, _ body: @escaping @Sendable () async -> Void) -> UInt64 {
        lastTask += 1
        let number = lastTask
        // Unstructured because: later actions need not wait for it. It is cancelled with its session, and `finish` awaits it.
        let task = Task {
            await body()
            self.tasks[number] = nil
        }
        tasks[number] = (owner, task)
        return number
    }

    /// Cancels a task. Does nothing if it has ended.
    func cancel(_ number: UInt64?) {
        if let number { tasks[number]?.task.cancel() }
    }

    // MARK: Actions

    private func perform(_ action: RealmConnectionAction) {
        switch action {
        case .allotFile(let id): begin(id) { await $0.allot(id) }
        case .openFile(let id, let ident): begin(id) { await $0.open(id, ident) }
        // The one action that waits: `performAll` performs it.
        case .store: break
        case .buildView(let id, let request): build(request, for: id)
        case .superseded(let id, let version): sessions[id]?.view?.supersede(queryVersion: version)
        case .integrate(let id, let upload): integrate(upload, for: id)
        case .repeated(let id, let entries): sessions[id]?.view?.repeated(entries)
        case .catchUp(let id, let request): catchUp(request, for: id)
        case .send(let message): send(message)
        case .report(_, let report):
            services.observer.clientFailed()
            logger.warning("A client could not apply a message.", metadata: ["code": "\(report.code)", "reason": "\(report.message)"])
        case .defect(_, let error): note(defect: error)
        case .release(let id, let state): release(id, state)
        case .pauseReading: mailbox.hold(true)
        case .resumeReading: mailbox.hold(false)
        case .close(let reason, let text): sink.close(reason, text)
        }
    }

    private func begin(_ id: RealmSessionID, _ body: @escaping @Sendable (RealmConnection) async -> Void) {
        if sessions[id] == nil { sessions[id] = FileSession() }
        start(id) { await body(self) }
    }

    func note(defect error: SluiceError) {
        services.observer.defect()
        logger.error("A message that would have stopped a client was withheld.", metadata: ["reason": "\(error.operatorText)"])
    }

    private func store(_ change: RealmRecordChange, for id: RealmSessionID) async {
        guard let file = sessions[id]?.file else { return }
        let store = services.store
        do {
            try await within(services.waits.store, "Storing the state of file \(file.file)") { try await store.apply(change, to: file) }
        } catch {
            guard !machine.isClosed else { return }
            drop(id)
            ahead = nil
            advance(failure(of: id, error))
        }
    }

    /// Drops the actions that depend on a store that failed. The end of the session remains.
    private func drop(_ id: RealmSessionID) {
        var isOver = false
        var kept: Deque<RealmConnectionAction> = []
        for action in queue {
            if case .release(id, _) = action { isOver = true }
            // Behind the release, the number may belong to the next session.
            if isOver || !action.depends(on: id) { kept.append(action) }
        }
        queue = kept
    }

    private func release(_ id: RealmSessionID, _ state: RealmClientState?) {
        guard let session = sessions.removeValue(forKey: id) else { return }
        for (owner, task) in tasks.values where owner == id { task.cancel() }
        if let delivery = session.delivery.task.close() {
            delivery.cancel()
            start(nil) { await delivery.value }
        }
        session.view?.close()
        guard let file = session.file else { return }
        services.observer.sessions(-1)
        if let state { services.models.keep(state, of: file) }
    }
}

extension RealmConnectionAction {
    /// `true` if the action must not follow a failed store of the session.
    fileprivate func depends(on session: RealmSessionID) -> Bool {
        switch self {
        case .allotFile(let id), .openFile(let id, _), .store(let id, _), .buildView(let id, _), .superseded(let id, _),
            .integrate(let id, _), .repeated(let id, _), .catchUp(let id, _):
            id == session
        case .send(.unbound): false
        case .send(.error(let error)): error.session == session.session && error.code == .compensatingWrite
        case .send(let message): message.session == session.session
        case .report, .defect, .release, .pauseReading, .resumeReading, .close: false
        }
    }
}

extension RealmClientStore {
    /// Performs one change of a file's record.
    fileprivate func apply(_ change: RealmRecordChange, to session: RealmFileSession) async throws {
        switch change {
        case .beginBootstrap(let version): try await beginBootstrap(queryVersion: version, of: session)
        case .cancelBootstrap: try await cancelBootstrap(of: session)
        case .completeBootstrap(let view): try await completeBootstrap(view, of: session)
        case .lose: try await lose(session)
        }
    }
}
