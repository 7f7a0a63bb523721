public import Dispatch
import SluiceCore
import SluiceReplica
import SluiceSync
import Synchronization

/// The sync session of a local file. Safe to use on any thread.
public final class SyncSession: Sendable {
    /// The state of a session: `active` if it tries to be connected, `invalid` after its file has closed.
    public enum State: Sendable { case active, inactive, invalid }
    public enum ConnectionState: Sendable { case disconnected, connecting, connected }

    private struct Status {
        /// `true` if the session has been started or resumed, and is neither suspended nor without a logged-in user.
        var isWanted = false
        /// `true` if the app has suspended the session. Only the app's `resume` clears it.
        var isSuspended = false
        /// `true` from an error that stops the engine until the engine resumes.
        var hasEnded = false
        var isClosed = false
        /// The engine's connection state. It counts only while the session is active.
        var connected = ConnectionState.disconnected
        var loop: _Concurrency.Task<Void, Never>?

        var state: State { isClosed ? .invalid : isWanted && !hasEnded ? .active : .inactive }

        /// Reported as disconnected at once: after `suspend` the app expects no more traffic, although closing takes a moment.
        var connection: ConnectionState { state == .active ? connected : .disconnected }
    }

    let user: User
    let events = SessionEvents()
    let reset: ClientReset
    private let syncConfiguration: SyncConfiguration
    private let replica: Replica
    private let engine: SyncEngine
    private let status = Mutex(Status())
    let connections = ConnectionObservers()
    private let downloads = DownloadProgress()
    private let uploads: UploadProgress
    private let observer: UInt64
    private let back: Back

    /// A weak path from the engine's reports to the session, so that the engine does not retain it.
    private final class Back: @unchecked Sendable {  // Sendable because: set once, before the engine runs; then only read.
        weak var session: SyncSession?
    }

    init(replica: Replica, configuration: Realm.Configuration, sync: SyncConfiguration) {
        let user = sync.user
        let back = Back()
        let reset = ClientReset(configuration: configuration, mode: sync.clientResetMode)
        self.user = user
        self.back = back
        self.replica = replica
        self.reset = reset
        syncConfiguration = sync
        let uploads = UploadProgress(replica: replica)
        self.uploads = uploads
        // Runs on the committing thread, so it only starts a task.
        observer = replica.onLocalChange { uploads.look() }
        engine = SyncEngine(
            configuration: user.app.engineConfiguration(reset: sync.clientResetMode.engineMode),
            replica: replica, transport: WebSocketTransport(pins: user.app.configuration.keyPins),
            refresh: { () async throws(SluiceError) in try await user.tokenForSync() },
            onReport: { report in back.session?.take(report) ?? false },
            onReset: { step in
                reset.take(step)
                // The reset may have dropped pending uploads.
                if step == .after { uploads.look() }
            })
        back.session = self
    }

    /// Changes the status and tells observers a change of the connection state, in the order of the changes.
    private func change(_ body: (inout sending Status) -> Void) {
        status.withLock { status in
            body(&status)
            connections.tell(status.connection)
        }
    }

    /// Starts sync at the first call. Later calls do nothing.
    func startOnce() {
        change { status in
            guard status.loop == nil, !status.isClosed else { return }
            status.loop = _Concurrency.Task { [engine] in await engine.run() }  // Unstructured because: it runs until `close` cancels it.
            guard user.isLoggedIn else { return events.send(.ended(.loggedOut(user))) }
            // Already suspended, by a callback of the opening or through another Realm.
            guard !status.isSuspended else { return }
            // Posted under the lock, so that the engine receives starts and pauses in the order of the status changes.
            status.isWanted = true
            engine.start(token: user.accessToken)
        }
    }

    /// Takes an access token that was requested for another reason, so that an open session goes on with it.
    func take(accessToken token: String) { engine.refreshed(token: token) }

    /// Ends the session and all waits. Called when the file closes.
    func close() {
        replica.removeObserver(observer)
        change { status in
            status.isClosed = true
            status.loop?.cancel()
        }
        connections.close()
        events.close()
    }

    /// Passes an error to the app's handler.
    /// - Returns: `true` if there is a handler.
    @discardableResult
    func report(_ error: any Error) -> Bool { user.app.syncManager.report(error, self) }

    /// Processes a report of the engine.
    /// - Returns: `false` if compensating writes reached no handler. The engine keeps them for the next opening of the file.
    @discardableResult
    func take(_ report: SyncReport) -> Bool {
        log(report)
        switch report {
        case .connection(let connection):
            change { $0.connected = ConnectionState(connection) }
            // A connection means that the server knows the file again.
            if connection == .connected { reset.isMended() }
        case .warning(let error): self.report(SyncError(.serverWarning, error.description))
        case .interrupted(let error, let isFault):
            // A lost connection ends only impatient waits; it is an error for the app only if it is a fault.
            events.send(.interrupted(error))
            if isFault { self.report(SyncError(error)) }
        case .stopped(let error), .loggedOut(let error):
            let failure = SyncError(error)
            stopped(failure)
            self.report(failure)
        case .clientReset(let error):
            let failure = reset.needsApp(error)
            // Stop before the app's handler runs, since it may resume the session.
            stopped(failure)
            if !reset.mode.handle(failure, self) { self.report(failure) }
        case .resumed:
            change { $0.hasEnded = false }
            events.begin()
        // No error: the session recovers by itself, and the reset mode's callbacks report the result.
        case .resetting: break
        case .refused(let writes):
            // Asymmetric objects that no message can carry leave the queue without an acknowledgement.
            uploads.look()
            return state != .invalid && self.report(SyncError(refused: writes))
        case .setRefused(let version, let error, let isLast):
            // A rejected set downloads nothing. If no further set is to be answered, the previous one is complete and listeners are done.
            if isLast { downloads.ended(version: version) } else { downloads.refused(version: version) }
            self.report(SyncError(.invalidFlexibleSyncSubscriptions, error.description))
        case .downloading(let version, let rows, let expected):
            if version > 0 { downloads.reached(version: version, rows: rows, of: expected) }
        case .downloaded(let version):
            if version > 0 { downloads.ended(version: version) }
        case .receiving(let changes): downloads.receiving(changes)
        case .received: downloads.received()
        case .uploaded, .ingested: uploads.look()
        }
        return true
    }

