import SluiceCore
import SluiceReplica
import SluiceSync

/// The handling of a synced Realm whose file is unknown to the server: a restored backup, or another user's file.
/// A long time offline does not cause a client reset.
public enum ClientResetMode: Sendable {
    /// Stops sync until the app decides; see `SyncError.clientResetInfo()`.
    /// - Parameter errorHandler: Called instead of `SyncManager.errorHandler`.
    case manual(errorHandler: ErrorReportingBlock? = nil)
    /// Replaces the Realm's data by the server's. Writes that were not uploaded are lost.
    /// - Parameters:
    ///   - beforeReset: Receives the frozen Realm before anything changes.
    ///   - afterReset: Receives the frozen Realm of before and the live one of after, for use within the callback.
    case discardUnsyncedChanges(
        beforeReset: (@Sendable (_ before: Realm) -> Void)? = nil, afterReset: (@Sendable (_ before: Realm, _ after: Realm) -> Void)? = nil)
    /// Replaces the Realm's data by the server's and uploads the writes that were not uploaded. The default.
    /// If the server forbids it, the mode acts as `manual`.
    case recoverUnsyncedChanges(
        beforeReset: (@Sendable (_ before: Realm) -> Void)? = nil, afterReset: (@Sendable (_ before: Realm, _ after: Realm) -> Void)? = nil)
    /// Like `recoverUnsyncedChanges`. If the server forbids recovery, the mode acts as `discardUnsyncedChanges`.
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

    /// Passes the error to the mode's own handler.
    /// - Returns: `true` if it has one.
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
    /// The frozen Realm between the steps `before` and `after`.
    private let before: Box

    private final class WeakFile: @unchecked Sendable {  // Sendable because: set once, before the engine runs; then only read.
        weak var file: OpenFile?
    }

    private final class Box: @unchecked Sendable {  // Sendable because: only the engine's task uses it, step by step; its Realm is frozen.
        var realm: Realm?
    }

    init(configuration: Realm.Configuration, mode: ClientResetMode) {
        self.configuration = configuration
        self.mode = mode
        file = WeakFile()
        before = Box()
    }

    func attach(_ file: OpenFile) { self.file.file = file }

    /// Runs the callbacks of a step. Called on the engine's task, which waits for them.
    func take(_ step: ResetStep) {
        guard let file = file.file else { return }
        do {
            switch step {
            // The frozen Realm would keep its snapshot and the file open.
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

    /// Marks the file for a move to the backup at its next opening, since the app has to decide.
    func needsApp(_ error: SluiceError) -> SyncError {
        // An in-memory file is deleted with its last handle, so the next opening starts with a new one.
        guard configuration.inMemoryIdentifier == nil, let path = configuration.path else {
            return SyncError(.clientResetError, error.description)
        }
        let token = SyncError.ActionToken(path: path, backup: ClientResetBackup.backup(of: path))
        // For its owner the file is valid, so only the opening by this user moves it.
        ClientResetBackup.note(token, user: error.code == .userMismatch ? configuration.syncOwner : nil)
        return SyncError(.clientResetError, error.description, action: token)
    }

    /// Removes the mark, since the server knows the file again, unless the app has requested the move.
    func isMended() { if let path = configuration.path { ClientResetBackup.forgetUnlessAsked(path) } }
}
