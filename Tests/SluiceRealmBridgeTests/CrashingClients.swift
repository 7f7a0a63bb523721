import PortsTestSupport
import SluiceCore
import SluicePorts
import Synchronization

/// The store of client files of gateways that crash at the end of each session: entries that may wait are lost, and so is the state.
final class CrashingClients: RealmClientStore {
    private let files: MemoryRealmClients
    /// `true` if entries that may wait are stored all the same.
    private let keepsEntries = Atomic(false)
    /// The files with a state. Later ones are lost.
    private let begun = Mutex<Set<UInt64>>([])

    init(_ files: MemoryRealmClients) { self.files = files }

    /// Loses no entry from here on, as crashes come later than the store.
    func keepEntries() { keepsEntries.store(true, ordering: .relaxed) }

    func appendLater(_ entries: [RealmStreamEntry], to session: RealmFileSession) throws -> Bool {
        !keepsEntries.load(ordering: .relaxed)
    }

    func keep(replica: [UInt8], ofView view: UInt64, of session: RealmFileSession) async throws {
        guard begun.withLock({ $0.insert(session.file).inserted }) else { return }
        try await files.keep(replica: replica, ofView: view, of: session)
    }

    func allot(user: String) async throws -> RealmFileIdent { try await files.allot(user: user) }

    func open(_ file: RealmFileIdent, user: String) async throws -> StoredRealmClient { try await files.open(file, user: user) }

    func append(_ entries: [RealmStreamEntry], to session: RealmFileSession) async throws { try await files.append(entries, to: session) }

    func record(_ progress: RealmUploadProgress, of session: RealmFileSession) async throws {
        try await files.record(progress, of: session)
    }

    func beginBootstrap(queryVersion: UInt64, of session: RealmFileSession) async throws {
        try await files.beginBootstrap(queryVersion: queryVersion, of: session)
    }

    func completeBootstrap(_ view: RealmClientRecord.View, of session: RealmFileSession) async throws {
        try await files.completeBootstrap(view, of: session)
    }

    func cancelBootstrap(of session: RealmFileSession) async throws { try await files.cancelBootstrap(of: session) }

    func lose(_ session: RealmFileSession) async throws { try await files.lose(session) }
}
