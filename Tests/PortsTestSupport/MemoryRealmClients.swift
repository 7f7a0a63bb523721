import SluiceCore
package import SluicePorts
import Synchronization

/// The client files of Realm's protocol in memory: the double of `PostgresRealmClients`.
package final class MemoryRealmClients: RealmClientStore {
    private struct File {
        let user: String
        var client: StoredRealmClient
        /// The versions of the last entry, also of a removed one.
        var last: (server: UInt64, client: UInt64) = (0, 0)
    }

    private let bounds: ClientStreamBounds
    /// By ident. The first file has ident 2.
    private let files = Mutex<[UInt64: File]>([:])

    package init(bounds: ClientStreamBounds = ClientStreamBounds()) { self.bounds = bounds }

    /// Returns the stored state of a file's views, as a crash would leave it.
    package func replica(of file: UInt64) -> [UInt8]? { files.withLock { $0[file]?.client.record.replica } }

    package func allot(user: String) async throws -> RealmFileIdent {
        files.withLock { files in
            let file = RealmFileIdent(ident: UInt64(files.count) + 2, salt: .random(in: 1...UInt64(Int64.max)))
            files[file.ident] = File(user: user, client: StoredRealmClient(record: RealmClientRecord(file: file)))
            return file
        }
    }

    package func open(_ file: RealmFileIdent, user: String) async throws -> StoredRealmClient {
        try files.withLock { files in
            guard var found = files[file.ident], found.client.record.file == file else {
                throw SluiceError(.badClientFile, "Client file \(file.ident) does not exist, or has another salt.")
            }
            guard found.user == user else { throw SluiceError(.userMismatch, "Client file \(file.ident) belongs to another user.") }
            found.client.sessionNumber += 1
            files[file.ident] = found
            return found.client
        }
    }

    /// Changes a file. If the body throws, nothing is stored.
    private func change(_ session: RealmFileSession, _ body: (inout File) throws -> Void) throws {
        try files.withLock { files in
            guard var file = files[session.file] else {
                throw SluiceError(.badClientFile, "Client file \(session.file) does not exist.")
            }
            guard file.client.session == session else {
                throw SluiceError(.resync, "Client file \(session.file) has been opened by another session.")
            }
            try body(&file)
            files[session.file] = file
        }
    }

    // MARK: Entries

    package func append(_ entries: [RealmStreamEntry], to session: RealmFileSession) async throws {
        try change(session) { file in
            guard !file.client.record.isLost else { return }
            for entry in entries {
                try Self.check(entry.serverVersion, entry.clientVersion)
                let record = file.client.record
                let last = max(file.last.server, record.view?.serverVersion ?? 0, record.acknowledged)
                guard entry.serverVersion > last, entry.clientVersion >= file.last.client else {
                    throw SluiceError(.internalError, "An entry of version \(entry.serverVersion) follows version \(last).")
                }
                file.client.entries.append(entry)
                file.last = (entry.serverVersion, entry.clientVersion)
            }
            if isExceeded(file.client.entries, by: entries) { Self.lose(&file) }
        }
    }

    private func isExceeded(_ all: [RealmStreamEntry], by entries: [RealmStreamEntry]) -> Bool {
        guard let oldest = all.first?.created, let newest = entries.map(\.created).max() else { return false }
        return all.count > bounds.entries || all.reduce(0) { $0 + $1.cost } > bounds.bytes
            || (oldest < newest && newest - max(oldest, 0) > bounds.age)
    }

    package func lose(_ session: RealmFileSession) async throws { try change(session) { Self.lose(&$0) } }

    private static func lose(_ file: inout File) {
        file.client.record.isLost = true
        file.client.record.compensations = []
        file.client.entries = []
    }

    // MARK: Progress

    package func record(_ progress: RealmUploadProgress, of session: RealmFileSession) async throws {
        try change(session) { file in
            try Self.check(progress.clientVersion, progress.serverVersion)
            let stored = file.client.record.upload
            file.client.record.upload = RealmUploadProgress(
                clientVersion: max(stored.clientVersion, progress.clientVersion),
                serverVersion: max(stored.serverVersion, progress.serverVersion))
            Self.acknowledge(progress.serverVersion, &file)
        }
    }

    private static func acknowledge(_ version: UInt64, _ file: inout File) {
        file.client.record.acknowledged = max(file.client.record.acknowledged, version)
        file.client.entries.removeAll { $0.serverVersion <= version }
        file.client.record.compensations.removeAll { $0.serverVersion <= version }
    }

    // MARK: Bootstraps

    package func beginBootstrap(queryVersion: UInt64, of session: RealmFileSession) async throws {
        try change(session) { file in
            try Self.check(queryVersion)
            file.client.record.building = queryVersion
        }
    }

    package func cancelBootstrap(of session: RealmFileSession) async throws {
        try change(session) { $0.client.record.building = nil }
    }

    package func completeBootstrap(_ view: RealmClientRecord.View, of session: RealmFileSession) async throws {
        try change(session) { file in
            try Self.check(view.queryVersion, view.serverVersion)
            let covered = file.client.entries.filter { $0.serverVersion <= view.serverVersion }.compactMap(\.compensation)
            file.client.record.building = nil
            file.client.record.view = RealmClientRecord.View(queryVersion: view.queryVersion, serverVersion: view.serverVersion)
            if let replica = view.replica { file.client.record.replica = replica }
            file.client.record.compensations = (file.client.record.compensations + covered).suffix(bounds.compensations)
            file.client.entries.removeAll { $0.serverVersion <= view.serverVersion }
        }
    }

    package func keep(replica: [UInt8], ofView view: UInt64, of session: RealmFileSession) async throws {
        try Self.check(view)
        try change(session) { file in
            if file.client.record.view?.serverVersion ?? 0 == view { file.client.record.replica = replica }
        }
    }

    private static func check(_ versions: UInt64...) throws {
        for version in versions where version > UInt64(Int64.max) {
            throw SluiceError(.internalError, "Version \(version) of a client file exceeds 63 bits.")
        }
    }
}
