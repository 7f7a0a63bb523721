import Foundation
import SluiceCore
import SluiceReplica
import SluiceValues

/// The client reset backup: moves files that the server does not know to a backup, if the app did not choose another reset mode.
/// Files are moved, never deleted. The request is a small JSON file beside the database.
enum ClientResetBackup {
    private static func mark(_ path: String) -> String { path + ".aside" }

    /// The content of a request.
    private struct Mark {
        var backup: String
        /// `true` if the app has requested the move. Otherwise the server may accept the file again before it is opened.
        var isAsked: Bool
        /// The user whose opening moves the file. If nil, any opening does.
        var user: String?

        init(backup: String, isAsked: Bool, user: String?) {
            self.backup = backup
            self.isAsked = isAsked
            self.user = user
        }

        init?(of path: String) {
            guard let data = FileManager.default.contents(atPath: mark(path)), let json = try? JSON.parse(Array(data)),
                let backup = json["backup"]?.string
            else { return nil }
            self.init(backup: backup, isAsked: json["asked"] == .bool(true), user: json["user"]?.string)
        }

        var json: JSON { ["backup": .string(backup), "asked": .bool(isAsked), "user": user.map { .string($0) } ?? .null] }
    }

    /// The path of the backup: unique, in the folder `recovered-realms` beside the file.
    static func backup(of path: String) -> String {
        let url = URL(fileURLWithPath: path)
        let stamp = Date().ISO8601Format().replacing(":", with: "")
        return url.deletingLastPathComponent().appendingPathComponent("recovered-realms")
            .appendingPathComponent("recovered_realm-\(stamp)-\(UUID().uuidString.prefix(8))-\(url.lastPathComponent)").path
    }

    /// Requests the move at the next opening, because the server does not know the file. `forgetUnlessAsked` withdraws it.
    /// - Parameter user: The user whose opening moves the file. If nil, any opening does.
    static func note(_ token: SyncError.ActionToken, user: String? = nil) {
        // A request of the app takes precedence.
        if Mark(of: token.path)?.isAsked == true { return }
        write(Mark(backup: token.backup, isAsked: false, user: user), token)
    }

    /// Requests the move at the next opening for the app. A user that was recorded with the error is kept.
    static func ask(_ token: SyncError.ActionToken) {
        write(Mark(backup: token.backup, isAsked: true, user: Mark(of: token.path)?.user), token)
    }

    private static func write(_ mark: Mark, _ token: SyncError.ActionToken) {
        // If this fails, the app still has the token, and the next session reports the error again.
        try? Data(mark.json.utf8).write(to: URL(fileURLWithPath: Self.mark(token.path)), options: .atomic)
    }

    /// Withdraws a request.
    static func forget(_ path: String) { try? FileManager.default.removeItem(atPath: mark(path)) }

    /// Withdraws a request that the app has not made itself.
    static func forgetUnlessAsked(_ path: String) { if Mark(of: path)?.isAsked == false { forget(path) } }

    /// Moves a file with a request. The file must not be open.
    /// - Parameter user: The user of the opening configuration. A request for another user is withdrawn: the file was not that user's.
    static func performNoted(_ path: String, for user: String?) throws {
        guard let mark = Mark(of: path) else { return }
        if let other = mark.user, other != user { return forget(path) }
        try move(path, to: mark.backup)
    }

    /// Moves the files of a database to the backup and withdraws the request.
    static func move(_ path: String, to backup: String) throws {
        do {
            try FileManager.default.createDirectory(
                at: URL(fileURLWithPath: backup).deletingLastPathComponent(), withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
            ReplicaFile.detach(path)
            // Log first: alone it is useless but harmless, whereas a database without its log lacks commits.
            for (source, target) in zip(ReplicaFile.files(path), ReplicaFile.files(backup)).reversed()
            where FileManager.default.fileExists(atPath: source) {
                try FileManager.default.moveItem(atPath: source, toPath: target)
            }
        } catch {
            throw Realm.Error(.fileOperationFailed, "The file \(path) cannot be moved to \(backup): \(error.localizedDescription)")
        }
        forget(path)
    }
}

extension SyncSession {
    /// Performs the action of an error now: moves the file of a client reset to its backup, so that the Realm starts empty.
    /// Release all Realms on the file before. If one is open, the file is moved when it is opened next.
    public static func immediatelyHandleError(_ token: SyncError.ActionToken) {
        ClientResetBackup.ask(token)
        // Without the user check: the app has requested the move explicitly.
        OpenFile.unlessOpen(token.path) { try? ClientResetBackup.move(token.path, to: token.backup) }
    }

    @available(*, deprecated, message: "The token names the app that it belongs to.")
    public static func immediatelyHandleError(_ token: SyncError.ActionToken, syncManager: SyncManager) {
        immediatelyHandleError(token)
    }
}
