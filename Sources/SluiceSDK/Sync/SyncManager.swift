import Synchronization

/// Takes what sync has to say about an app's files when no call is waiting for it, and knows what all of them sync with.
public final class SyncManager: Sendable {
    private struct State {
        var handler: ErrorReportingBlock?
        var userAgent = ""
        var headers: [String: String]?
    }

    private let state = Mutex(State())

    init() {}

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

/// Takes an error and the session that it happened in, if one was concerned.
public typealias ErrorReportingBlock = @Sendable (any Error, SyncSession?) -> Void
