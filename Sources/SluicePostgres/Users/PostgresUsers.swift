package import SluicePorts
package import SluiceValues

/// The accounts and refresh tokens of the companion schema.
package struct PostgresUsers: UserDirectory {
    private let users: UserStore
    private let tokens: TokenStore

    package init(pool: PostgresPool) {
        users = UserStore(pool: pool)
        tokens = TokenStore(pool: pool)
    }

    package func create(_ account: UserAccount) async throws { try await users.create(account) }
    package func find(id: String) async throws -> UserAccount? { try await users.find(id: id) }
    package func find(email: String) async throws -> UserAccount? { try await users.find(email: email) }
    package func list(after id: String, limit: Int) async throws -> [UserAccount] { try await users.list(after: id, limit: limit) }

    package func setCustomData(id: String, _ data: JSON) async throws { try await users.setCustomData(id: id, data) }
    package func setDisabled(id: String, _ isDisabled: Bool) async throws { try await users.setDisabled(id: id, isDisabled) }
    package func delete(id: String) async throws { try await users.delete(id: id) }

    package func addRefreshToken(hash: [UInt8], user: String, expires: Int64) async throws {
        try await tokens.add(hash: hash, user: user, expires: expires)
    }

    package func user(refreshToken hash: [UInt8], now: Int64) async throws -> String { try await tokens.user(hash: hash, now: now) }
    package func revoke(refreshToken hash: [UInt8]) async throws { try await tokens.revoke(hash: hash) }
    package func revokeRefreshTokens(user: String) async throws { try await tokens.revokeAll(user: user) }
}
