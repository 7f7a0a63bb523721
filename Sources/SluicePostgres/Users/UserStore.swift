import SluiceCore
package import SluicePorts
package import SluiceValues

/// The store of user accounts (`sluice.user_account`).
package struct UserStore: Sendable {
    private let pool: PostgresPool
    private static let columns = "id, email, password_hash, provider, identities, data, custom_data, disabled"

    package init(pool: PostgresPool) { self.pool = pool }

    /// Creates an account.
    ///
    /// - Throws: `nameInUse` if the e-mail address or the id is taken.
    package func create(_ user: UserAccount) async throws {
        try await pool.change(.user(user.id)) { session in
            let created = try session.execute(
                "INSERT INTO sluice.user_account (\(Self.columns)) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
                [
                    .text(user.id), .optional(user.email), .optional(user.passwordHash), .text(user.provider),
                    .text(user.identities.text), .text(user.data.text), .text(user.customData.text), .bool(user.isDisabled),
                ])
            if created == 0 { throw SluiceError(.nameInUse, "The name \(user.email ?? user.id) is in use.") }
        }
    }

    package func find(id: String) async throws -> UserAccount? { try await find("id = $1", [.text(id)]) }
    package func find(email: String) async throws -> UserAccount? { try await find("email = $1", [.text(email)]) }

    /// Returns the user with an identity of a provider, or nil.
    package func find(identity: String, provider: String) async throws -> UserAccount? {
        let pattern: JSON = [["id": .string(identity), "provider_type": .string(provider)]]
        return try await find("identities @> $1", [.text(pattern.text)])
    }

    /// Returns the user of a login, with `false` if the login has ended.
    package func find(id: String, login: String) async throws -> (account: UserAccount, isLoggedIn: Bool)? {
        let result = try await pool.share(
            PostgresStatement(
                """
                SELECT \(Self.columns), EXISTS (SELECT FROM sluice.login l WHERE l.id = $2 AND l.user_id = u.id)
                FROM sluice.user_account u WHERE id = $1
                """, [.text(id), .text(login)]))
        return result.isEmpty ? nil : (try Self.record(result, 0), result.bool(0, 8) ?? false)
    }

    private func find(_ condition: String, _ parameters: [PostgresParameter]) async throws -> UserAccount? {
        let result = try await pool.share(
            PostgresStatement("SELECT \(Self.columns) FROM sluice.user_account WHERE \(condition) LIMIT 1", parameters))
        return result.isEmpty ? nil : try Self.record(result, 0)
    }

    /// Returns accounts after the given id, ordered by id.
    package func list(after id: String = "", limit: Int = 50) async throws -> [UserAccount] {
        try await pool.perform { session in
            let result = try session.query(
                "SELECT \(Self.columns) FROM sluice.user_account WHERE id > $1 ORDER BY id LIMIT $2", [.text(id), .int(limit)])
            return try (0..<result.count).map { try Self.record(result, $0) }
        }
    }

    /// Replaces the custom user data.
    ///
    /// - Throws: `userNotFound`, as all changes below.
    package func setCustomData(id: String, _ data: JSON) async throws { try await set("custom_data", .text(data.text), of: id) }

    /// Disables or enables an account. Disabling ends the user's logins; enabling does not restore them.
    package func setDisabled(id: String, _ isDisabled: Bool) async throws { try await set("disabled", .bool(isDisabled), of: id) }

    /// Deletes the account, its logins and its API keys. The user's objects remain.
    package func delete(id: String) async throws {
        try await pool.change(.user(id)) { session in
            try Self.found(try session.execute("DELETE FROM sluice.user_account WHERE id = $1", [.text(id)]), id)
        }
    }

    private func set(_ column: String, _ value: PostgresParameter, of id: String) async throws {
        try await pool.change(.user(id)) { session in
            try Self.found(
                try session.execute("UPDATE sluice.user_account SET \(column) = $2 WHERE id = $1", [.text(id), value], cached: true), id)
        }
    }

    private static func found(_ count: Int, _ id: String) throws {
        if count == 0 { throw SluiceError(.userNotFound, "User \(id) does not exist.") }
    }

    private static func record(_ result: PostgresResult, _ row: Int) throws -> UserAccount {
        UserAccount(
            id: result[row, 0] ?? "", email: result[row, 1], passwordHash: result[row, 2], provider: result[row, 3] ?? "",
            identities: try result.json(row, 4), data: try result.json(row, 5), customData: try result.json(row, 6),
            isDisabled: result.bool(row, 7) ?? false)
    }
}
