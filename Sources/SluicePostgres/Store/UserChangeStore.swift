import SluiceCore

/// Something that happened to a user whose sessions may have to notice.
package struct UserChange: Hashable, Sendable {
    package enum Kind: String, Sendable {
        /// Custom data, provider data or identities.
        case data
        case disabled, deleted
        /// All refresh tokens became void.
        case revoked
    }

    /// Grows in the order of the commits.
    package var number: Int64
    package var user: String
    package var kind: Kind
}

/// What happened to users (`sluice.user_change`), by whichever gateway or SQL: kept for an hour.
package struct UserChangeStore: Sendable {
    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    /// The number of the last change that is kept; 0 when there is none.
    package func last() async throws -> Int64 {
        try await pool.perform { session in try session.query("SELECT max(number) FROM sluice.user_change").int(0, 0) ?? 0 }
    }

    /// How many are read at a time.
    package static let limit = 1_000

    /// Changes after one, in order, `limit` at most.
    package func changes(after number: Int64) async throws -> [UserChange] {
        try await pool.perform { session in
            let result = try session.query(
                "SELECT number, user_id, kind FROM sluice.user_change WHERE number > $1 ORDER BY number LIMIT $2",
                [.int(number), .int(Self.limit)], cached: true)
            return (0..<result.count).compactMap { row in
                guard let number = result.int(row, 0), let user = result[row, 1], let kind = result[row, 2].flatMap(UserChange.Kind.init)
                else { return nil }
                return UserChange(number: number, user: user, kind: kind)
            }
        }
    }

    /// Forgets what every gateway has noticed or been away from for too long.
    package func prune() async throws {
        try await pool.perform { session in
            _ = try session.execute("DELETE FROM sluice.user_change WHERE at < now() - interval '1 hour'")
        }
    }
}
