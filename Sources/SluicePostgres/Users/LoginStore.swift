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
            .text(login.id), .int(login.expires), .optional(provider), .int(most), .optional(apiKey), .text(login.user), .optional(hash),
            .optional(identity.map { JSON.array([$0.json]).text }),
        ]
        if apiKey == nil {
            let answer = Answer(try await pool.share(PostgresStatement(Self.ofProof(claims: false), values)), column: 0)
            if !answer.isUnclaimed { return try await finish(login, answer) }
        }
        return try await pool.transact { session in
            // The locks let a change of the password, the identities or the key wait, and end this login. A change before them is seen
            // here. The account's lock is the one of the update below, because two logins with a weaker one would wait for each other.
            if let apiKey {
                let isEnabled = try session.query(
                    "SELECT FROM sluice.api_key WHERE id = $1 AND NOT disabled FOR SHARE", [.text(apiKey)], cached: true)
                if isEnabled.isEmpty { return false }
            }
            let answer = Answer(try session.query(Self.ofProof(claims: true), values, cached: true), column: 0)
            if answer.isUnclaimed, answer.isAdded {
                try session.execute("UPDATE sluice.user_account SET unclaimed = false WHERE id = $1", [.text(login.user)], cached: true)
            }
            if answer.isFull { try endOldest(of: login, session) }
            return answer.isAdded
        }
    }

    /// Adds a login to the account of an identity, which is found in the same round trip.
    ///
    /// - Parameters:
    ///   - id: The id of the login.
    ///   - expires: As `Login.expires`.
    /// - Returns: The account, nil if there is none. A disabled account gets no login.
    package func add(_ id: String, of identity: UserIdentityKey, expires: Int64) async throws -> UserAccount? {
        let result = try await pool.share(
            PostgresStatement(
                Self.ofIdentity,
                [
                    .text(id), .int(expires), .text(identity.provider), .int(most), .optional(nil), .text(identity.id),
                    .text(JSON.array([identity.json]).text),
                ]))
        if result.isEmpty { return nil }
        let account = try UserStore.record(result, 0)
        let login = Login(id: id, user: account.id, expires: expires)
        let answer = Answer(result, column: UserStore.columnCount)
        if account.isDisabled { return account }
        if answer.isUnclaimed { return try await add(login, .identity(identity)) ? account : nil }
        return try await finish(login, answer) ? account : nil
    }

    /// The answer of a statement that adds a login.
    private struct Answer {
        /// `true` if the account is unclaimed.
        var isUnclaimed: Bool
        var isAdded: Bool
        /// `true` if the account had as many logins as it may have.
        var isFull: Bool

        init(_ result: PostgresResult, column: Int) {
            isUnclaimed = result.bool(0, column) ?? false
            isAdded = result.bool(0, column + 1) ?? false
            isFull = isAdded && result.bool(0, column + 2) == true
        }
    }

    private func finish(_ login: Login, _ answer: Answer) async throws -> Bool {
        if answer.isFull { try await pool.perform { try endOldest(of: login, $0) } }
        return answer.isAdded
    }

    private static func ofProof(claims: Bool) -> String {
        insert(
            "id = $6 AND ($7::text IS NULL OR password_hash = $7) AND ($8::jsonb IS NULL OR identities @> $8::jsonb)", claims: claims)
    }

    // The second condition is evaluated again once the account's row is locked.
    private static let ofIdentity = insert(
        "id = (SELECT user_id FROM sluice.identity WHERE provider = $3 AND id = $6) AND identities @> $7::jsonb",
        columns: UserStore.columns, claims: false)

    /// Returns the statement that adds a login to the account that meets a condition. Its parameters are the login's id, its expiry, the
    /// provider, the most logins, the API key, and those of the condition.
    ///
    /// The result has the account's columns and those of `Answer`. Without `claims` an unclaimed account gets no login. Most accounts have
    /// been used, and their lock is one that logins share, so they can share a round trip.
    private static func insert(_ condition: String, columns: String = "", claims: Bool) -> String {
        """
        WITH owner AS (
            SELECT \(UserStore.columns) FROM sluice.user_account WHERE \(condition) \(claims ? "FOR NO KEY UPDATE" : "FOR SHARE")
        ), added AS (
            INSERT INTO sluice.login (id, user_id, api_key, expires_at, provider)
            SELECT $1, id, $5, to_timestamp($2::bigint / 1000.0), $3 FROM owner WHERE NOT disabled \(claims ? "" : "AND NOT unclaimed")
            RETURNING id
        )
        SELECT \(columns.isEmpty ? "" : columns + ",") unclaimed, EXISTS (SELECT FROM added),
            (SELECT count(*) FROM (SELECT FROM sluice.login WHERE user_id = owner.id LIMIT $4) l) = $4 FROM owner
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
                SELECT u.id, u.disabled, l.generation, l.used_at < now() - interval '1 day'
                FROM sluice.login l JOIN sluice.user_account u ON u.id = l.user_id
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
