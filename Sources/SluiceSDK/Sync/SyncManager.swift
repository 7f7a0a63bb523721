import Synchronization

/// Takes what sync has to say about an app's files when no call is waiting for it.
public final class SyncManager: Sendable {
    private let handler = Mutex<ErrorReportingBlock?>(nil)

    init() {}

    /// Called for errors of sync, on no particular thread. Set it before opening a Realm; nil: errors are not shown.
    public var errorHandler: ErrorReportingBlock? {
        get { handler.withLock { $0 } }
        set { handler.withLock { $0 = newValue } }
    }

    func report(_ error: any Error, _ session: SyncSession?) { errorHandler?(error, session) }
}

/// Takes an error and the session that it happened in, if one was concerned.
public typealias ErrorReportingBlock = @Sendable (any Error, SyncSession?) -> Void
