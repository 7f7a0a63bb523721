import Foundation
import SluiceCore
import SluiceReplica
import SluiceSync
import Synchronization

/// A local file that is open in this process: one replica and, if synced, one sync session. All Realms on the file share it.
/// It closes when the last of them is released.
final class OpenFile: Sendable {
    let path: String
    let replica: Replica
    /// Nil if the file is not synced.
    let session: SyncSession?
    let isReadOnly: Bool
    /// `true` if the file did not exist before.
    let isNew: Bool
    /// The right to sync the file. Nil if it is not synced or in memory: no other process can open an in-memory path.
    private let claim: SyncClaim?
    /// Nil if the file is not synced.
    private let expiry: SubscriptionExpiry?
    let cores = CoreCache()
    /// The error that prevents further writes.
    let damage = Mutex<SluiceError?>(nil)

    /// Held while the initial subscriptions run, so that concurrent openings run them once.
    /// Recursive because: their callback may open the file.
    private let subscribing = NSRecursiveLock()

    private struct Weak {
        weak var file: OpenFile?
    }

    /// Held while a file is opened. Recursive because: a migration block may open another file.
    private static let opening = NSRecursiveLock()
    /// The open files by path.
    private static let open = Mutex<[String: Weak]>([:])

    /// Returns the file of a configuration and opens it if necessary.
    /// - Returns: The file, and `true` if this call opened it.
    /// - Throws: `Realm.Error.alreadyOpen` if it is open with other permissions or another user, or the reason why opening failed.
    static func of(_ configuration: Realm.Configuration) throws -> (OpenFile, isNew: Bool) {
        let types = configuration.classes
        if types.isEmpty {
            throw Realm.Error(.schemaMismatch, "Set objectTypes in the configuration: no model classes were found automatically.")
        }
        guard let path = configuration.path else { throw Realm.Error(.fileAccess, "The configuration has no fileURL.") }
        opening.lock()
        defer { opening.unlock() }
        if let file = open.withLock({ $0[path]?.file }) {
            guard file.isReadOnly == configuration.readOnly else {
                throw Realm.Error(.alreadyOpen, "Realm at path '\(path)' already opened with different read permissions.")
            }
            if let user = configuration.syncConfiguration?.user, let session = file.session, session.user.id != user.id {
                throw Realm.Error(.alreadyOpen, "Realm at path '\(path)' already opened with different sync user.")
            }
            // A damaged file is not shared with further Realms.
            try file.requireWhole()
            return (file, false)
        }
        let file = try OpenFile(path, configuration)
        open.withLock { $0[path] = Weak(file: file) }
        return (file, true)
    }

    /// `true` if a Realm of this process has the file open.
    private static func isOpen(_ path: String) -> Bool { open.withLock { $0[path]?.file != nil } }

    /// Creates the old or the new side of a migration, which only the migration sees.
    init(path: String, replica: Replica) {
        self.path = path
        self.replica = replica
        session = nil
        isReadOnly = false
        isNew = false
        claim = nil
        expiry = nil
    }

    /// Runs the body unless a Realm of this process has the file open. No Realm can open it until the body returns.
    /// - Returns: The body's result; nil if the file is open.
    @discardableResult
    static func unlessOpen<R>(_ path: String, _ body: () throws -> R) rethrows -> R? {
        opening.lock()
        defer { opening.unlock() }
        return isOpen(path) ? nil : try body()
    }

    /// The sessions of a user's open files.
    static func sessions(of user: User) -> [SyncSession] {
        open.withLock { $0.values.compactMap { $0.file?.session } }.filter { $0.user == user }
    }

