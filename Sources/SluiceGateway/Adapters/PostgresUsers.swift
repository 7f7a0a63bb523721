import SluiceCore
import SluicePostgres

/// Accounts and tokens in the companion schema.
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

extension UserAccount {
    init(_ record: UserRecord) {
        self.init(
            id: record.id, email: record.email, passwordHash: record.passwordHash, provider: record.provider,
            identities: record.identities, data: record.data, customData: record.customData, isDisabled: record.isDisabled)
    }
}
