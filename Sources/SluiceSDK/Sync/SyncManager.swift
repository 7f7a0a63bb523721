import SluiceSync
import Synchronization

/// Receives errors and log messages of an app's synced files, and holds their connection options. Safe to use on any thread.
public final class SyncManager: Sendable {
    private struct State {
        var handler: ErrorReportingBlock?
        var userAgent = ""
        var headers: [String: String]?
        var authorizationHeader: String?
        var timeouts: SyncTimeoutOptions?
        var logLevel: LogLevel?
        var logger: LogFunction?
    }

    /// Receives log messages.
    public typealias LogFunction = @Sendable (LogLevel, String) -> Void

    private let state = Mutex(State())

    init(timeouts: SyncTimeoutOptions?) { state.withLock { $0.timeouts = timeouts } }

    /// Receives sync errors on an arbitrary thread. Set it before opening a Realm.
    /// If nil, errors are dropped, except those of the local file, which go to `Realm.onFileError`.
    /// Compensating writes are kept and reported when the file is opened next with a handler.
    public var errorHandler: ErrorReportingBlock? {
        get { state.withLock { $0.handler } }
        set { state.withLock { $0.handler = newValue } }
    }

    /// Text that identifies the app in the server's log, after the SDK's name and version. Applies to Realms that are opened later.
    public var userAgent: String {
        get { state.withLock { $0.userAgent } }
        set { state.withLock { $0.userAgent = newValue } }
    }

    /// Headers of the request that opens a connection, for intermediaries. Applies to Realms that are opened later.
    public var customRequestHeaders: [String: String]? {
        get { state.withLock { $0.headers } }
        set { state.withLock { $0.headers = newValue } }
    }

    /// The header that carries access tokens, for intermediaries that reserve `Authorization`. If nil, HTTP requests use `Authorization`.
    ///
    /// It applies to the app's HTTP requests. The request that opens a connection carries a token only if this is set.
    /// The server reads `Authorization`, so the intermediary must copy the token to it.
    /// Applies to later requests, and to Realms that are opened later.
    public var authorizationHeaderName: String? {
        get { state.withLock { $0.authorizationHeader } }
        set { state.withLock { $0.authorizationHeader = newValue } }
    }

    /// The timeouts of sync. If nil, the defaults apply. Applies to Realms that are opened later.
    public var timeoutOptions: SyncTimeoutOptions? {
        get { state.withLock { $0.timeouts } }
        set { state.withLock { $0.timeouts = newValue } }
    }

    /// The log level of this app's sync. Setting it turns the app's log on, independently of `Logger`'s levels.
    /// Messages go to `logger`, or to `Logger.shared` if that is nil.
    public var logLevel: LogLevel {
        get {
            let (own, logger) = state.withLock { ($0.logLevel, $0.logger) }
            return own ?? (logger == nil ? Logger.logLevel() : .info)
        }
        set { state.withLock { $0.logLevel = newValue } }
    }

    /// Receives this app's log, on any thread and concurrently. Sync waits for it. If nil, `Logger.shared` receives the log.
    /// Setting it turns the app's log on, at `.info` if no level is set.
    public var logger: LogFunction? {
        get { state.withLock { $0.logger } }
        set { state.withLock { $0.logger = newValue } }
    }

    /// Logs a message of this app.
    /// - Parameter message: Evaluated only if the message is shown.
    func log(_ level: LogLevel, _ category: any LogCategory, _ message: () -> String) {
        let (own, logger) = state.withLock { ($0.logLevel, $0.logger) }
        if own == nil, logger == nil { return Logger.log(level, category, message) }
        guard level.isShown(at: own ?? .info) else { return }
        let text = Logger.bounded(message())
        if let logger { logger(level, text) } else { Logger.shared.write(level, category, text) }
    }

    /// The SDK's and the app's name, as sent to the server.
    package var sdk: String {
        let agent = userAgent
        return "sluice-swift/\(SDKVersion.text)" + (agent.isEmpty ? "" : " \(agent)")
    }

    /// Passes an error to the handler.
    /// - Returns: `true` if there is a handler.
    @discardableResult
    func report(_ error: any Error, _ session: SyncSession?) -> Bool {
        guard let errorHandler else { return false }
        errorHandler(error, session)
        return true
    }
}

extension App {
    /// The configuration of a session's engine, with the manager's options at this time.
    func engineConfiguration(reset: ResetMode) -> SluiceSync.SyncConfiguration {
        SluiceSync.SyncConfiguration(
            url: http.base, app: appId, sdk: syncManager.sdk, headers: syncManager.customRequestHeaders ?? [:],
            authorizationHeader: syncManager.authorizationHeaderName, timing: syncManager.timeoutOptions?.values.timing ?? SyncTiming(),
            reset: reset)
    }
}

/// Receives an error and its session, if there is one.
public typealias ErrorReportingBlock = @Sendable (any Error, SyncSession?) -> Void
