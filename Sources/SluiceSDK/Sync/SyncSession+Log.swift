import SluiceCore
import SluiceReplica
import SluiceSync

extension SyncSession {
    /// Logs a message for the session's app. The message is created only if it is shown.
    func log(_ level: LogLevel, _ category: Category.Sync.Client, _ message: @autoclosure () -> String) {
        user.app.syncManager.log(level, category) { "User \(user.id): \(message())" }
    }

    /// Logs a report of the engine.
    func log(_ report: SyncReport) {
        switch report {
        case .connection(.connected): log(.info, .network, "Connected.")
        case .connection(.connecting): log(.debug, .network, "Connecting.")
        case .connection(.disconnected): log(.debug, .network, "Not connected.")
        case .interrupted(let error, let isFault):
            log(isFault ? .error : .info, .network, "The connection was lost; reconnecting: \(error.description)")
        case .warning(let error): log(.warn, .session, error.description)
        case .stopped(let error): log(.error, .session, "Stopped: \(error.description)")
        case .loggedOut(let error): log(.error, .session, "Stopped, the user has to log in again: \(error.description)")
        case .resumed: log(.info, .session, "Begins again.")
        case .clientReset(let error): log(.error, .reset, "Stopped, the app has to decide on a client reset: \(error.description)")
        case .resetting(let error): log(.warn, .reset, "A client reset begins: \(error.description)")
        case .refused(let writes): log(.warn, .changeset, SyncSession.text(writes))
        case .setRefused(let version, let error, _):
            log(.error, .session, "The subscription set \(version) is refused: \(error.description)")
        case .downloading(let version, 0, let expected):
            log(.info, .session, "The download of the subscription set \(version) begins, of about \(expected) rows.")
        case .downloading(let version, let rows, _): log(.trace, .session, "The subscription set \(version) has \(rows) rows so far.")
        case .downloaded(let version): log(.info, .session, "The subscription set \(version) is complete.")
        case .receiving(let changes): log(.trace, .changeset, "\(changes) changes of the server are being downloaded.")
        case .received(let changes): log(.debug, .changeset, "\(changes) changes of the server are downloaded.")
        case .uploaded(let number): log(.debug, .changeset, "The changesets up to \(number) are on the server.")
        case .ingested(let number): log(.debug, .changeset, "The asymmetric objects up to batch \(number) are on the server.")
        }
    }

    /// The compensating writes as text, at most ten of them in detail.
    private static func text(_ writes: [CompensatingWrite]) -> String {
        let shown = writes.prefix(10).map { "\($0.object.type) \(RQLText.literal($0.object.key)): \($0.reason)" }
        return "\(writes.count) writes were rejected and undone: \(shown.joined(separator: "; "))"
    }
}
