public import Foundation

/// A place for the logins of an app's users on the device, such as a keychain. Without one they are in a file with mode 0600.
///
/// Set it in `AppConfiguration.credentialStorage`. The content is JSON with refresh tokens, a few kilobytes for each user. For one app the
/// SDK writes one content at a time, from any thread. Several processes of an app may share a storage.
public protocol CredentialStorage: AnyObject, Sendable {
    /// Returns the stored content of an app; nil if there is none.
    /// - Throws: Any error, if the content may exist and cannot be read. The users must log in again, and the error is logged.
    func content(ofApp appId: String) throws -> Data?

    /// Replaces the content of an app, all of it or nothing.
    /// - Throws: Any error. The sync manager's error handler receives a `fileAccess` error with its description.
    func store(_ content: Data, ofApp appId: String) throws

    /// Moves content away that the SDK cannot read, before new content replaces it. By default nothing is moved.
    func setAside(contentOfApp appId: String) throws
}

extension CredentialStorage {
    public func setAside(contentOfApp appId: String) throws {}
}

/// The logins of an app in `users.json` of the app's folder, which has mode 0700. The file has mode 0600.
final class CredentialFile: CredentialStorage {
    private let folder: URL

    /// - Parameter folder: The folder of the app.
    init(folder: URL) { self.folder = folder }

    var path: String { folder.appendingPathComponent("users.json").path }
    /// The path to which an unreadable file is moved. The file of an earlier move is replaced.
    var asidePath: String { "\(path).unreadable" }

    func content(ofApp appId: String) throws -> Data? {
        do {
            return try Data(contentsOf: URL(fileURLWithPath: path))
        } catch let error as CocoaError where error.code == .fileReadNoSuchFile {
            return nil
        }
    }

    func store(_ content: Data, ofApp appId: String) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let fresh = "\(path).new"
        // `rename` replaces the old file in one step.
        guard FileManager.default.createFile(atPath: fresh, contents: content, attributes: [.posixPermissions: 0o600]),
            rename(fresh, path) == 0
        else { throw Realm.Error(.fileAccess, "The file \(path) cannot be written.") }
    }

    func setAside(contentOfApp appId: String) throws {
        guard FileManager.default.fileExists(atPath: path), rename(path, asidePath) != 0 else { return }
        throw Realm.Error(.fileAccess, "The unreadable file \(path) cannot be moved to \(asidePath). Remove one of them.")
    }
}
