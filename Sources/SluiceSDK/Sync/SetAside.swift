import Foundation
import SluiceReplica

/// Files that the server does not know any more and that the app did not want to have reset: they are moved away, never deleted.
enum SetAside {
    private static func mark(_ path: String) -> String { path + ".aside" }

    /// Where a file will lie.
    static func backup(of path: String) -> String {
        let url = URL(fileURLWithPath: path)
        let stamp = Date().ISO8601Format().replacing(":", with: "")
        return url.deletingLastPathComponent().appendingPathComponent("recovered-realms")
            .appendingPathComponent("recovered_realm-\(stamp)-\(UUID().uuidString.prefix(8))-\(url.lastPathComponent)").path
    }

    /// Has the file moved when it is opened next.
    static func note(_ token: SyncError.ActionToken) {
        // Without the note the app still has the token; the next session brings the error again.
        try? Data(token.backup.utf8).write(to: URL(fileURLWithPath: mark(token.path)), options: .atomic)
    }

    static func forget(_ path: String) { try? FileManager.default.removeItem(atPath: mark(path)) }

    /// Moves a file that is noted and that nobody has open.
    static func performNoted(_ path: String) throws {
        guard let data = FileManager.default.contents(atPath: mark(path)) else { return }
        try move(path, to: String(decoding: data, as: UTF8.self))
    }

    static func move(_ path: String, to backup: String) throws {
        do {
            try FileManager.default.createDirectory(
                at: URL(fileURLWithPath: backup).deletingLastPathComponent(), withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
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
        SetAside.note(token)
        OpenFile.unlessOpen(token.path) { try? SetAside.performNoted(token.path) }
    }

    @available(*, deprecated, message: "The token says which app it is of.")
    public static func immediatelyHandleError(_ token: SyncError.ActionToken, syncManager: SyncManager) {
        immediatelyHandleError(token)
    }
}