    /// Marks the session as stopped by the engine and ends all waits.
    private func stopped(_ error: SyncError) {
        change { ($0.hasEnded, $0.connected) = (true, .disconnected) }
        events.send(.ended(error))
    }

    // MARK: The app's side

    /// The current state.
    public var state: State { status.withLock { $0.state } }
    /// The current state of the connection; `disconnected` unless the session is active.
    public var connectionState: ConnectionState { status.withLock { $0.connection } }

    /// The owner of the file.
    public func parentUser() -> User? { user }

    /// The configuration of the file; nil if the session has ended.
    public func configuration() -> SyncConfiguration? { state == .invalid ? nil : syncConfiguration }

    /// Disconnects until `resume`. Reads and writes of the Realm continue.
    public func suspend() {
        status.withLock { $0.isSuspended = true }
        pause()
    }

    private func pause() {
        // Posted under the lock, so that the engine receives starts and pauses in the order of the status changes.
        change { status in
            (status.isWanted, status.connected) = (false, .disconnected)
            engine.pause()
        }
    }

    /// Ends a suspension and retries after an error that stopped the session.
    /// If the user is logged out, the session starts with the next login.
    public func resume() {
        status.withLock { $0.isSuspended = false }
        guard state != .invalid, user.isLoggedIn else { return }
        // Before the start: waits that begin now must not receive the previous end.
        events.begin()
        change { status in
            (status.isWanted, status.hasEnded) = (true, false)
            engine.start(token: user.accessToken)
        }
    }

    /// Pauses for a logout and ends all waits.
    func logOut() {
        pause()
        events.send(.ended(.loggedOut(user)))
    }

    /// Resumes after a login. A session that the app has suspended stays suspended.
    func logIn() {
        if status.withLock(\.isSuspended) { events.begin() } else { resume() }
    }

    /// Connects now and resets the back-off. An open connection is closed and replaced.
    public func reconnect() { engine.reconnect() }

    /// Calls the block with the progress of a transfer, on a queue of the SDK, until the token is released or the mode ends it.
    ///
    /// A download is that of the subscriptions, measured in rows. It reports from the time at which the server starts to send.
    /// With `reportIndefinitely`, later commits are reported too: below 1 while they arrive, then 1 once the Realm has them.
    /// An upload is measured in bytes.
    /// - Returns: A token; nil if the session is invalid.
    public func addProgressNotification(
        for direction: ProgressDirection, mode: ProgressMode, block: @Sendable @escaping (Progress) -> Void
    ) -> ProgressNotificationToken? {
        if state == .invalid { return nil }
        let token = NotificationToken()
        let listener = ProgressListener(mode, token, block)
        switch direction {
        case .upload: uploads.add(listener)
        case .download:
            let newest = try? replica.currentSubscriptionSet()
            // A pending set must not appear complete because an older one is.
            let isPending = newest?.state == .pending || newest?.state == .bootstrapping
            downloads.add(listener, pending: isPending ? newest?.version : nil)
        }
        return token
    }

    /// Waits until the server has all writes up to now, or the Realm has all commits of the server up to now.
    /// - Throws: The error that ended the session, including a logout during the wait, or `CancellationError`.
    public func wait(for direction: ProgressDirection) async throws { try await wait(for: direction, milliseconds: nil) }

    func wait(for direction: ProgressDirection, milliseconds: UInt64?) async throws {
        guard user.isLoggedIn else { throw SyncError.loggedOut(user) }
        try await events.unlessEnded { [engine] in
            do {
                try await engine.wait(for: direction == .upload ? .upload : .download, milliseconds: milliseconds)
            } catch let error as SluiceError {
                throw SyncError(error)
            }
        }
    }

    /// Waits like the asynchronous form and calls the block with the error or nil, on the queue or on an arbitrary thread.
    public func wait(
        for direction: ProgressDirection, queue: DispatchQueue? = nil, block: @Sendable @escaping ((any Error)?) -> Void
    ) {
        _Concurrency.Task {  // Unstructured because: the caller has no task; the session's end ends it.
            let failure: (any Error)?
            do {
                try await self.wait(for: direction)
                failure = nil
            } catch {
                failure = error
            }
            if let queue { queue.async { block(failure) } } else { block(failure) }
        }
    }
}

extension SyncSession.ConnectionState {
    init(_ connection: SyncReport.Connection) {
        switch connection {
        case .disconnected: self = .disconnected
        case .connecting: self = .connecting
        case .connected: self = .connected
        }
    }
}

extension Realm {
    /// The session that syncs the Realm; nil if it is not synced.
    public var syncSession: SyncSession? { core.file.session }
}
