package import SluiceCore
package import SluicePorts
import TestSupport

/// One call of a `RealmClientStore`. Files and sessions are named by their order, as each store has numbers and salts of its own.
package enum RealmStoreStep: Hashable, Sendable {
    case allot(user: Int)
    case open(file: Int, user: Int, hasWrongSalt: Bool)
    case append(session: Int, [RealmStreamEntry])
    case record(session: Int, RealmUploadProgress)
    case begin(session: Int, UInt64)
    case complete(session: Int, RealmClientRecord.View)
    case cancel(session: Int)
    case lose(session: Int)
}

/// The result of a step, without the numbers that differ between stores.
package enum RealmStoreOutcome: Hashable, Sendable {
    case done
    case opened(StoredRealmClient)
    case failed(ErrorCode)
}

/// A series of steps on one store.
package struct RealmStorePlay {
    private let store: any RealmClientStore
    package private(set) var files: [RealmFileIdent] = []
    private var users: [Int] = []
    private var sessions: [RealmFileSession] = []

    package init(_ store: any RealmClientStore) { self.store = store }

    /// Performs a step. Does nothing if it needs a file or a session and there is none.
    package mutating func perform(_ step: RealmStoreStep) async throws -> RealmStoreOutcome {
        do {
            return try await run(step)
        } catch let error as SluiceError {
            return .failed(error.code)
        }
    }

    /// Opens a file as its user.
    package mutating func reopen(file: Int) async throws -> RealmStoreOutcome {
        try await perform(.open(file: file, user: users[file], hasWrongSalt: false))
    }

    private mutating func run(_ step: RealmStoreStep) async throws -> RealmStoreOutcome {
        switch step {
        case .allot(let user):
            files.append(try await store.allot(user: "user \(user)"))
            users.append(user)
        case .open(let file, let user, let hasWrongSalt):
            return files.isEmpty ? .done : try await open(file % files.count, user, hasWrongSalt)
        case .append(let index, let entries): if let found = session(index) { try await store.append(entries, to: found) }
        case .record(let index, let progress): if let found = session(index) { try await store.record(progress, of: found) }
        case .begin(let index, let query): if let found = session(index) { try await store.beginBootstrap(queryVersion: query, of: found) }
        case .complete(let index, let view): if let found = session(index) { try await store.completeBootstrap(view, of: found) }
        case .cancel(let index): if let found = session(index) { try await store.cancelBootstrap(of: found) }
        case .lose(let index): if let found = session(index) { try await store.lose(found) }
        }
        return .done
    }

    /// Returns one of the newest sessions, which may be superseded.
    private func session(_ index: Int) -> RealmFileSession? {
        sessions.isEmpty ? nil : sessions[sessions.count - 1 - index % min(sessions.count, 5)]
    }

    private mutating func open(_ index: Int, _ user: Int, _ hasWrongSalt: Bool) async throws -> RealmStoreOutcome {
        var file = files[index]
        if hasWrongSalt { file.salt ^= 1 }
        var client = try await store.open(file, user: "user \(user)")
        sessions.append(client.session)
        client.record.file = RealmFileIdent(ident: UInt64(index), salt: 0)
        return .opened(client)
    }
}

/// Random steps. Most of them are valid: versions ascend, and few sessions are superseded.
package struct RealmStoreSteps {
    private var random: SplitMix64
    private var version: UInt64 = 0
    private var clientVersion: UInt64 = 0
    private var clock: Int64 = 1_700_000_000_000

    package init(seed: UInt64) { random = SplitMix64(seed: seed) }

    package mutating func next() -> RealmStoreStep {
        clock += random.chance(1) ? 5_000 : 1
        let session = random.below(5)
        switch random.below(100) {
        case 0..<5: return .allot(user: random.below(2))
        case 5..<20: return .open(file: random.below(100), user: random.below(2), hasWrongSalt: random.chance(10))
        case 20..<60: return .append(session: session, (0..<random.below(4)).map { _ in entry() })
        case 60..<80:
            clientVersion += UInt64(random.below(3))
            let server = random.chance(3) ? .max : past(version)
            return .record(session: session, RealmUploadProgress(clientVersion: past(clientVersion), serverVersion: server))
        case 80..<86: return .begin(session: session, UInt64(random.below(9)))
        case 86..<96: return .complete(session: session, .init(queryVersion: UInt64(random.below(9)), serverVersion: past(version)))
        case 96..<99: return .cancel(session: session)
        default: return .lose(session: session)
        }
    }

    private mutating func past(_ version: UInt64) -> UInt64 { version - min(version, UInt64(random.below(9))) }

    private mutating func entry() -> RealmStreamEntry {
        version += UInt64(1 + random.below(3))
        let server = random.chance(3) ? past(version) : version
        let client = random.chance(3) ? past(clientVersion) : clientVersion
        return RealmStreamEntry(
            serverVersion: server, clientVersion: client, timestamp: random.next(), origin: random.chance(50) ? 1 : random.next(),
            changeset: bytes(60), created: clock, compensation: random.chance(30) ? compensation(server, client) : nil)
    }

    private mutating func compensation(_ server: UInt64, _ client: UInt64) -> RealmCompensation {
        let texts = ["", "no", "a \"quoted\" \\ text", "NUL \0 and tab \t", "水🛫"]
        let rejected = (0..<random.below(3)).map { _ in
            RealmRejectedUpdate(reason: random.pick(texts), table: random.pick(texts), key: bytes(10))
        }
        return RealmCompensation(serverVersion: server, clientVersion: client, rejected: rejected)
    }

    private mutating func bytes(_ most: Int) -> [UInt8] { (0..<random.below(most)).map { _ in UInt8(random.below(256)) } }
}
