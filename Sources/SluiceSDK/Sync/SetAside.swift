import Foundation
import SluiceCore
import SluiceReplica

/// Files that the server does not know any more and that the app did not want to have reset: they are moved away, never deleted.
enum SetAside {
    private static func mark(_ path: String) -> String { path + ".aside" }

    /// What is noted of a file.
    private struct Mark {
        var backup: String
        /// Whether the app has asked for it; otherwise the file may be mended before it is opened next.
        var isAsked: Bool
        /// Whose opening moves it; nil: anybody's.
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

    /// Where a file will lie.
    static func backup(of path: String) -> String {
        let url = URL(fileURLWithPath: path)
        let stamp = Date().ISO8601Format().replacing(":", with: "")
        return url.deletingLastPathComponent().appendingPathComponent("recovered-realms")
            .appendingPathComponent("recovered_realm-\(stamp)-\(UUID().uuidString.prefix(8))-\(url.lastPathComponent)").path
    }

    /// Has the file moved when it is opened next, since the server does not know it; forgotten when the server knows it again.
    /// - Parameter user: whose opening moves it; nil: anybody's.
    static func note(_ token: SyncError.ActionToken, user: String? = nil) {
        // What the app has asked for stands.
        if Mark(of: token.path)?.isAsked == true { return }
        write(Mark(backup: token.backup, isAsked: false, user: user), token)
    }

    /// Has the file moved when it is opened next, as the app wants it; by the opening of whom the error was about, if that is noted.
    static func ask(_ token: SyncError.ActionToken) {
        write(Mark(backup: token.backup, isAsked: true, user: Mark(of: token.path)?.user), token)
    }

    private static func write(_ mark: Mark, _ token: SyncError.ActionToken) {
        // Without the note the app still has the token; the next session brings the error again.
        try? Data(mark.json.utf8).write(to: URL(fileURLWithPath: Self.mark(token.path)), options: .atomic)
    }

    static func forget(_ path: String) { try? FileManager.default.removeItem(atPath: mark(path)) }

    static func forgetUnlessAsked(_ path: String) { if Mark(of: path)?.isAsked == false { forget(path) } }

    /// Moves a file that is noted and that nobody has open.
    /// - Parameter user: who opens it. What was noted for another, whose file it is not, is over.
    static func performNoted(_ path: String, for user: String?) throws {
        guard let mark = Mark(of: path) else { return }
        if let other = mark.user, other != user { return forget(path) }
        try move(path, to: mark.backup)
    }

    static func move(_ path: String, to backup: String) throws {
        do {
            try FileManager.default.createDirectory(
                at: URL(fileURLWithPath: backup).deletingLastPathComponent(), withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
            ReplicaFile.detach(path)
            // The log first: without its database it is nothing, and the database without it lacks something.
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
    /// Does what an error asks for now: moves the file of a client reset away, so that the Realm begins anew. Let go of all Realms on the
    /// file before; while one is open nothing happens, and the file is moved when it is opened next.
    public static func immediatelyHandleError(_ token: SyncError.ActionToken) {
        SetAside.ask(token)
        // Without a look at whose opening it waits for: the app has just said it.
        OpenFile.unlessOpen(token.path) { try? SetAside.move(token.path, to: token.backup) }
    }

    @available(*, deprecated, message: "The token says which app it is of.")
    public static func immediatelyHandleError(_ token: SyncError.ActionToken, syncManager: SyncManager) {
        immediatelyHandleError(token)
    }
}
