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
    public enum ProgressDirection: Sendable { case upload, download }

    private struct Status {
        var state = State.inactive
        var connection = ConnectionState.disconnected
        var hasStarted = false
        var loop: _Concurrency.Task<Void, Never>?
        var downloads: [WeakConfined<DownloadProgress>] = []
    }

    let user: User
    private let engine: SyncEngine
    private let status = Mutex(Status())
    private let back: Back

    /// The engine's reports find their way back to the session without keeping it alive.
    // Sendable because: the reference is set once, before the engine runs, and weak references may be read anywhere.
    private final class Back: @unchecked Sendable {
        weak var session: SyncSession?
    }

    init(replica: Replica, configuration: SyncConfiguration) {
        let user = configuration.user
        let back = Back()
        self.user = user
        self.back = back
        engine = SyncEngine(
            configuration: SluiceSync.SyncConfiguration(
                url: user.app.http.base, app: user.app.appId, sdk: "sluice-swift/\(SDKVersion.text)"),
            replica: replica,
            refresh: { () async throws(SluiceError) in try await user.tokenForSync() },
            onReport: { report in back.session?.take(report) })
        back.session = self
    }

    /// Begins to sync the first time that it is called.
    func startOnce() {
        let isFirst = status.withLock { status in
            defer { status.hasStarted = true }
            return !status.hasStarted
        }
        guard isFirst else { return }
        let engine = engine
        // Unstructured because: the engine lives as long as the file is open; `close` ends it.
        let loop = _Concurrency.Task { await engine.run() }
        status.withLock { status in
            status.loop = loop
            status.state = .active
        }
        if user.isLoggedIn { engine.start(token: user.accessToken) }
    }

    func close() {
        status.withLock { status in
            status.loop?.cancel()
            status.state = .invalid
        }
    }

    func report(_ error: any Error) { user.app.syncManager.report(error, self) }

    private func take(_ report: SyncReport) {
        switch report {
        case .connection(let connection): status.withLock { $0.connection = ConnectionState(connection) }
        case .warning(let error): self.report(SyncError(error))
        case .interrupted(let error):
            // Lost connections are everyday life and mend themselves.
            if error.code != .connectionFailed && error.code != .timeout { self.report(SyncError(error)) }
        case .stopped(let error), .loggedOut(let error):
            status.withLock { $0.state = .inactive }
            self.report(SyncError(error))
        case .clientReset(let error): self.report(SyncError(.clientResetError, error.description))
        case .refused(let writes): self.report(SyncError(refused: writes))
        case .setRefused(_, let error): self.report(SyncError(.invalidFlexibleSyncSubscriptions, error.description))
        case .downloading(_, let rows, let expected):
            // A whole that is only whole when the server says so.
            if expected > 0 { tell(min(0.99, Double(rows) / Double(expected))) }
        case .downloaded, .uploaded: break
        }
    }

    /// Tells one opening of the file how far the download is, as long as it lives.
    func observeDownload(_ progress: DownloadProgress) { status.withLock { $0.downloads.append(WeakConfined(progress)) } }

    private func tell(_ estimate: Double) {
        let downloads = status.withLock { status in
            status.downloads.removeAll { $0.content == nil }
            return status.downloads.compactMap(\.content)
        }
        for download in downloads { download.reached(estimate) }
    }

    // MARK: The app's side

    public var state: State { status.withLock { $0.state } }
    public var connectionState: ConnectionState { status.withLock { $0.connection } }

    /// The user whose file it is.
    public func parentUser() -> User? { user }

    /// Closes the connection until `resume`; reading and writing go on.
    public func suspend() {
        status.withLock { $0.state = .inactive }
        engine.pause()
    }

    /// Ends a suspension.
    public func resume() {
        status.withLock { $0.state = .active }
        engine.start(token: user.accessToken)
    }

    /// Tries to connect now instead of at the end of the waiting time.
    public func reconnect() { engine.reconnect() }

    /// Waits until everything that was written by now is on the server, or everything that the server has by now is here.
    /// - Throws: the error that ended the session, or `CancellationError`.
    public func wait(for direction: ProgressDirection) async throws { try await wait(for: direction, milliseconds: nil) }

    func wait(for direction: ProgressDirection, milliseconds: UInt64?) async throws {
        do {
            try await engine.wait(for: direction == .upload ? .upload : .download, milliseconds: milliseconds)
        } catch let error as SluiceError {
            throw SyncError(error)
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
