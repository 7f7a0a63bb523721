import SluiceCore
package import SluicePorts

/// Pending users and the tokens that confirm them (`sluice.pending_user`, `sluice.confirmation`).
package struct PendingUserStore: PendingUserDirectory {
    private let pool: PostgresPool
    private static let columns = "id, email, password_hash, \(times)"
    private static let times = "(extract(epoch FROM expires_at) * 1000)::bigint, (extract(epoch FROM created_at) * 1000)::bigint"

    package init(pool: PostgresPool) { self.pool = pool }

    package func add(_ user: PendingUser, _ token: LinkToken) async throws -> PendingUser {
        try await pool.transact { session in
            let found = try session.query(
                """
                INSERT INTO sluice.pending_user (id, email, password_hash, expires_at)
                SELECT $1, $2, $3, to_timestamp($4::bigint / 1000.0)
                WHERE NOT EXISTS (SELECT FROM sluice.user_account WHERE email = $2)
                ON CONFLICT (email) DO UPDATE SET password_hash = NULL, expires_at = excluded.expires_at
                RETURNING \(Self.columns)
                """, [.text(user.id), .text(user.email), .optional(user.passwordHash), .int(user.expires)])
            guard var added = Self.user(found, 0) else { throw SluiceError(.nameInUse, "name already in use: \(user.email)") }
            added.passwordHash = user.passwordHash
            try Self.insert(token, of: added, session)
            return added
        }
    }

    package func add(_ token: LinkToken, email: String, expires: Int64) async throws -> PendingUser? {
        try await pool.transact { try Self.add(token, "email", email, expires, $0) }
    }

    package func add(_ token: LinkToken, pendingID id: String, expires: Int64) async throws -> PendingUser? {
        try await pool.change(.pendingUser(id), inTransaction: true) { try Self.add(token, "id", id, expires, $0) }
    }

    private static func add(
        _ token: LinkToken, _ column: String, _ value: String, _ expires: Int64, _ session: PostgresSession
    ) throws -> PendingUser? {
        let found = try session.query(
            "UPDATE sluice.pending_user SET expires_at = to_timestamp($2::bigint / 1000.0) WHERE \(column) = $1 RETURNING \(columns)",
            [.text(value), .int(expires)])
        guard let user = user(found, 0) else { return nil }
        try insert(token, of: user, session)
        return user
    }

    private static func insert(_ token: LinkToken, of user: PendingUser, _ session: PostgresSession) throws {
        try session.execute(
            "INSERT INTO sluice.confirmation VALUES ($1, $2, $3, $4, to_timestamp($5::bigint / 1000.0))",
            [.text(token.id), .text(user.id), .bytes(token.hash), .optional(user.passwordHash), .int(token.expires)])
    }

    package func find(pendingEmail email: String) async throws -> PendingUser? { try await find("email = $1", email) }
    package func find(pendingID id: String) async throws -> PendingUser? { try await find("id = $1", id) }

    private func find(_ condition: String, _ value: String) async throws -> PendingUser? {
        try await pool.perform { session in
            Self.user(try session.query("SELECT \(Self.columns) FROM sluice.pending_user WHERE \(condition)", [.text(value)]), 0)
        }
    }

    package func listPending(after id: String, limit: Int) async throws -> [PendingUser] {
        try await pool.perform { session in
            let found = try session.query(
                "SELECT \(Self.columns) FROM sluice.pending_user WHERE id > $1 ORDER BY id LIMIT $2", [.text(id), .int(limit)])
            return (0..<found.count).compactMap { Self.user(found, $0) }
        }
    }

    package func pendingUser(token id: String, hash: [UInt8], now: Int64) async throws -> PendingUser? {
        try await pool.perform { session in
            let found = try session.query(
                """
                SELECT u.id, u.email, c.password_hash, (extract(epoch FROM u.expires_at) * 1000)::bigint,
                    (extract(epoch FROM u.created_at) * 1000)::bigint
                FROM sluice.confirmation c JOIN sluice.pending_user u ON u.id = c.user_id
                WHERE c.id = $1 AND c.hash = $2 AND c.expires_at > to_timestamp($3::bigint / 1000.0)
                """, [.text(id), .bytes(hash), .int(now)])
            return Self.user(found, 0)
        }
    }

    package func confirm(_ account: UserAccount, token: String?) async throws -> Bool {
        try await pool.change(.user(account.id), inTransaction: true) { session in
            // Of two requests, the second waits for the first one's commit and finds no user.
            guard try Self.lock(account.id, session) else { return false }
            if let token {
                let used = try session.execute(
                    "DELETE FROM sluice.confirmation WHERE id = $1 AND user_id = $2", [.text(token), .text(account.id)])
                if used == 0 { return false }
            }
            try session.execute("DELETE FROM sluice.pending_user WHERE id = $1", [.text(account.id)])
            try UserStore.insert(account, session)
            return true
        }
    }

    package func remove(token id: String) async throws {
        try await pool.transact { session in
            guard let user = try session.query("SELECT user_id FROM sluice.confirmation WHERE id = $1", [.text(id)])[0, 0],
                try Self.lock(user, session)
            else { return }
            try session.execute("DELETE FROM sluice.confirmation WHERE id = $1", [.text(id)])
            try session.execute(
                "DELETE FROM sluice.pending_user u WHERE id = $1 AND NOT EXISTS (SELECT FROM sluice.confirmation WHERE user_id = u.id)",
                [.text(user)])
        }
    }

    /// Locks a pending user until the end of the transaction. The lock comes before those of the tokens, which a deletion of the user takes
    /// as well: in another order, two transactions could wait for each other.
    ///
    /// - Returns: `false` if there is no such user.
    private static func lock(_ id: String, _ session: PostgresSession) throws -> Bool {
        try !session.query("SELECT FROM sluice.pending_user WHERE id = $1 FOR UPDATE", [.text(id)]).isEmpty
    }

    package func delete(pendingID id: String) async throws {
        try await pool.change(.pendingUser(id)) { session in
            let count = try session.execute("DELETE FROM sluice.pending_user WHERE id = $1", [.text(id)])
            if count == 0 { throw SluiceError(.userNotFound, "Pending user \(id) does not exist.") }
        }
    }

    /// Deletes pending users and tokens that have expired.
    ///
    /// - Parameter now: The current time, in milliseconds since 1970.
    /// - Returns: The number of removed rows.
    @discardableResult
    package func prune(now: Int64) async throws -> Int {
        try await pool.perform { session in
            try ["confirmation", "pending_user"].reduce(0) { count, table in count + (try Expiry.delete(from: table, now: now, session)) }
        }
    }

    private static func user(_ result: PostgresResult, _ row: Int) -> PendingUser? {
        guard row < result.count, let id = result[row, 0], let email = result[row, 1] else { return nil }
        var user = PendingUser(id: id, email: email, passwordHash: result[row, 2], expires: result.int(row, 3) ?? 0)
        user.registered = result.int(row, 4) ?? 0
        return user
    }
}

/// The removal of rows of the schema `sluice` whose `expires_at` has passed.
enum Expiry {
    /// - Returns: The number of removed rows.
    static func delete(from table: String, now: Int64, _ session: PostgresSession) throws -> Int {
        try session.execute("DELETE FROM sluice.\(table) WHERE expires_at <= to_timestamp($1::bigint / 1000.0)", [.int(now)])
    }
}
