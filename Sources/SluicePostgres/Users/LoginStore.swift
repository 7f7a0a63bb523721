import SluiceCore
package import SluicePorts
import SluiceValues

/// The logins of users (`sluice.login`). A login that has ended has no row.
///
/// Triggers of the schema end the logins of a user who is disabled or gets another password, and those of an API key that is disabled,
/// also if another program changes the row. They note each end for live sessions.
package struct LoginStore: Sendable {
    private let pool: PostgresPool
    private let most: Int

    /// - Parameter most: The maximum number of logins of a user.
    package init(pool: PostgresPool, most: Int = Limits.userLogins) { (self.pool, self.most) = (pool, most) }

    /// Adds a login. The oldest logins of the user beyond the bound end. Concurrent calls may exceed it by their number.
    ///
    /// - Returns: `false` if the proof does not hold any more, or the account is disabled or deleted.
    package func add(_ login: Login, _ proof: Login.Proof) async throws -> Bool {
        var (hash, key, identity, provider): (String?, String?, UserIdentityKey?, String?)
        switch proof {
        case .password(let proven): (hash, provider) = (proven, "local-userpass")
        case .apiKey(let id): (key, provider) = (id, "api-key")
        case .identity(let proven): (identity, provider) = (proven, proven.provider)
        case .none: break
        }
        let apiKey = key
        let values: [PostgresParameter] = [
            .text(login.id), .text(login.user), .optional(apiKey), .int(login.expires), .optional(hash), .optional(provider),
            .optional(identity.map { JSON.array([$0.json]).text }), .int(most),
        ]
        if apiKey == nil {
            // Most logins: of an account that has been used. One lock, which logins share, so they can share a round trip.
            let added = try await pool.share(PostgresStatement(Self.insert("NOT unclaimed", lock: "FOR SHARE"), values))
            if added.count == 1 {
                if added.bool(0, 1) == true { try await pool.perform { try endOldest(of: login, $0) } }
                return true
            }
        }
        return try await pool.transact { session in
            // The locks let a change of the password, the identities or the key wait, and end this login. A change before them is seen
            // here. The account's lock is the one of the update below, because two logins with a weaker one would wait for each other.
            if let apiKey {
                let isEnabled = try session.query(
                    "SELECT FROM sluice.api_key WHERE id = $1 AND NOT disabled FOR SHARE", [.text(apiKey)], cached: true)
                if isEnabled.isEmpty { return false }
            }
            let added = try session.query(Self.insert("true", lock: "FOR NO KEY UPDATE"), values, cached: true)
            if added.bool(0, 0) == true {
                try session.execute("UPDATE sluice.user_account SET unclaimed = false WHERE id = $1", [.text(login.user)], cached: true)
            }
            if added.bool(0, 1) == true { try endOldest(of: login, session) }
            return added.count == 1
        }
    }

    /// Returns the statement that adds a login to an account. Its result says whether the account is unclaimed, and whether it had as many
    /// logins as it may have.
    private static func insert(_ condition: String, lock: String) -> String {
        """
        WITH owner AS (
            SELECT id, unclaimed FROM sluice.user_account
            WHERE id = $2 AND NOT disabled AND \(condition) AND ($5::text IS NULL OR password_hash = $5)
                AND ($7::jsonb IS NULL OR identities @> $7::jsonb) \(lock)
        )
        INSERT INTO sluice.login (id, user_id, api_key, expires_at, provider)
        SELECT $1, id, $3, to_timestamp($4::bigint / 1000.0), $6 FROM owner RETURNING (SELECT unclaimed FROM owner),
            (SELECT count(*) FROM (SELECT FROM sluice.login WHERE user_id = $2 LIMIT $8) l) = $8
        """
    }

    private func endOldest(of login: Login, _ session: PostgresSession) throws {
        try session.execute(
            """
            DELETE FROM sluice.login WHERE id = ANY(ARRAY(
                SELECT id FROM sluice.login WHERE user_id = $1 ORDER BY id = $2 DESC, created_at DESC, id OFFSET $3))
            """, [.text(login.user), .text(login.id), .int(most)], cached: true)
    }

    /// Takes a refresh token of a generation.
    ///
    /// - Parameter now: The current time, in milliseconds since 1970.
    /// - Returns: The id of the user.
    /// - Throws: `invalidSession` if the login has ended or expired, or if a newer token has been used; `userDisabled`.
    package func take(login id: String, generation: Int64, now: Int64) async throws -> String {
        let taken = try await pool.perform { session -> Taken in
            let row = try session.query(
                """
                SELECT u.id, u.disabled, l.generation, l.used_at < now() - interval '1 day' FROM sluice.login l JOIN sluice.user_account u ON u.id = l.user_id
                WHERE l.id = $1 AND l.expires_at > to_timestamp($2::bigint / 1000.0)
                """, [.text(id), .int(now)], cached: true)
            guard let user = row[0, 0], let used = row.int(0, 2) else { return .ended }
            if row.bool(0, 1) == true { return .disabled(user) }
            guard generation >= used else { return .replaced }
            // Realm's SDKs use one token for ever.
            guard generation > used || row.bool(0, 3) == true else { return .valid(user) }
            try session.execute(
                "UPDATE sluice.login SET generation = greatest(generation, $2), used_at = now() WHERE id = $1",
                [.text(id), .int(generation)], cached: true)
            return .valid(user)
        }
        switch taken {
        case .valid(let user): return user
        case .disabled(let user): throw SluiceError(.userDisabled, "User \(user) is disabled.")
        case .ended: throw SluiceError(.invalidSession, "The login has ended.", fix: "Log in again.")
        case .replaced:
            try await end(id)
            throw SluiceError(
                .invalidSession, "The refresh token was replaced by a newer one, which has been used. The login has ended.",
                fix: "Log in again. If the app uses each token once, another program has a copy of its tokens.")
        }
    }

    private enum Taken: Sendable {
        case valid(String), disabled(String), ended, replaced
    }

    /// Ends a login. Does nothing if it has ended.
    package func end(_ id: String) async throws {
        try await pool.perform { session in
            _ = try session.execute("DELETE FROM sluice.login WHERE id = $1", [.text(id)], cached: true)
        }
    }

    /// Ends all logins of a user.
    package func endAll(of user: String) async throws {
        try await pool.change(.logins(user)) { session in
            _ = try session.execute("DELETE FROM sluice.login WHERE user_id = $1", [.text(user)])
        }
    }

    /// Removes logins and tokens for passwords that have expired.
    ///
    /// - Parameter now: The current time, in milliseconds since 1970.
    /// - Returns: The number of removed rows.
    @discardableResult
    package func prune(now: Int64) async throws -> Int {
        try await pool.perform { session in
            try ["login", "password_reset"].reduce(0) { count, table in count + (try Expiry.delete(from: table, now: now, session)) }
        }
    }
}
