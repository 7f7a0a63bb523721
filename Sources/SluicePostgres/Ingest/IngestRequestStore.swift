import SluiceCore

/// Ingest requests with an Idempotency-Key (`sluice.ingest_request`): the current leader of each, and the stored answer.
///
/// A key belongs to a user. The leader of a request holds the key by a lease and renews it while the body arrives. The keys of a
/// gateway that has died are free when their leases expire.
package struct IngestRequestStore: Sendable {
    /// The duration of a lease, in seconds. It exceeds the longest pauses of a request: 75 s for the body, 30 s for the ingest log.
    package static let leaseSeconds = 120

    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    package enum Claim: Hashable, Sendable {
        /// The caller leads the request now, and must end it by `finish` or `release`.
        case mine
        /// Another caller leads the request. Its lease lasts for so many seconds, at least 1, unless it is renewed.
        case busy(seconds: Int)
        /// The request has been answered.
        case done(Answer)
    }

    package struct Answer: Hashable, Sendable {
        package var type: String
        /// The SHA-256 of the request's body.
        package var body: [UInt8]
        package var status: Int
        package var json: String

        package init(type: String, body: [UInt8], status: Int, json: String) {
            self.type = type
            self.body = body
            self.status = status
            self.json = json
        }
    }

    /// An idempotency key of one user.
    package struct Key: Hashable, Sendable {
        package var user: String
        package var key: String
        /// The identity of the request's leader, unique to it.
        package var owner: String

        package init(user: String, key: String, owner: String) {
            self.user = user
            self.key = key
            self.owner = owner
        }

        fileprivate var parameters: [PostgresParameter] { [.text(user), .text(key), .text(owner)] }
    }

    /// Claims a key that is new, whose lease has expired, or whose answer is older than `Limits.idempotencyHours`.
    package func claim(_ key: Key, type: String) async throws -> Claim {
        try await pool.transact { session in
            let taken = try session.execute(
                """
                INSERT INTO sluice.ingest_request AS r (user_id, key, owner, type, lease_until)
                VALUES ($1, $2, $3, $4, clock_timestamp() + make_interval(secs => $5))
                ON CONFLICT (user_id, key) DO UPDATE
                    SET owner = excluded.owner, type = excluded.type, lease_until = excluded.lease_until,
                        body = NULL, status = NULL, answer = NULL, created_at = clock_timestamp()
                    WHERE (r.answer IS NULL AND r.lease_until < clock_timestamp())
                        OR (r.answer IS NOT NULL AND r.created_at < clock_timestamp() - make_interval(hours => $6))
                """, key.parameters + [.text(type), .int(Self.leaseSeconds), .int(Limits.idempotencyHours)], cached: true)
            if taken > 0 { return .mine }
            // The INSERT locked the conflicting row even though it did not update it, so the row still exists.
            let found = try session.query(
                """
                SELECT type, body, status, answer, ceil(extract(epoch FROM lease_until - clock_timestamp()))::bigint
                FROM sluice.ingest_request WHERE user_id = $1 AND key = $2
                """, [.text(key.user), .text(key.key)], cached: true)
            guard let answer = found[0, 3] else { return .busy(seconds: max(1, Int(found.int(0, 4) ?? 1))) }
            return .done(
                Answer(type: found[0, 0] ?? "", body: found.bytes(0, 1) ?? [], status: Int(found.int(0, 2) ?? 200), json: answer))
        }
    }

    /// Extends the lease.
    ///
    /// - Throws: `idempotencyKeyInUse` if the lease expired and another caller has taken the key over.
    package func renew(_ key: Key) async throws {
        let renewed = try await pool.perform { session in
            try session.execute(
                """
                UPDATE sluice.ingest_request SET lease_until = clock_timestamp() + make_interval(secs => $4)
                WHERE user_id = $1 AND key = $2 AND owner = $3 AND answer IS NULL
                """, key.parameters + [.int(Self.leaseSeconds)], cached: true)
        }
        if renewed == 0 { throw Self.lost(key) }
    }

    /// Stores the answer.
    ///
    /// - Throws: `idempotencyKeyInUse`, as `renew`.
    package func finish(_ key: Key, body: [UInt8], status: Int, json: String) async throws {
        let finished = try await pool.perform { session in
            try session.execute(
                """
                UPDATE sluice.ingest_request SET body = $4, status = $5, answer = $6, created_at = clock_timestamp()
                WHERE user_id = $1 AND key = $2 AND owner = $3 AND answer IS NULL
                """, key.parameters + [.bytes(body), .int(status), .text(StoreText.printable(json))], cached: true)
        }
        if finished == 0 { throw Self.lost(key) }
    }

    /// Deletes a key without an answer, so that the request can be sent again at once.
    package func release(_ key: Key) async throws {
        try await pool.perform { session in
            _ = try session.execute(
                "DELETE FROM sluice.ingest_request WHERE user_id = $1 AND key = $2 AND owner = $3 AND answer IS NULL", key.parameters,
                cached: true)
        }
    }

    /// Deletes up to 10,000 requests older than `Limits.idempotencyHours` whose lease has expired.
    ///
    /// - Returns: The number of deleted requests.
    @discardableResult
    package func prune() async throws -> Int {
        try await pool.perform { session in
            try session.execute(
                """
                DELETE FROM sluice.ingest_request WHERE ctid = ANY(ARRAY(
                    SELECT ctid FROM sluice.ingest_request
                    WHERE created_at < clock_timestamp() - make_interval(hours => $1) AND lease_until < clock_timestamp() LIMIT 10000))
                """, [.int(Limits.idempotencyHours)])
        }
    }

    private static func lost(_ key: Key) -> SluiceError {
        SluiceError(
            .idempotencyKeyInUse, "The request with the key '\(key.key.prefix(80))' took too long, and another request took over its key.")
    }
}
