public import Dispatch
import SluiceCore
import SluiceReplica
import SluiceSync
import Synchronization

/// The connection of a local file with the server.
public final class SyncSession: Sendable {
    /// Whether the session tries to be connected.
    public enum State: Sendable { case active, inactive, invalid }
    public enum ConnectionState: Sendable { case disconnected, connecting, connected }

    private struct Status {
        /// Begun or resumed, and neither suspended nor without a user who is logged in.
        var isWanted = false
        /// By the app, which alone ends it.
        var isSuspended = false
        /// The engine has stopped by itself, until it says that it goes on.
        var hasEnded = false
        var isClosed = false
        /// Of an active session.
        var connected = ConnectionState.disconnected
        var loop: _Concurrency.Task<Void, Never>?

        var state: State { isClosed ? .invalid : isWanted && !hasEnded ? .active : .inactive }

        /// Disconnected at once, although the connection's end takes a moment: the app has been told to expect nothing more of it.
        var connection: ConnectionState { state == .active ? connected : .disconnected }
    }

    let user: User
    let events = SessionEvents()
    let reset: ClientReset
    private let syncConfiguration: SyncConfiguration
    private let replica: Replica
    private let engine: SyncEngine
    private let status = Mutex(Status())
    private let downloads = DownloadProgress()
    private let uploads: UploadProgress
    private let observer: UInt64
    private let back: Back

    /// The engine's reports find their way back to the session without keeping it alive.
    // Sendable because: the reference is set once, before the engine runs, and weak references may be read anywhere.
    private final class Back: @unchecked Sendable {
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
        observer = replica.onLocalChange { uploads.look() }
        engine = SyncEngine(
            configuration: user.app.engineConfiguration(reset: sync.clientResetMode.engineMode),
            replica: replica,
            refresh: { () async throws(SluiceError) in try await user.tokenForSync() },
            onReport: { report in back.session?.take(report) ?? false },
            onReset: { step in
                reset.take(step)
                // It may have dropped what was to be uploaded.
                if step == .after { uploads.look() }
            })
        back.session = self
    }

    /// Begins to sync the first time that it is called.
    func startOnce() {
        status.withLock { status in
            guard status.loop == nil, !status.isClosed else { return }
            // Unstructured because: the engine lives as long as the file is open; `close` ends it.
            status.loop = _Concurrency.Task { [engine] in await engine.run() }
            guard user.isLoggedIn else { return events.tell(.ended(.loggedOut(user))) }
            // By a callback of the opening, or another Realm.
            guard !status.isSuspended else { return }
            status.isWanted = true
            engine.start(token: user.accessToken)
        }
    }

    func close() {
        replica.removeObserver(observer)
        status.withLock { status in
            status.isClosed = true
            status.loop?.cancel()
        }
        events.close()
    }

    /// - Returns: whether anybody heard.
    @discardableResult
    func report(_ error: any Error) -> Bool { user.app.syncManager.report(error, self) }

    /// What the engine says.
    /// - Returns: whether anybody heard who had to.
    @discardableResult
    func take(_ report: SyncReport) -> Bool {
        log(report)
        switch report {
        case .connection(let connection):
            status.withLock { $0.connected = ConnectionState(connection) }
            if connection == .connected { reset.isMended() }
        case .warning(let error): self.report(SyncError(.serverWarning, error.description))
        case .interrupted(let error, let isFault):
            events.tell(.interrupted(error))
            if isFault { self.report(SyncError(error)) }
        case .stopped(let error), .loggedOut(let error):
            let failure = SyncError(error)
            stopped(failure)
            self.report(failure)
        case .clientReset(let error):
            let failure = reset.needsApp(error)
            // Before the app hears of it, which may resume the session.
            stopped(failure)
            if !reset.mode.handle(failure, self) { self.report(failure) }
        case .resumed:
            status.withLock { $0.hasEnded = false }
            events.begin()
        // It mends itself, and the callbacks of the mode say when.
        case .resetting: break
        case .refused(let writes): return state != .invalid && self.report(SyncError(refused: writes))
        case .setRefused(let version, let error, let isLast):
            // Nothing of it comes, and the set before has come, unless that is under way, or a later one is to be asked for.
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

    private func stopped(_ error: SyncError) {
        status.withLock { ($0.hasEnded, $0.connected) = (true, .disconnected) }
        events.tell(.ended(error))
    }

    // MARK: The app's side

    public var state: State { status.withLock { $0.state } }
    public var connectionState: ConnectionState { status.withLock { $0.connection } }

    /// The user whose file it is.
    public func parentUser() -> User? { user }

    /// What the file was opened with; nil when the session is over.
    public func configuration() -> SyncConfiguration? { state == .invalid ? nil : syncConfiguration }

    /// Stays off the network until `resume`; reading and writing go on.
    public func suspend() {
        status.withLock { $0.isSuspended = true }
        pause()
    }

    private func pause() {
        // The engine hears of it in the order in which the session does.
        status.withLock { status in
            (status.isWanted, status.connected) = (false, .disconnected)
            engine.pause()
        }
    }

    /// Ends a suspension, and tries again after an error that ended the session. While the user is logged out it begins with the login.
    public func resume() {
        status.withLock { $0.isSuspended = false }
        guard state != .invalid, user.isLoggedIn else { return }
        events.begin()
        status.withLock { status in
            (status.isWanted, status.hasEnded) = (true, false)
            engine.start(token: user.accessToken)
        }
    }

    /// The user has logged out: nothing that is waited for can happen any more.
    func logOut() {
        pause()
        events.tell(.ended(.loggedOut(user)))
    }

    /// The user has logged in: what the app has suspended waits for the app.
    func logIn() {
        if status.withLock(\.isSuspended) { events.begin() } else { resume() }
    }

    /// Tries to connect now instead of at the end of the waiting time.
    public func reconnect() { engine.reconnect() }

    /// Calls the block with how far a transfer is, on a queue of its own, until the token goes away or the mode is over.
    ///
    /// A download is what subscriptions ask for: there is something to tell from when the server begins to send it. After that,
    /// `reportIndefinitely` tells of each run of the server's commits, below 1 while it comes and 1 when the Realm has it. A download is
    /// measured in rows, an upload in bytes.
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
            let isPending = newest?.state == .pending || newest?.state == .bootstrapping
            downloads.add(listener, pending: isPending ? newest?.version : nil)
        }
        return token
    }

    /// Waits until everything that was written by now is on the server, or everything that the server has by now is here.
    /// - Throws: the error that ended the session, also when the user logs out meanwhile, or `CancellationError`.
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

    /// The same for code without async.
    public func wait(
        for direction: ProgressDirection, queue: DispatchQueue? = nil, block: @Sendable @escaping ((any Error)?) -> Void
    ) {
        // Unstructured because: the caller has no task; the engine's end ends it.
        _Concurrency.Task {
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
    /// The session that syncs the Realm; nil when it is not synced.
    public var syncSession: SyncSession? { core.file.session }
}
