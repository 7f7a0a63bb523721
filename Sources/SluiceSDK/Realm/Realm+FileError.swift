public import Foundation
import SluiceCore
import Synchronization

extension Realm {
    private static let fileErrors = Mutex<(@Sendable (Realm.Error, URL) -> Void)?>(nil)

    /// Sets the handler for read errors of open Realms. It receives the error and the file.
    ///
    /// Reads cannot throw: unreadable data appears as absent. To prevent writes based on it, a damaged file becomes read-only.
    /// Later write transactions throw the error, and so does opening another Realm on the file.
    /// Errors of a synced Realm go to `SyncManager.errorHandler` instead, if it is set.
    /// - Parameter handler: Called on any thread. If nil, errors go to standard error.
    public static func onFileError(_ handler: (@Sendable (Realm.Error, URL) -> Void)?) { fileErrors.withLock { $0 = handler } }

    /// Calls the handler, or prints the error if there is none.
    static func report(_ error: any Swift.Error, path: String) {
        let error = error as? Realm.Error ?? Realm.Error(.fail, "\(error)")
        if let handler = fileErrors.withLock({ $0 }) { return handler(error, URL(fileURLWithPath: path)) }
        FileHandle.standardError.write(Data("Realm at \(path): \(error)\n".utf8))
    }
}

extension OpenFile {
    /// Records a read error and reports it to the session's error handler. If there is none, it goes to `Realm.onFileError`.
    func report(_ error: SluiceError) {
        if error.code == .replicaCorrupt { damage.withLock { $0 = $0 ?? error } }
        if let session, session.report(SyncError(error)) { return }
        Realm.report(Realm.Error(error), path: path)
    }

    /// Reports a failure that no caller waits for: of a write, or of the start of an observation.
    func report(failure error: any Error) {
        if let session, session.report(error) { return }
        Realm.report(error, path: path)
    }

    /// Returns the core for an observation on its own scheduler. If there is none, the reason is reported and nil is returned.
    func coreToObserve(_ configuration: Realm.Configuration, _ scheduler: Scheduler) -> RealmCore? {
        do {
            return try core(configuration, scheduler: scheduler)
        } catch {
            report(failure: error)
            return nil
        }
    }

    /// Throws the error that damaged the file, if any.
    func requireWhole() throws { if let error = damage.withLock({ $0 }) { throw Realm.Error(error) } }
}
