public import Foundation
import SluiceCore
import Synchronization

extension Realm {
    private static let fileErrors = Mutex<(@Sendable (Realm.Error, URL) -> Void)?>(nil)

    /// Calls the handler when the file of an open Realm cannot be read, with the reason and the file.
    ///
    /// Reading has no way to throw: what cannot be read shows nothing. So that nothing is written because of it, write
    /// transactions of a file that is damaged throw the reason from then on, and so does opening another Realm on it.
    /// - Parameter handler: it may be called on any thread; nil: a line on the standard error stream.
    public static func onFileError(_ handler: (@Sendable (Realm.Error, URL) -> Void)?) { fileErrors.withLock { $0 = handler } }

    static func tell(_ error: any Swift.Error, path: String) {
        let error = error as? Realm.Error ?? Realm.Error(.fail, "\(error)")
        if let handler = fileErrors.withLock({ $0 }) { return handler(error, URL(fileURLWithPath: path)) }
        FileHandle.standardError.write(Data("Realm at \(path): \(error)\n".utf8))
    }
}

extension OpenFile {
    /// The file cannot be read.
    func report(_ error: SluiceError) {
        if error.code == .replicaCorrupt { damage.withLock { $0 = $0 ?? error } }
        if let session { session.report(SyncError(error)) } else { report(failedWrite: Realm.Error(error)) }
    }

    /// A write that nobody waits for has failed.
    func report(failedWrite error: any Error) {
        if let session { session.report(error) } else { Realm.tell(error, path: path) }
    }

    /// - Throws: when the file has turned out to be damaged.
    func requireWhole() throws { if let error = damage.withLock({ $0 }) { throw Realm.Error(error) } }
}
