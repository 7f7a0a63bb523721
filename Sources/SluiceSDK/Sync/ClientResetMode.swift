import SluiceCore
import SluiceReplica
import SluiceSync

/// What becomes of a synced Realm whose file the server does not know any more: it was restored from a backup, or the file is another
/// user's. Being offline for long is no such case.
public enum ClientResetMode: Sendable {
    /// Sync stops, and the app decides: see `SyncError.clientResetInfo()`.
    /// - Parameter errorHandler: called instead of `SyncManager.errorHandler`.
    case manual(errorHandler: ErrorReportingBlock? = nil)
    /// The Realm becomes what the server has; what was written and not uploaded is lost.
    /// - Parameters:
    ///   - beforeReset: called with the Realm as it was, frozen, before anything changes.
    ///   - afterReset: called with the Realm as it was, frozen, and as it is, live where it is called.
    case discardUnsyncedChanges(
        beforeReset: (@Sendable (_ before: Realm) -> Void)? = nil, afterReset: (@Sendable (_ before: Realm, _ after: Realm) -> Void)? = nil)
    /// The Realm becomes what the server has with what was written and not uploaded, which is uploaded then. As `manual` where the
    /// server forbids that.
    case recoverUnsyncedChanges(
        beforeReset: (@Sendable (_ before: Realm) -> Void)? = nil, afterReset: (@Sendable (_ before: Realm, _ after: Realm) -> Void)? = nil)
    /// The same, and as `discardUnsyncedChanges` where the server forbids it.
    case recoverOrDiscardUnsyncedChanges(
        beforeReset: (@Sendable (_ before: Realm) -> Void)? = nil, afterReset: (@Sendable (_ before: Realm, _ after: Realm) -> Void)? = nil)

    typealias Before = @Sendable (_ before: Realm) -> Void
    typealias After = @Sendable (_ before: Realm, _ after: Realm) -> Void

    private var parts: (mode: ResetMode, before: Before?, after: After?) {
        switch self {
        case .manual: (.manual, nil, nil)
        case .discardUnsyncedChanges(let before, let after): (.discard, before, after)
        case .recoverUnsyncedChanges(let before, let after): (.recover, before, after)
        case .recoverOrDiscardUnsyncedChanges(let before, let after): (.recoverOrDiscard, before, after)
        }
    }

    @available(*, deprecated, renamed: "discardUnsyncedChanges")
    public static func discardLocal(
        beforeReset: (@Sendable (_ before: Realm) -> Void)? = nil, afterReset: (@Sendable (_ before: Realm, _ after: Realm) -> Void)? = nil
    ) -> ClientResetMode {
        .discardUnsyncedChanges(beforeReset: beforeReset, afterReset: afterReset)
    }

    var engineMode: ResetMode { parts.mode }
    var beforeReset: Before? { parts.before }
    var afterReset: After? { parts.after }

    /// Hands the error to the mode's own handler. - Returns: whether it has one.
    func handle(_ error: SyncError, _ session: SyncSession) -> Bool {
        guard case .manual(let handler?) = self else { return false }
        handler(error, session)
        return true
    }
}

/// The client resets of one file.
final class ClientReset: Sendable {
    let mode: ClientResetMode
    private let configuration: Realm.Configuration
    private let file: WeakFile
    /// The Realm as it was, between the two steps.
    private let before: Box

    // Sendable because: the reference is set once, before the engine runs, and weak references may be read anywhere.
    private final class WeakFile: @unchecked Sendable {
        weak var file: OpenFile?
    }

    // Sendable because: only the engine's task, which takes one step after the other, uses it; the Realm in it is frozen.
    private final class Box: @unchecked Sendable {
        var realm: Realm?
    }

    init(configuration: Realm.Configuration, mode: ClientResetMode) {
        self.configuration = configuration
        self.mode = mode
        file = WeakFile()
        before = Box()
    }

    func attach(_ file: OpenFile) { self.file.file = file }

    func take(_ step: ResetStep) {
        guard let file = file.file else { return }
        do {
            switch step {
            // It would keep the file open.
            case .failed: before.realm = nil
            case .before:
                let core = try RealmCore(configuration: configuration, file: file, scheduler: .none, floats: false)
                let frozen = Realm(core: core.freeze())
                before.realm = frozen
                mode.beforeReset?(frozen)
            case .after:
                defer { before.realm = nil }
                file.session?.log(.info, .reset, "The client reset is done.")
                isMended()
                guard let frozen = before.realm, let callback = mode.afterReset else { return }
                callback(frozen, Realm(core: try RealmCore(configuration: configuration, file: file, scheduler: .none, floats: true)))
            }
        } catch {
            file.session?.report(error)
        }
    }

    /// The app has to decide: the file is noted to be moved aside when it is opened next.
    func needsApp(_ error: SluiceError) -> SyncError {
        // A file of a Realm in memory goes with its last handle anyway, and the next opening begins anew.
        guard configuration.inMemoryIdentifier == nil, let path = configuration.path else {
            return SyncError(.clientResetError, error.description)
        }
        let token = SyncError.ActionToken(path: path, backup: SetAside.backup(of: path))
        // For whose file it is nothing is wrong with it.
        SetAside.note(token, user: error.code == .userMismatch ? configuration.syncOwner : nil)
        return SyncError(.clientResetError, error.description, action: token)
    }

    /// The server knows the file again: it stays where it is, unless the app has asked for it to be moved.
    func isMended() { if let path = configuration.path { SetAside.forgetUnlessAsked(path) } }
}
