import SluiceSync
import Synchronization

/// Takes what sync has to say about an app's files when no call is waiting for it, and knows what all of them sync with.
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

    /// Takes messages of the log.
    public typealias LogFunction = @Sendable (LogLevel, String) -> Void

    private let state = Mutex(State())

    init(timeouts: SyncTimeoutOptions?) { state.withLock { $0.timeouts = timeouts } }

    /// Called for errors of sync, on no particular thread. Set it before opening a Realm; nil: errors are not shown, but writes that the
    /// server refused are told when a Realm is opened that finds one.
    public var errorHandler: ErrorReportingBlock? {
        get { state.withLock { $0.handler } }
        set { state.withLock { $0.handler = newValue } }
    }

    /// What the server's log shows of the app, after the SDK's own name and version. It counts for Realms that are opened later.
    public var userAgent: String {
        get { state.withLock { $0.userAgent } }
        set { state.withLock { $0.userAgent = newValue } }
    }

    /// Sent with the request that opens a connection, for what is between app and server. It counts for Realms that are opened later.
    public var customRequestHeaders: [String: String]? {
        get { state.withLock { $0.headers } }
        set { state.withLock { $0.headers = newValue } }
    }

    /// The header that carries tokens, for what is between app and server and takes another than `Authorization`: that of the app's HTTP
    /// requests, and of the request that opens a connection, which carries none by itself. The server reads `Authorization`, so whatever
    /// takes the header has to pass the token on in that. It counts for requests from here on, and for Realms that are opened later.
    public var authorizationHeaderName: String? {
        get { state.withLock { $0.authorizationHeader } }
        set { state.withLock { $0.authorizationHeader = newValue } }
    }

    /// How long sync waits for the server; nil: as long as by default. It counts for Realms that are opened later.
    public var timeoutOptions: SyncTimeoutOptions? {
        get { state.withLock { $0.timeouts } }
        set { state.withLock { $0.timeouts = newValue } }
    }

    /// How much of this app's sync is logged. Setting it turns the app's log on, by itself and without `Logger`'s levels: to `logger`, or
    /// where that is nil to `Logger.shared`.
    public var logLevel: LogLevel {
        get {
            let (own, logger) = state.withLock { ($0.logLevel, $0.logger) }
            return own ?? (logger == nil ? Logger.logLevel() : .info)
        }
        set { state.withLock { $0.logLevel = newValue } }
    }

    /// Takes the log of this app's sync, from any thread and several messages at a time; sync waits for it. Setting it turns the app's
    /// log on, by `.info` where no level is set. Nil: `Logger.shared` does.
    public var logger: LogFunction? {
        get { state.withLock { $0.logger } }
        set { state.withLock { $0.logger = newValue } }
    }

    /// - Parameter message: called only when it is shown.
    func log(_ level: LogLevel, _ category: any LogCategory, _ message: () -> String) {
        let (own, logger) = state.withLock { ($0.logLevel, $0.logger) }
        if own == nil, logger == nil { return Logger.log(level, category, message) }
        guard level.isShown(at: own ?? .info) else { return }
        let text = Logger.bounded(message())
        if let logger { logger(level, text) } else { Logger.shared.write(level, category, text) }
    }

    /// As the server hears of the app.
    package var sdk: String {
        let agent = userAgent
        return "sluice-swift/\(SDKVersion.text)" + (agent.isEmpty ? "" : " \(agent)")
    }

    /// - Returns: whether anybody heard.
    @discardableResult
    func report(_ error: any Error, _ session: SyncSession?) -> Bool {
        guard let errorHandler else { return false }
        errorHandler(error, session)
        return true
    }
}

extension App {
    /// What a session begins with.
    func engineConfiguration(reset: ResetMode) -> SluiceSync.SyncConfiguration {
        SluiceSync.SyncConfiguration(
            url: http.base, app: appId, sdk: syncManager.sdk, headers: syncManager.customRequestHeaders ?? [:],
            authorizationHeader: syncManager.authorizationHeaderName, timing: syncManager.timeoutOptions?.values.timing ?? SyncTiming(),
            reset: reset)
    }
}

/// Takes an error and the session that it happened in, if one was concerned.
public typealias ErrorReportingBlock = @Sendable (any Error, SyncSession?) -> Void
