import SluiceCore
package import SluicePorts
import SluiceValues

/// The logins of users (`sluice.login`). A login that has ended has no row.
///
/// Triggers of the schema end the logins of a user who is disabled or gets another password, and those of an API key that is disabled,
/// also if another program changes the row. They note each end for live sessions.
package struct LoginStore: Sendable {
    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    /// Adds a login.
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
            .optional(identity.map { JSON.array([$0.json]).text }),
        ]
        return try await pool.transact { session in
            // The locks let a change of the password, the identities or the key wait, and end this login. A change before them is seen
            // here. The account's lock is the one of the update below, because two logins with a weaker one would wait for each other.
            if let apiKey {
                let isEnabled = try session.query(
                    "SELECT FROM sluice.api_key WHERE id = $1 AND NOT disabled FOR SHARE", [.text(apiKey)], cached: true)
                if isEnabled.isEmpty { return false }
            }
            let added = try session.query(
                """
                WITH owner AS (
                    SELECT id, unclaimed FROM sluice.user_account
                    WHERE id = $2 AND NOT disabled AND ($5::text IS NULL OR password_hash = $5)
                        AND ($7::jsonb IS NULL OR identities @> $7::jsonb) FOR NO KEY UPDATE
                )
                INSERT INTO sluice.login (id, user_id, api_key, expires_at, provider)
                SELECT $1, id, $3, to_timestamp($4::bigint / 1000.0), $6 FROM owner RETURNING (SELECT unclaimed FROM owner)
                """, values, cached: true)
            if added.bool(0, 0) == true {
                try session.execute("UPDATE sluice.user_account SET unclaimed = false WHERE id = $1", [.text(login.user)], cached: true)
            }
            return added.count == 1
        }
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
                SELECT u.id, u.disabled, l.generation FROM sluice.login l JOIN sluice.user_account u ON u.id = l.user_id
                WHERE l.id = $1 AND l.expires_at > to_timestamp($2::bigint / 1000.0)
                """, [.text(id), .int(now)], cached: true)
            guard let user = row[0, 0], let used = row.int(0, 2) else { return .ended }
            if row.bool(0, 1) == true { return .disabled(user) }
            guard generation > used else { return generation == used ? .valid(user) : .replaced }
            try session.execute(
                "UPDATE sluice.login SET generation = greatest(generation, $2) WHERE id = $1", [.text(id), .int(generation)], cached: true)
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
