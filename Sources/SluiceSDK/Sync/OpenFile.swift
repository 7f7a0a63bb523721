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
    let isReadOnly: Bool
    /// Whether there was none when it was opened.
    let isNew: Bool
    /// Nil for a file that is not synced, or in memory: no other process has its path.
    private let claim: SyncClaim?
    /// Nil for a file that is not synced.
    private let expiry: SubscriptionExpiry?
    let cores = CoreCache()
    /// Why nothing can be written any more.
    let damage = Mutex<SluiceError?>(nil)

    /// Of several places that open a new file at once one runs the initial subscriptions. Recursive because: their callback may open the
    /// file.
    private let subscribing = NSRecursiveLock()

    private struct Weak {
        weak var file: OpenFile?
    }

    /// One file is opened at a time. Recursive because: a migration block may open another file.
    private static let opening = NSRecursiveLock()
    private static let open = Mutex<[String: Weak]>([:])

    /// The file of a configuration, opened when it is not open yet.
    /// - Returns: the file, and whether this call opened it.
    static func of(_ configuration: Realm.Configuration) throws -> (OpenFile, isNew: Bool) {
        let types = configuration.classes
        if types.isEmpty {
            throw Realm.Error(.schemaMismatch, "Set objectTypes in the configuration: no model classes were found by themselves.")
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
            try file.requireWhole()
            return (file, false)
        }
        let file = try OpenFile(path, configuration)
        open.withLock { $0[path] = Weak(file: file) }
        return (file, true)
    }

    /// Whether a Realm of this process has the file open.
    private static func isOpen(_ path: String) -> Bool { open.withLock { $0[path]?.file != nil } }

    /// For the old and the new side of a migration, which nobody else sees.
    init(path: String, replica: Replica) {
        self.path = path
        self.replica = replica
        session = nil
        isReadOnly = false
        isNew = false
        claim = nil
        expiry = nil
    }

    /// Runs the body unless a Realm of this process has the file open; none is opened meanwhile.
    /// - Returns: what the body does; nil when one has.
    @discardableResult
    static func unlessOpen<R>(_ path: String, _ body: () throws -> R) rethrows -> R? {
        opening.lock()
        defer { opening.unlock() }
        return isOpen(path) ? nil : try body()
    }

    /// The sessions of a user's files that are open.
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
        claim = sync == nil || isInMemory ? nil : try OpenFile.claim(path)
        if isInMemory {
            // A process of this number that crashed may have left one, and there is nothing to set aside.
            SetAside.forget(path)
            ReplicaFile.remove(path)
        }
        try SetAside.performNoted(path, for: configuration.syncOwner)
        isNew = !FileManager.default.fileExists(atPath: path)
        if let seed = configuration.seedFilePath { try RealmFiles.plant(seed, at: path) }
        if isReadOnly, !FileManager.default.fileExists(atPath: path) {
            throw Realm.Error(.fileNotFound, "There is no Realm file at \(path), and it is opened for reading only.")
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
        // Before the set can be read.
        if sync != nil { try SubscriptionExpiry.drop(replica) }
        expiry = sync == nil ? nil : SubscriptionExpiry(replica, session)
        session?.reset.attach(self)
    }

    deinit {
        expiry?.close()
        session?.close()
    }

    /// What no file can be opened with.
    private static func check(_ configuration: Realm.Configuration) throws {
        if configuration.encryptionKey != nil { throw Realm.Error.encryption }
        guard configuration.syncConfiguration != nil else { return }
        if configuration.readOnly {
            throw Realm.Error(.invalidInput, "A synced Realm cannot be read only: what the server sends is written.")
        }
    }

    private static func makeFolder(of path: String) throws {
        do {
            let folder = URL(fileURLWithPath: path).deletingLastPathComponent()
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw Realm.Error(.fileAccess, "The folder of \(path) cannot be made: \(error.localizedDescription)")
        }
    }

    private static func claim(_ path: String) throws -> SyncClaim {
        guard let claim = try asRealmError({ try SyncClaim.take(path) }) else {
            throw Realm.Error(
                .multipleSyncAgents,
                "The synced Realm at path '\(path)' is open in another process, and one at a time syncs it. Close it there.")
        }
        return claim
    }

    /// Begins to sync; harmless when it has begun.
    func start() { session?.startOnce() }

    /// Runs the callback of the configuration in an update of the subscription set, when its time has come.
    func runInitialSubscriptions(_ configuration: Realm.Configuration, core: RealmCore, isFirstOpen: Bool) throws {
        guard let initial = configuration.syncConfiguration?.initialSubscriptions else { return }
        subscribing.lock()
        defer { subscribing.unlock() }
        let current = try asRealmError { try replica.currentSubscriptionSet() }
        guard current.version == 0 || initial.rerunOnOpen && isFirstOpen else { return }
        let set = core.subscriptions
        _ = try set.commit { initial.callback(set) }
    }

    /// Waits for the server's answer to a subscription set.
    /// - Parameters:
    ///   - seconds: to wait at most; nil: as long as it takes.
    ///   - isImpatient: whether a connection that fails ends the wait.
    /// - Throws: `Realm.Error.subscriptionFailed` with the server's text; `ETIMEDOUT`; the error that ended the session.
    func waitForSubscriptionSet(_ version: UInt64, seconds: TimeInterval? = nil, isImpatient: Bool = false) async throws {
        try await OpenFile.waitForSubscriptionSet(version, replica, session, seconds: seconds, isImpatient: isImpatient)
    }

    /// The same for who does not keep the file open meanwhile: closing it ends the wait.
    static func waitForSubscriptionSet(
        _ version: UInt64, _ replica: Replica, _ session: SyncSession?, seconds: TimeInterval? = nil, isImpatient: Bool = false
    ) async throws {
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

    /// Whose a synced file is that is opened so, as the file says it.
    var syncOwner: String? { syncConfiguration.map { "\($0.user.app.appId)/\($0.user.id)" } }
}
