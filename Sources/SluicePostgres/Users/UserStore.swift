import SluiceCore
package import SluicePorts
package import SluiceValues

/// The store of user accounts (`sluice.user_account`).
package struct UserStore: Sendable {
    private let pool: PostgresPool
    /// The columns that `record` reads, in order.
    static let columns = "id, email, password_hash, provider, identities, data, custom_data, disabled, unclaimed"
    static let columnCount = columns.split(separator: ",").count

    package init(pool: PostgresPool) { self.pool = pool }

    /// Creates an account.
    ///
    /// - Throws: `nameInUse` if the e-mail address or the id is taken; `identityInUse`.
    package func create(_ user: UserAccount) async throws {
        try await pool.change(.user(user.id)) { session in try Self.insert(user, session) }
    }

    static func insert(_ user: UserAccount, _ session: PostgresSession) throws {
        let created = try requiringOwner {
            try session.execute(
                "INSERT INTO sluice.user_account (\(columns)) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING",
                [
                    .text(user.id), .optional(user.email), .optional(user.passwordHash), .text(user.provider),
                    .text(user.identities.text), .text(user.data.text), .text(user.customData.text), .bool(user.isDisabled),
                    .bool(user.isUnclaimed),
                ], cached: true)
        }
        if created == 0 { throw SluiceError(.nameInUse, "The name \(user.email ?? user.id) is in use.") }
    }

    package func find(id: String) async throws -> UserAccount? { try await find("id = $1", [.text(id)]) }
    package func find(email: String) async throws -> UserAccount? { try await find("email = $1", [.text(email)]) }

    /// Converts the failure of the primary key of identities.
    private static func requiringOwner<R>(_ body: () throws -> R) throws -> R {
        do { return try body() } catch let error as PostgresError where error.sqlState == "23505" && error.constraint == "identity_pkey" {
            throw SluiceError(.identityInUse, "The identity belongs to another user.")
        }
    }

    /// Returns the user of a login, with `false` if the login has ended.
    package func find(id: String, login: String) async throws -> (account: UserAccount, isLoggedIn: Bool)? {
        let result = try await pool.share(
            PostgresStatement(
                """
                SELECT \(Self.columns), EXISTS (SELECT FROM sluice.login l WHERE l.id = $2 AND l.user_id = u.id)
                FROM sluice.user_account u WHERE id = $1
                """, [.text(id), .text(login)]))
        return result.isEmpty ? nil : (try Self.record(result, 0), result.bool(0, Self.columnCount) ?? false)
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

    /// Replaces members of the providers' metadata. Others stay.
    package func setData(id: String, _ data: JSON) async throws {
        try await pool.change(.user(id)) { session in
            try Self.found(
                try session.execute(
                    "UPDATE sluice.user_account SET data = data || $2::jsonb WHERE id = $1", [.text(id), .text(data.text)], cached: true),
                id)
        }
    }

    /// Disables or enables an account. Disabling ends the user's logins; enabling does not restore them.
    package func setDisabled(id: String, _ isDisabled: Bool) async throws { try await set("disabled", .bool(isDisabled), of: id) }

    /// Sets the hash of the password. Another password ends the user's logins.
    package func setPassword(id: String, _ hash: String) async throws { try await set("password_hash", .text(hash), of: id) }

    /// Deletes the account, its logins and its API keys. The user's objects remain.
    package func delete(id: String) async throws {
        try await pool.change(.user(id)) { session in
            try Self.found(try session.execute("DELETE FROM sluice.user_account WHERE id = $1", [.text(id)]), id)
        }
    }

    /// Deletes accounts that are out of use: those of anonymous users, and registrations without a login. The users' objects remain.
    /// Deletes up to `RejectionPruning.batch` in one call.
    ///
    /// - Parameter days: The days without a login, a refresh, or a session of a client replica.
    /// - Returns: The number of deleted accounts.
    package func deleteIdle(days: Int) async throws -> Int {
        try await pool.perform { session in
            try session.execute(
                """
                DELETE FROM sluice.user_account WHERE id = ANY(ARRAY(
                    SELECT u.id FROM sluice.user_account u
                    WHERE (u.provider = 'anon-user' OR u.unclaimed) AND u.created_at < now() - make_interval(days => $1)
                        AND NOT EXISTS (
                            SELECT FROM sluice.login l WHERE l.user_id = u.id AND l.used_at >= now() - make_interval(days => $1))
                        AND NOT EXISTS (SELECT FROM sluice.client c
                            WHERE c.user_id = u.id COLLATE "default" AND c.seen_at >= now() - make_interval(days => $1))
                        AND NOT EXISTS (SELECT FROM sluice.realm_file f
                            WHERE f.user_id = u.id AND f.seen_at >= now() - make_interval(days => $1))
                    ORDER BY u.created_at LIMIT \(RejectionPruning.batch) FOR UPDATE OF u SKIP LOCKED))
                """, [.int(days)])
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

    // MARK: Identities

    /// Adds an identity to an account. Does nothing if the account has it.
    ///
    /// - Throws: `identityInUse`, `invalidPassword`, `userNotFound`.
    package func link(_ link: IdentityLink, to id: String) async throws {
        try await pool.change(.user(id), inTransaction: true) { session in
            let own = try session.query("SELECT email FROM sluice.user_account WHERE id = $1 FOR UPDATE", [.text(id)])
            try Self.found(own.count, id)
            if let password = link.password {
                if own[0, 0] == password.email { return }
                guard own[0, 0] == nil else {
                    throw SluiceError(.identityInUse, "The user has another e-mail address.", fix: "Log in with it.")
                }
                try Self.removeUnclaimed(password, session)
            } else {
                let owner = try session.query(
                    "SELECT user_id FROM sluice.identity WHERE provider = $1 AND id = $2",
                    [.text(link.identity.provider), .text(link.identity.id)])[0, 0]
                if owner == id { return }
            }
            try Self.add(link, to: id, session)
        }
    }

    /// Deletes the unclaimed account of an e-mail.
    private static func removeUnclaimed(_ password: IdentityLink.Password, _ session: PostgresSession) throws {
        let owner = try session.query(
            "SELECT id, unclaimed, password_hash FROM sluice.user_account WHERE email = $1 FOR UPDATE", [.text(password.email)])
        guard let other = owner[0, 0], owner.bool(0, 1) == true else {
            throw SluiceError(.identityInUse, "The e-mail address belongs to another user.")
        }
        guard owner[0, 2] == password.hash else {
            throw SluiceError(.invalidPassword, "The password changed while the identity was linked.")
        }
        try session.execute("DELETE FROM sluice.user_account WHERE id = $1", [.text(other)])
    }

    private static func add(_ link: IdentityLink, to id: String, _ session: PostgresSession) throws {
        try requiringOwner {
            _ = try session.execute(
                """
                UPDATE sluice.user_account SET identities = identities || $2::jsonb, data = data || $3::jsonb,
                    email = coalesce($4, email), password_hash = coalesce($5, password_hash),
                    provider = CASE provider WHEN 'anon-user' THEN $6 ELSE provider END
                WHERE id = $1
                """,
                [
                    .text(id), .text(JSON.array([link.identity.json]).text), .text(link.data.text), .optional(link.password?.email),
                    .optional(link.password?.hash), .text(link.identity.provider),
                ])
        }
    }

    /// Removes an identity from an account, and ends the account's logins.
    ///
    /// - Throws: `badRequest` if the account does not have it, or has no other one; `userNotFound`.
    package func unlink(_ identity: UserIdentityKey, from id: String) async throws {
        try await pool.change(.user(id), inTransaction: true) { session in
            let account = try session.query("SELECT \(Self.columns) FROM sluice.user_account WHERE id = $1 FOR UPDATE", [.text(id)])
            try Self.found(account.count, id)
            let identities = try account.json(0, 4).array ?? []
            let others = identities.filter { $0["provider_type"]?.string != identity.provider || $0["id"]?.string != identity.id }
            guard others.count < identities.count else {
                throw SluiceError(.badRequest, "User \(id) has no such identity of \(identity.provider).")
            }
            // Nobody can log in to an anonymous account again.
            guard let first = others.compactMap({ $0["provider_type"]?.string }).first(where: { $0 != "anon-user" }) else {
                throw SluiceError(
                    .badRequest, "The identity is the only one of user \(id), who could not log in without it.", fix: "Delete the account.")
            }
            try session.execute(
                """
                UPDATE sluice.user_account SET identities = $2, provider = $3,
                    email = CASE WHEN $4 THEN NULL ELSE email END, password_hash = CASE WHEN $4 THEN NULL ELSE password_hash END
                WHERE id = $1
                """, [.text(id), .text(JSON.array(others).text), .text(first), .bool(identity.provider == "local-userpass")])
            // A link in the mailbox of the removed address would set the password of another one.
            for table in ["login", "password_reset"] {
                try session.execute("DELETE FROM sluice.\(table) WHERE user_id = $1", [.text(id)])
            }
        }
    }

    static func record(_ result: PostgresResult, _ row: Int) throws -> UserAccount {
        var account = UserAccount(
            id: result[row, 0] ?? "", email: result[row, 1], passwordHash: result[row, 2], provider: result[row, 3] ?? "",
            identities: try result.json(row, 4), data: try result.json(row, 5), customData: try result.json(row, 6),
            isDisabled: result.bool(row, 7) ?? false)
        account.isUnclaimed = result.bool(row, 8) ?? false
        return account
    }
}