    private init(_ path: String, _ configuration: Realm.Configuration) throws {
        try OpenFile.check(configuration)
        self.path = path
        isReadOnly = configuration.readOnly
        let sync = configuration.syncConfiguration
        try OpenFile.makeFolder(of: path)
        let schemas = ModelSchema.closure(of: configuration.classes)
        if sync == nil, let asymmetric = schemas.first(where: { $0.objectClass is AsymmetricObject.Type }) {
            throw Realm.Error(.schemaMismatch, "Asymmetric table '\(asymmetric.name)' not allowed in a local Realm")
        }
        let isInMemory = configuration.inMemoryIdentifier != nil
        // The claim precedes any change of the files: another process may be using them.
        claim = sync == nil || isInMemory ? nil : try OpenFile.claim(path)
        if isInMemory {
            // A crashed process with the same id may have left a file. In-memory files are not backed up.
            ClientResetBackup.forget(path)
            ReplicaFile.remove(path)
        }
        try ClientResetBackup.performNoted(path, for: configuration.syncOwner)
        isNew = !FileManager.default.fileExists(atPath: path)
        if let seed = configuration.seedFilePath { try RealmFiles.plant(seed, at: path) }
        if isReadOnly, !FileManager.default.fileExists(atPath: path) {
            throw Realm.Error(.fileNotFound, "No Realm file exists at \(path), and it is opened for reading only.")
        }
        if sync == nil { try MigrationRun(path: path, configuration: configuration, schemas: schemas).run() }
        let schema = SluiceCore.Schema(schemas.map { $0.objectType(isSynced: sync != nil) })
        var options = configuration.replicaOptions
        if sync != nil { options.uploadBound = UploadSize.bound(schema) }
        replica = try asRealmError {
            try Replica(path: path, schema: schema, isSynced: sync != nil, indexes: schemas.indexes, options: options)
        }
        if sync == nil, !isReadOnly { try asRealmError { [replica] in try replica.noteSchema(version: configuration.schemaVersion) } }
        session = sync.map { [replica] in SyncSession(replica: replica, configuration: configuration, sync: $0) }
        // Drop expired subscriptions before any Realm can read the set.
        if sync != nil { try SubscriptionExpiry.drop(replica) }
        expiry = sync == nil ? nil : SubscriptionExpiry(replica, session)
        // The reference is weak, and is set before `start` runs the engine.
        session?.reset.attach(self)
    }

    deinit {
        expiry?.close()
        session?.close()
    }

    /// Checks options that no file can be opened with.
    private static func check(_ configuration: Realm.Configuration) throws {
        if configuration.encryptionKey != nil { throw Realm.Error.encryption }
        guard configuration.syncConfiguration != nil else { return }
        if configuration.readOnly {
            throw Realm.Error(.invalidInput, "A synced Realm cannot be read only: the server's changes are written to it.")
        }
    }

    private static func makeFolder(of path: String) throws {
        do {
            let folder = URL(fileURLWithPath: path).deletingLastPathComponent()
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw Realm.Error(.fileAccess, "The folder of \(path) cannot be created: \(error.localizedDescription)")
        }
    }

    private static func claim(_ path: String) throws -> SyncClaim {
        guard let claim = try asRealmError({ try SyncClaim.take(path) }) else {
            throw Realm.Error(
                .multipleSyncAgents,
                "The synced Realm at path '\(path)' is open in another process, and only one process may sync it. Close it there.")
        }
        return claim
    }

    /// Starts to sync. Does nothing if sync has started.
    func start() { session?.startOnce() }

    /// Runs the configuration's callback in an update of the subscription set, if the set is new or a rerun is due.
    func runInitialSubscriptions(_ configuration: Realm.Configuration, core: RealmCore, isFirstOpen: Bool) throws {
        guard let initial = configuration.syncConfiguration?.initialSubscriptions else { return }
        subscribing.lock()
        defer { subscribing.unlock() }
        // Read under the lock: a concurrent opening may have run the callback.
        let current = try asRealmError { try replica.currentSubscriptionSet() }
        guard current.version == 0 || initial.rerunOnOpen && isFirstOpen else { return }
        let set = core.subscriptions
        _ = try set.commit { initial.callback(set) }
    }

    /// Waits for the server's answer to a subscription set.
    /// - Parameters:
    ///   - seconds: The longest wait. If nil, the wait is unbounded.
    ///   - isImpatient: `true` if a connection failure ends the wait.
    /// - Throws: `Realm.Error.subscriptionFailed` with the server's text; `ETIMEDOUT`; the error that ended the session.
    func waitForSubscriptionSet(_ version: UInt64, seconds: TimeInterval? = nil, isImpatient: Bool = false) async throws {
        try await OpenFile.waitForSubscriptionSet(version, replica, session, seconds: seconds, isImpatient: isImpatient)
    }

    /// Waits without keeping the file open. Closing the file ends the wait.
    static func waitForSubscriptionSet(
        _ version: UInt64, _ replica: Replica, _ session: SyncSession?, seconds: TimeInterval? = nil, isImpatient: Bool = false
    ) async throws {
        // Captures the replica, not the file.
        let answer: @Sendable () async throws -> Void = {
            if case .error(_, let message) = try await replica.answer(toSubscriptionSet: version) {
                throw Realm.Error(.subscriptionFailed, message)
            }
        }
        guard let session else { return try await answer() }
        try await session.events.unlessEnded(seconds: seconds, isImpatient: isImpatient, answer)
    }
}

extension Realm.Configuration {
    fileprivate var replicaOptions: ReplicaOptions {
        ReplicaOptions(
            isReadOnly: readOnly, isTemporary: inMemoryIdentifier != nil, shouldCompact: shouldCompactOnLaunch,
            owner: syncOwner)
    }

    /// The owner of a synced file, in the form that the file stores.
    var syncOwner: String? { syncConfiguration.map { "\($0.user.app.appId)/\($0.user.id)" } }
}
