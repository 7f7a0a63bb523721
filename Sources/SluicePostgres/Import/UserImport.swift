import SluiceCore
package import SluicePorts
import SluiceValues

/// Inserts the accounts of another system with their ids, and the hashes of new credentials for them.
///
/// An account that exists is left as it is.
package struct UserImport {
    /// The outcome of an account.
    package enum Outcome: Hashable, Sendable {
        case created
        /// The id has an account already.
        case existing
        /// Another account has the e-mail address.
        case emailTaken(by: String)
        /// PostgreSQL does not take a value, for this reason.
        case refused(String)
    }

    /// The state of an account's password.
    package enum Password: Hashable, Sendable {
        case set
        /// The user must set a password, and has a valid token for it.
        case awaited
        /// The user must set a password, and has no valid token.
        case missing
        /// The user is disabled, and a password would be of no use.
        case disabled
    }

    private let session: PostgresSession

    package init(_ session: PostgresSession) { self.session = session }

    /// Inserts an account within the session's transaction.
    ///
    /// - Parameter created: The time of its creation, in seconds since 1970; nil for now.
    package func insert(_ account: UserAccount, created: Int64?) throws -> Outcome {
        // The account is not new, so it is no event.
        try session.script("SET LOCAL sluice.user_events = 'off'")
        return try guarded { try add(account, created) }
    }

    /// Inserts a pending user within the session's transaction. A user whose address is pending already, or has an account, exists.
    package func insert(_ user: PendingUser) throws -> Outcome {
        try guarded {
            let count = try session.execute(
                """
                INSERT INTO sluice.pending_user (id, email, password_hash, expires_at)
                SELECT $1, $2, $3, to_timestamp($4::bigint / 1000.0)
                WHERE NOT EXISTS (SELECT FROM sluice.user_account WHERE id = $1 OR email = $2) ON CONFLICT DO NOTHING
                """, [.text(user.id), .text(user.email), .optional(user.passwordHash), .int(user.expires)], cached: true)
            return count == 1 ? .created : .existing
        }
    }

    /// Runs an insertion in a savepoint, so that a refused value does not abort the transaction.
    private func guarded(_ insert: () throws -> Outcome) throws -> Outcome {
        try session.script("SAVEPOINT account")
        do {
            let outcome = try insert()
            try session.script("RELEASE SAVEPOINT account")
            return outcome
        } catch let failure as PostgresError where failure.isLasting && failure.isRefusedWrite {
            try session.script("ROLLBACK TO SAVEPOINT account; RELEASE SAVEPOINT account")
            return .refused(failure.message)
        }
    }

    private func add(_ account: UserAccount, _ created: Int64?) throws -> Outcome {
        let count = try session.execute(
            """
            INSERT INTO sluice.user_account (id, email, provider, identities, data, custom_data, disabled, created_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, coalesce(to_timestamp($8::bigint), now())) ON CONFLICT DO NOTHING
            """,
            [
                .text(account.id), .optional(account.email), .text(account.provider), .text(account.identities.text),
                .text(account.data.text), .text(account.customData.text), .bool(account.isDisabled),
                created.map { .int($0) } ?? .null,
            ], cached: true)
        if count == 1 { return .created }
        let taken = try session.query(
            "SELECT id FROM sluice.user_account WHERE email = $1 AND id <> $2", [.optional(account.email), .text(account.id)], cached: true)
        return taken[0, 0].map { .emailTaken(by: $0) } ?? .existing
    }

    /// Returns the state of an account's password.
    ///
    /// - Parameter now: The current time, in milliseconds since 1970.
    package func password(of user: String, now: Int64) throws -> Password {
        let found = try session.query(
            """
            SELECT password_hash IS NOT NULL, disabled, EXISTS (SELECT FROM sluice.password_reset r WHERE r.user_id = u.id
                AND r.expires_at > to_timestamp($2::bigint / 1000.0))
            FROM sluice.user_account u WHERE id = $1
            """, [.text(user), .int(now)], cached: true)
        if found.bool(0, 0) == true { return .set }
        if found.bool(0, 1) == true { return .disabled }
        return found.bool(0, 2) == true ? .awaited : .missing
    }

    /// Replaces the reset tokens of a user by one.
    ///
    /// - Parameters:
    ///   - hash: The SHA-256 of the token's text.
    ///   - expires: The time of expiry, in milliseconds since 1970.
    package func setReset(_ id: String, hash: [UInt8], user: String, expires: Int64) throws {
        try session.execute("DELETE FROM sluice.password_reset WHERE user_id = $1", [.text(user)], cached: true)
        try session.execute(
            "INSERT INTO sluice.password_reset (id, user_id, hash, expires_at) VALUES ($1, $2, $3, to_timestamp($4::bigint / 1000.0))",
            [.text(id), .text(user), .bytes(hash), .int(expires)], cached: true)
    }

    /// Returns `true` if an API key exists.
    package func hasKey(_ id: String) throws -> Bool {
        try !session.query("SELECT FROM sluice.api_key WHERE id = $1", [.text(id)], cached: true).isEmpty
    }

    /// Adds an API key.
    ///
    /// - Returns: `false` if a key of this name exists.
    package func add(_ key: APIKey, hash: [UInt8]) throws -> Bool {
        try session.execute(
            """
            INSERT INTO sluice.api_key (id, user_id, name, disabled, is_server, hash) VALUES ($1, $2, $3, $4, $5, $6)
            ON CONFLICT DO NOTHING
            """,
            [.text(key.id), .text(key.user), .text(key.name), .bool(key.isDisabled), .bool(key.isServer), .bytes(hash)], cached: true) == 1
    }
}
