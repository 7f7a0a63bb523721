import Foundation
import SluiceCore
import SluiceReplica
import SluiceSync
import Synchronization

/// One local file that is open in this process: one replica and, for a synced file, one sync engine, shared by all Realms on
/// it. It closes when the last of them goes away.
final class OpenFile: Sendable {
    let path: String
    let replica: Replica
    /// Nil for a file that is not synced.
    let session: SyncSession?
    let cores = CoreCache()

    private struct Weak {
        weak var file: OpenFile?
    }

    private static let open = Mutex<[String: Weak]>([:])

    /// The file of a configuration, opened when it is not open yet.
    /// - Returns: the file, and whether this call opened it.
    static func of(_ configuration: Realm.Configuration) throws -> (OpenFile, isNew: Bool) {
        let types = configuration.classes
        if types.isEmpty {
            throw Realm.Error(.schemaMismatch, "Set objectTypes in the configuration: no model classes were found by themselves.")
        }
        guard let path = configuration.fileURL?.path else { throw Realm.Error(.fileAccess, "The configuration has no fileURL.") }
        return try open.withLock { open in
            if let file = open[path]?.file { return (file, false) }
            let file = try OpenFile(path: path, types: types, sync: configuration.syncConfiguration)
            open[path] = Weak(file: file)
            return (file, true)
        }
    }

    /// Pauses the sync of a user's files.
    static func stop(user: User) {
        let files = open.withLock { $0.values.compactMap(\.file) }
        for file in files where file.session?.user == user { file.session?.suspend() }
    }

    private init(path: String, types: [ObjectBase.Type], sync: SyncConfiguration?) throws {
        self.path = path
        do {
            let folder = URL(fileURLWithPath: path).deletingLastPathComponent()
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw Realm.Error(.fileAccess, "The folder of \(path) cannot be made: \(error.localizedDescription)")
        }
        let schemas = ModelSchema.closure(of: types)
        if sync == nil, let asymmetric = schemas.first(where: { $0.objectClass is AsymmetricObject.Type }) {
            throw Realm.Error(.schemaMismatch, "Asymmetric table '\(asymmetric.name)' not allowed in a local Realm")
        }
        replica = try asRealmError {
            try Replica(
                path: path, schema: SluiceCore.Schema(schemas.map(\.objectType)), isSynced: sync != nil, inverses: schemas.inverses,
                indexes: schemas.indexes)
        }
        session = sync.map { [replica] in SyncSession(replica: replica, configuration: $0) }
    }

    deinit { session?.close() }

    /// Begins to sync; harmless when it has begun.
    func start() { session?.startOnce() }

    func report(_ error: SluiceError) { session?.report(SyncError(error)) }

    /// Runs the callback of the configuration in an update of the subscription set, when its time has come.
    func runInitialSubscriptions(_ configuration: Realm.Configuration, core: RealmCore, isFirstOpen: Bool) throws {
        guard let initial = configuration.syncConfiguration?.initialSubscriptions else { return }
        let current = try asRealmError { try replica.currentSubscriptionSet() }
        guard current.version == 0 || initial.rerunOnOpen && isFirstOpen else { return }
        let set = Realm(core: core).subscriptions
        _ = try set.commit { initial.callback(set) }
    }

    /// Waits for the server's answer to a subscription set.
    /// - Throws: `Realm.Error.subscriptionFailed` with the server's text.
    func waitForSubscriptionSet(_ version: UInt64) async throws {
        if case .error(_, let message) = try await replica.answer(toSubscriptionSet: version) {
            throw Realm.Error(.subscriptionFailed, message)
        }
    }
}
