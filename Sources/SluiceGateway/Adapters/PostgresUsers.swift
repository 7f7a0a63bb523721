import SluiceCore
import SluicePostgres

/// The accounts and tokens in the companion schema.
struct PostgresUsers: UserDirectory {
    private let users: UserStore
    private let tokens: TokenStore

    init(pool: PostgresPool) {
        users = UserStore(pool: pool)
        tokens = TokenStore(pool: pool)
    }

    func create(_ account: UserAccount) async throws {
        try await users.create(
            UserRecord(
                id: account.id, email: account.email, passwordHash: account.passwordHash, provider: account.provider,
                identities: account.identities, data: account.data, customData: account.customData, isDisabled: account.isDisabled))
    }

    func find(id: String) async throws -> UserAccount? { try await users.find(id: id).map(UserAccount.init) }
    func find(email: String) async throws -> UserAccount? { try await users.find(email: email).map(UserAccount.init) }
    func list(after id: String, limit: Int) async throws -> [UserAccount] {
        try await users.list(after: id, limit: limit).map(UserAccount.init)
    }

    func setPasswordHash(id: String, _ hash: String) async throws { try await users.setPassword(id: id, hash: hash) }
    func setCustomData(id: String, _ data: JSON) async throws { try await users.setCustomData(id: id, data) }
    func setDisabled(id: String, _ isDisabled: Bool) async throws { try await users.setDisabled(id: id, isDisabled) }
    func delete(id: String) async throws { try await users.delete(id: id) }

    func addRefreshToken(hash: [UInt8], user: String, expires: Int64) async throws {
        try await tokens.add(hash: hash, user: user, expires: expires)
    }

    func user(refreshToken hash: [UInt8], now: Int64) async throws -> String { try await tokens.user(hash: hash, now: now) }
    func revoke(refreshToken hash: [UInt8]) async throws { try await tokens.revoke(hash: hash) }
    func revokeRefreshTokens(user: String) async throws { try await tokens.revokeAll(user: user) }
}

/// The API keys in the companion schema.
struct PostgresAPIKeys: APIKeyDirectory {
    private let store: APIKeyStore

    init(pool: PostgresPool) { store = APIKeyStore(pool: pool) }

    func add(_ key: APIKey, hash: [UInt8], most: Int) async throws {
        let record = APIKeyRecord(id: key.id, user: key.user, name: key.name, isDisabled: key.isDisabled, isServer: key.isServer)
        try await store.add(record, hash: hash, most: most)
    }

    func find(keyHash hash: [UInt8]) async throws -> APIKey? { try await store.find(hash: hash).map(APIKey.init) }
    func keys(of user: String?) async throws -> [APIKey] { try await store.list(user: user).map(APIKey.init) }

    func setDisabled(key id: String, of user: String?, _ isDisabled: Bool) async throws {
        try await store.setDisabled(id: id, user: user, isDisabled)
    }

    func delete(key id: String, of user: String?) async throws { try await store.delete(id: id, user: user) }
}

extension APIKey {
    init(_ record: APIKeyRecord) {
        self.init(id: record.id, user: record.user, name: record.name, isDisabled: record.isDisabled, isServer: record.isServer)
    }
}

extension UserAccount {
    init(_ record: UserRecord) {
        self.init(
            id: record.id, email: record.email, passwordHash: record.passwordHash, provider: record.provider,
            identities: record.identities, data: record.data, customData: record.customData, isDisabled: record.isDisabled)
    }
}
