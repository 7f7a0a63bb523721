import SluiceCore

/// Refresh tokens, of which only hashes are stored, and the app's signing keys (`sluice.refresh_token`, `sluice.signing_key`).
package struct TokenStore: Sendable {
    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    /// Adds a token.
    ///
    /// - Parameter expires: The time of expiry, in milliseconds since 1970.
    package func add(hash: [UInt8], user: String, expires: Int64) async throws {
        try await pool.perform { session in
            _ = try session.execute(
                "INSERT INTO sluice.refresh_token (hash, user_id, expires_at) VALUES ($1, $2, to_timestamp($3::bigint / 1000.0))",
                [.bytes(hash), .text(user), .int(expires)], cached: true)
        }
    }

    /// Returns the user of a token.
    ///
    /// - Parameter now: The current time, in milliseconds since 1970.
    /// - Throws: `invalidSession` if the token is unknown, expired or revoked; `userDisabled`.
    package func user(hash: [UInt8], now: Int64) async throws -> String {
        try await pool.perform { session in
            let result = try session.query(
                """
                SELECT u.id, u.disabled FROM sluice.refresh_token t JOIN sluice.user_account u ON u.id = t.user_id
                WHERE t.hash = $1 AND NOT t.revoked AND t.expires_at > to_timestamp($2::bigint / 1000.0)
                """, [.bytes(hash), .int(now)], cached: true)
            guard let user = result[0, 0] else {
                throw SluiceError(.invalidSession, "The refresh token is unknown, expired or revoked.")
            }
            if result.bool(0, 1) == true { throw SluiceError(.userDisabled, "User \(user) is disabled.") }
            return user
        }
    }

    /// Revokes a token. Does nothing if it is unknown.
    package func revoke(hash: [UInt8]) async throws {
        try await pool.perform { session in
            _ = try session.execute("UPDATE sluice.refresh_token SET revoked = true WHERE hash = $1", [.bytes(hash)], cached: true)
        }
    }

    /// Revokes all tokens of a user, and records the change for live sessions.
    package func revokeAll(user: String) async throws {
        try await pool.change(.sessions(user), inTransaction: true) { session in
            _ = try session.execute("UPDATE sluice.refresh_token SET revoked = true WHERE user_id = $1", [.text(user)])
            _ = try session.query("SELECT sluice.note_user_changes(ARRAY[$1], ARRAY['revoked'])", [.text(user)])
        }
    }

    /// Deletes tokens that are revoked or expired.
    ///
    /// - Parameter now: The current time, in milliseconds since 1970.
    /// - Returns: The number of deleted tokens.
    @discardableResult
    package func prune(now: Int64) async throws -> Int {
        try await pool.perform { session in
            try session.execute(
                "DELETE FROM sluice.refresh_token WHERE revoked OR expires_at <= to_timestamp($1::bigint / 1000.0)", [.int(now)])
        }
    }

    /// Returns the signing key of a name; stores the proposed one if there is none. All gateways of an app receive the same key.
    package func signingKey(_ name: String, proposed: [UInt8]) async throws -> [UInt8] {
        try await pool.transact { session in
            // Of two gateways the first insertion wins, and both read its key.
            try session.execute(
                "INSERT INTO sluice.signing_key (name, key) VALUES ($1, $2) ON CONFLICT DO NOTHING", [.text(name), .bytes(proposed)])
            return try session.query("SELECT key FROM sluice.signing_key WHERE name = $1", [.text(name)]).bytes(0, 0) ?? proposed
        }
    }

    /// Returns the signing key of a name; nil if no gateway has stored one, or if the companion schema is missing.
    package func signingKey(_ name: String) async throws -> [UInt8]? {
        try await pool.perform { session in
            guard try session.query("SELECT to_regclass('sluice.signing_key') IS NOT NULL").bool(0, 0) == true else { return nil }
            return try session.query("SELECT key FROM sluice.signing_key WHERE name = $1", [.text(name)]).bytes(0, 0)
        }
    }
}
