import SluiceCore
package import SluicePorts

/// Tokens with which users set a new password (`sluice.password_reset`).
package struct PasswordResetStore: PasswordResetDirectory {
    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    private static let valid = "FROM sluice.password_reset WHERE id = $1 AND hash = $2 AND expires_at > to_timestamp($3::bigint / 1000.0)"

    package func user(resetToken id: String, hash: [UInt8], now: Int64) async throws -> String? {
        try await pool.perform { try Self.user("SELECT user_id \(Self.valid)", id, hash, now, $0) }
    }

    package func setPassword(_ password: String, resetToken id: String, hash: [UInt8], now: Int64) async throws -> Bool {
        guard let user = try await user(resetToken: id, hash: hash, now: now) else { return false }
        return try await pool.change(.user(user), inTransaction: true) { session in
            // Of two requests with one token, the second waits for the first one's commit and finds no row.
            guard try Self.user("DELETE \(Self.valid) RETURNING user_id", id, hash, now, session) == user else { return false }
            try session.execute("UPDATE sluice.user_account SET password_hash = $2 WHERE id = $1", [.text(user), .text(password)])
            // The trigger ends logins only if there was a password before.
            for table in ["login", "password_reset"] {
                try session.execute("DELETE FROM sluice.\(table) WHERE user_id = $1", [.text(user)])
            }
            return true
        }
    }

    package func add(_ token: LinkToken, email: String) async throws -> String? {
        try await pool.perform { session in
            try session.query(
                """
                INSERT INTO sluice.password_reset (id, user_id, hash, expires_at)
                SELECT $1, id, $2, to_timestamp($3::bigint / 1000.0) FROM sluice.user_account WHERE email = $4 AND NOT disabled
                RETURNING user_id
                """, [.text(token.id), .bytes(token.hash), .int(token.expires), .text(email)])[0, 0]
        }
    }

    package func remove(resetToken id: String) async throws {
        try await pool.perform { session in
            _ = try session.execute("DELETE FROM sluice.password_reset WHERE id = $1", [.text(id)])
        }
    }

    private static func user(
        _ statement: String, _ id: String, _ hash: [UInt8], _ now: Int64, _ session: PostgresSession
    ) throws -> String? {
        try session.query(statement, [.text(id), .bytes(hash), .int(now)])[0, 0]
    }
}
