import SluiceCore

/// A change of a user that live sessions may have to react to.
package struct UserChange: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        /// A change of custom data, provider data or identities.
        case data
        case disabled, deleted
        /// The end of a login.
        case loggedOut(login: String)

        fileprivate init?(_ name: String, login: String?) {
            switch name {
            case "data": self = .data
            case "disabled": self = .disabled
            case "deleted": self = .deleted
            case "logged out": if let login { self = .loggedOut(login: login) } else { return nil }
            default: return nil
            }
        }
    }

    /// The number of the change. It grows in the order of the commits.
    package var number: Int64
    package var user: String
    package var kind: Kind
}

/// Changes of users by any gateway or SQL (`sluice.user_change`), kept for an hour.
package struct UserChangeStore: Sendable {
    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    /// Returns the number of the last change that is kept; 0 if there is none.
    package func last() async throws -> Int64 {
        try await pool.perform { session in try session.query("SELECT max(number) FROM sluice.user_change").int(0, 0) ?? 0 }
    }

    /// The maximum number of changes that one call reads.
    package static let limit = 1_000

    /// Returns changes after a number, in order, at most `limit`.
    package func changes(after number: Int64) async throws -> [UserChange] {
        try await pool.perform { session in
            let result = try session.query(
                "SELECT number, user_id, kind, login FROM sluice.user_change WHERE number > $1 ORDER BY number LIMIT $2",
                [.int(number), .int(Self.limit)], cached: true)
            return (0..<result.count).compactMap { row in
                guard let number = result.int(row, 0), let user = result[row, 1], let name = result[row, 2],
                    let kind = UserChange.Kind(name, login: result[row, 3])
                else { return nil }
                return UserChange(number: number, user: user, kind: kind)
            }
        }
    }

    /// Deletes changes older than an hour. Each gateway has processed them or was away for too long.
    package func prune() async throws {
        try await pool.perform { session in
            _ = try session.execute("DELETE FROM sluice.user_change WHERE at < now() - interval '1 hour'")
        }
    }
}
