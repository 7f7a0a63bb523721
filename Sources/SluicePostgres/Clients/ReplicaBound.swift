import SluiceCore

/// The bound of a user's client replicas, for each of `sluice.client` and `sluice.realm_file`.
///
/// An app that is installed again registers a new replica, and never returns with the old one. At the bound, the replica that was used
/// least recently gives way: it is deleted, and its device performs a client reset if it returns. A replica that was used within
/// `idleSeconds` does not give way. Gateways record the use of connected replicas more often.
package struct ReplicaBound: Sendable {
    private let most: Int
    private let idleSeconds: Int64
    private let gaveWay: @Sendable (_ replicas: Int) -> Void

    /// - Parameters:
    ///   - most: The maximum number of replicas of a user.
    ///   - idleSeconds: The seconds without use after which a replica may give way.
    ///   - gaveWay: Called with the number of replicas that gave way, at least one. It must not block.
    package init(
        most: Int = Limits.userReplicas, idleSeconds: Int64 = Limits.replicaIdleSeconds,
        gaveWay: @escaping @Sendable (_ replicas: Int) -> Void = { _ in }
    ) {
        (self.most, self.idleSeconds, self.gaveWay) = (most, idleSeconds, gaveWay)
    }

    /// Registers a replica in one statement.
    ///
    /// Concurrent calls for a user may exceed the bound by their number. The next call then deletes as many more. A replica whose row a
    /// running write holds does not give way.
    /// - Parameters:
    ///   - table: A constant of the caller.
    ///   - columns: The columns beside the user, with the SQL of their values. The first parameter of these is `$4`.
    /// - Returns: The number of the replica.
    /// - Throws: `tooManyRequests` at the bound, if no replica may give way.
    func register(
        _ user: String, in table: String, _ columns: KeyValuePairs<String, String>, _ parameters: [PostgresParameter], _ pool: PostgresPool
    ) async throws -> Int64 {
        let statement = """
            WITH known AS (SELECT count(*) AS number FROM \(table) WHERE user_id = $1),
                idle AS (
                    SELECT id FROM \(table)
                    WHERE user_id = $1 AND seen_at < now() - make_interval(secs => $3) AND (SELECT number FROM known) >= $2::bigint
                    ORDER BY seen_at, id LIMIT greatest((SELECT number FROM known) - $2::bigint + 1, 0) FOR UPDATE SKIP LOCKED),
                gone AS (DELETE FROM \(table) WHERE id = ANY(ARRAY(SELECT id FROM idle)) RETURNING id)
            INSERT INTO \(table) (user_id, \(columns.map(\.key).joined(separator: ", ")))
            SELECT $1, \(columns.map(\.value).joined(separator: ", "))
            WHERE (SELECT number FROM known) - (SELECT count(*) FROM gone) < $2::bigint
            RETURNING id, (SELECT count(*) FROM gone)
            """
        let values: [PostgresParameter] = [.text(user), .int(most), .int(idleSeconds)]
        let result = try await pool.share(PostgresStatement(statement, values + parameters))
        guard let id = result.int(0, 0) else {
            throw SluiceError(
                .tooManyRequests, "User \(user) has \(most) client replicas, which all were used in the last \(idleSeconds) s.",
                fix: "Try again later, or let each person have an account.")
        }
        if let count = result.int(0, 1), count > 0 { gaveWay(Int(clamping: count)) }
        return id
    }

    /// Records that replicas are in use. Those that were used recently, and those that a running write holds, need no record.
    static func recordUse(of ids: [UInt64], in table: String, _ pool: PostgresPool) async throws {
        let list = "{\(ids.compactMap { Int64(exactly: $0) }.map(String.init).joined(separator: ","))}"
        try await pool.perform { session in
            _ = try session.execute(
                """
                UPDATE \(table) SET seen_at = now() WHERE id = ANY(ARRAY(
                    SELECT id FROM \(table) WHERE id = ANY($1::bigint[]) AND seen_at < now() - make_interval(secs => $2)
                    FOR NO KEY UPDATE SKIP LOCKED))
                """, [.text(list), .int(Limits.replicaIdleSeconds / 4)])
        }
    }

    /// Deletes replicas of deleted users that were not used for `Limits.replicaIdleSeconds`. Up to `RejectionPruning.batch` in one call.
    ///
    /// - Returns: The number of deleted replicas.
    static func deleteOrphans(of table: String, _ pool: PostgresPool) async throws -> Int {
        try await pool.perform { session in
            try session.execute(
                """
                DELETE FROM \(table) WHERE id = ANY(ARRAY(
                    SELECT r.id FROM \(table) AS r WHERE r.seen_at < now() - make_interval(secs => $1)
                        AND NOT EXISTS (SELECT FROM sluice.user_account AS u WHERE u.id = r.user_id COLLATE "C")
                    LIMIT \(RejectionPruning.batch) FOR UPDATE OF r SKIP LOCKED))
                """, [.int(Limits.replicaIdleSeconds)])
        }
    }
}
