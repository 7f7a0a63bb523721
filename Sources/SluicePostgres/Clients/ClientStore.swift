package import SluiceCore
package import SluicePorts

/// The store of client replicas (`sluice.client`).
package struct ClientStore: Sendable {
    private static let table = "sluice.client"

    private let pool: PostgresPool
    private let bound: ReplicaBound

    /// The time for which a new session waits for a running write of the previous one. Each attempt holds a connection for at most
    /// `moment`, because the lock that such a write waits for may be held for long.
    private static let patience = Duration.seconds(60)
    private static let moment = "200ms"

    package init(pool: PostgresPool, bound: ReplicaBound = ReplicaBound()) { (self.pool, self.bound) = (pool, bound) }

    /// Allots an identifier to a new client replica. At the bound of the user's replicas, an older one gives way.
    ///
    /// - Throws: `tooManyRequests` at the bound, if none may give way.
    package func allot(user: String, secret: [UInt8]) async throws -> ClientFile {
        let id = try await bound.register(
            user, in: Self.table, ["secret": "$4::bytea", "position": "pg_current_wal_insert_lsn()"], [.bytes(secret)], pool)
        return ClientFile(id: ClientID(rawValue: UInt64(clamping: id)), secret: secret, changeset: 0, ingest: 0, session: 0)
    }

    /// Records that connected client replicas are in use.
    package func recordUse(of ids: [ClientID]) async throws {
        try await ReplicaBound.recordUse(of: ids.map(\.rawValue), in: Self.table, pool)
    }

    /// Deletes client replicas of deleted users.
    ///
    /// - Returns: The number of deleted replicas. The caller repeats the call while it is `RejectionPruning.batch`.
    package func deleteOrphans() async throws -> Int { try await ReplicaBound.deleteOrphans(of: Self.table, pool) }

    /// Opens a client replica: checks secret and user, records the time and begins a session.
    ///
    /// It waits for a running write of the previous session, so that the record and later reads include it. Later writes of that
    /// session are rejected.
    /// - Parameters:
    ///   - oldestBase: A lower bound for the bases of all changesets that the client has yet to send; zero if unknown.
    ///   - seen: The history that the client has seen. If the WAL ends before `applied`, the database was restored from an older backup.
    ///     `position` detects a restored database even after the WAL has grown past `applied`.
    /// - Throws: `badClientFile` for an unknown id, a wrong secret, or a client that has seen more than the database. Another
    ///   user's client throws `userMismatch`. The error is `timeout` if a write of the previous session still runs after 60 s.
    package func open(
        id: ClientID, secret: [UInt8], user: String, oldestBase: LSN = .zero, seen: SeenHistory = SeenHistory()
    ) async throws -> ClientFile {
        let end = ContinuousClock.now + Self.patience
        while true {
            if let record = try await openAtOnce(id: id, secret: secret, user: user, oldestBase: oldestBase, seen: seen) { return record }
            guard ContinuousClock.now < end else {
                throw SluiceError(
                    .timeout, "A write of the previous session of client replica \(id) has been running for \(Self.patience).")
            }
            // The connection is free between two attempts, so that waiting clients occupy none.
            try await Task.sleep(for: .milliseconds(200))
        }
    }

    /// Tries once to open a client replica.
    ///
    /// - Returns: Nil while a write of the previous session is running.
    private func openAtOnce(
        id: ClientID, secret: [UInt8], user: String, oldestBase: LSN, seen: SeenHistory
    ) async throws -> ClientFile? {
        try await pool.perform { session in
            // A crash may lose this update without harm, because it also ends the sessions that the update separates.
            let begin = [
                PostgresStatement(
                    "SELECT set_config('synchronous_commit', 'off', true), set_config('lock_timeout', $1, true)", [.text(Self.moment)]),
                PostgresStatement(
                    """
                    UPDATE sluice.client SET seen_at = now(), session = session + 1,
                        position = greatest(position, least($2::pg_lsn, pg_current_wal_insert_lsn()))
                    WHERE id = $1 AND user_id = $3 AND sha256(secret) = sha256($4) AND pg_current_wal_insert_lsn() >= $5::pg_lsn
                        AND coalesce(\(Self.position), 0) <> 1
                    RETURNING last_changeset, (SELECT number FROM sluice.ingest_number WHERE client = $1), session,
                        \(Self.position), \(Self.point), last_time, (SELECT min(number) FROM sluice.ingest_answer WHERE client = $1)
                    """,
                    [
                        .int(Int64(clamping: id.rawValue)), .text(oldestBase.description), .text(user), .bytes(secret),
                        .text(seen.applied.description),
                    ] + Self.parameters(seen.position) + Self.parameters(seen.point)),
            ]
            let opened: PostgresResult
            do throws(PipelineFailure) { opened = try session.pipeline(begin)[1] } catch {
                // lock_not_available: a write of the previous session holds the row.
                if (error.error as? PostgresError)?.sqlState == "55P03" { return nil }
                throw error.error
            }
            // The update matched no row; a second query finds the reason.
            guard !opened.isEmpty else { throw try Self.refusal(id: id, secret: secret, user: user, seen, session) }
            return ClientFile(
                id: id, secret: secret, changeset: UInt64(clamping: opened.int(0, 0) ?? 0),
                ingest: UInt64(clamping: opened.int(0, 1) ?? 0), refusedIngest: opened.int(0, 6).map { UInt64(clamping: max($0, 1)) },
                time: HybridTime(rawValue: UInt64(bitPattern: opened.int(0, 5) ?? 0)),
                session: UInt64(clamping: opened.int(0, 2) ?? 0),
                proven: ProvenHistory(
                    position: History.Finding(opened.int(0, 3)) == .seen, point: History.Finding(opened.int(0, 4)) == .seen))
        }
    }

    private static let position = History.finding("$6::text::xid", "$7::bigint")
    private static let point = History.finding("$8::text::xid", "$9::bigint")

    private static func parameters(_ witness: HistoryAnchor?) -> [PostgresParameter] {
        witness?.parameters.map { .text($0) } ?? [.null, .null]
    }

    /// Returns the reason why a client was not opened.
    private static func refusal(
        id: ClientID, secret: [UInt8], user: String, _ history: SeenHistory, _ session: PostgresSession
    ) throws -> SluiceError {
        let result = try session.query(
            "SELECT user_id, sha256(secret) = sha256($2), pg_current_wal_insert_lsn() FROM sluice.client WHERE id = $1",
            [.int(Int64(clamping: id.rawValue)), .bytes(secret)], cached: true)
        guard let owner = result[0, 0], result.bool(0, 1) == true else {
            return SluiceError(.badClientFile, "Client replica \(id) does not exist, or has another secret.")
        }
        guard owner == user else { return SluiceError(.userMismatch, "Client replica \(id) belongs to another user than \(user).") }
        let end = result[0, 2].flatMap { LSN($0) } ?? .zero
        let transaction = history.position.map { "transaction \($0.transaction) at \($0.lsn)" }
        let seen = end < history.applied ? "\(history.applied)" : transaction ?? ""
        return SluiceError(
            .badClientFile,
            "Client replica \(id) has seen \(seen), which the database lacks; its log ends at \(end): it was restored from an older backup."
        )
    }

    /// Returns the user's clients, each with the time (UTC, ISO 8601) at which it last began a session or wrote. Newest first.
    package func seen(of user: String, limit: Int) async throws -> [(id: ClientID, at: String)] {
        let result = try await pool.share(
            PostgresStatement(
                """
                SELECT id, to_char(seen_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') FROM sluice.client
                WHERE user_id = $1 ORDER BY seen_at DESC, id DESC LIMIT $2
                """, [.text(user), .int(Int64(limit))]))
        return (0..<result.count).map { (ClientID(rawValue: UInt64(clamping: result.int($0, 0) ?? 0)), result[$0, 1] ?? "") }
    }

    /// Returns a bound on the write times that changesets merge with: no committed write has a later one. Zero if every write is older
    /// than `Limits.clockSkewMilliseconds`.
    ///
    /// A gateway cuts the time of a changeset to the present and that bound, so only clients that wrote since then can have a time ahead
    /// of the present. Cost: O(clients). The publisher calls it when it acquires the slot.
    package func latestWriteTime() async throws -> HybridTime {
        let result = try await pool.share(
            PostgresStatement(
                """
                SELECT max(least(CASE WHEN last_time < 0 THEN \(Int64.max) ELSE last_time END,
                    ((extract(epoch FROM seen_at) * 1000)::bigint + \(Limits.clockSkewMilliseconds)) * 65536 + 65535))
                FROM sluice.client WHERE seen_at > now() - make_interval(secs => \(2 * Limits.clockSkewMilliseconds / 1_000))
                """, []))
        return HybridTime(rawValue: UInt64(clamping: result.int(0, 0) ?? 0))
    }

    /// Advances the horizon, see `ClientHorizon.advance`. The caller runs it every ten minutes.
    package func advanceHorizon(days: Int = Limits.clientMemoryDays) async throws {
        try await pool.perform { try ClientHorizon.advance($0, days: days) }
    }

    /// Records that the ingest message with this number took effect. It waits for no changeset of the client.
    ///
    /// A smaller number does not lower the recorded one. For a deleted client the call does nothing. Acknowledgements that are
    /// `Limits.ingestWindow` or more numbers older are deleted.
    /// - Parameter answer: The acknowledgement, stored while the client may ask for it again; nil stores none.
    package func recordIngest(id: ClientID, number: UInt64, answer: [UInt8]? = nil) async throws {
        try await pool.perform { session in
            _ = try session.execute(
                """
                WITH file AS (SELECT id FROM sluice.client WHERE id = $1::bigint),
                    noted AS (
                        INSERT INTO sluice.ingest_number AS known (client, number) SELECT id, $2::bigint FROM file
                        ON CONFLICT (client) DO UPDATE SET number = greatest(known.number, excluded.number)),
                    heard AS (DELETE FROM sluice.ingest_answer WHERE client = $1::bigint AND number <= $2::bigint - $3::bigint)
                INSERT INTO sluice.ingest_answer (client, number, answer)
                SELECT id, $2::bigint, $4::bytea FROM file WHERE $4::bytea IS NOT NULL ON CONFLICT DO NOTHING
                """,
                [
                    .int(Int64(clamping: id.rawValue)), .int(Int64(clamping: number)), .int(Int64(Limits.ingestWindow)),
                    answer.map { .bytes($0) } ?? .null,
                ], cached: true)
        }
    }

    /// Records that the ingest message with this number took effect, and stores its rejected objects as compensating writes. It waits for
    /// no changeset of the client.
    ///
    /// Does nothing for a recorded number, a smaller one, and a deleted client.
    /// - Returns: The compensating writes by number, one for each changeset, without values.
    package func recordIngest(
        id: ClientID, number: UInt64, rejected: [WriteRejection]
    ) async throws -> [(id: UInt64, writes: [WriteRejection])] {
        try await pool.transact { session in
            let advanced = try session.query(
                """
                INSERT INTO sluice.ingest_number AS known (client, number) SELECT id, $2::bigint FROM sluice.client WHERE id = $1::bigint
                ON CONFLICT (client) DO UPDATE SET number = excluded.number WHERE known.number < excluded.number RETURNING number
                """, [.int(Int64(clamping: id.rawValue)), .int(Int64(clamping: number))], cached: true)
            guard !advanced.isEmpty else { return [] }
            var compensations: [(id: UInt64, writes: [WriteRejection])] = []
            for (_, writes) in Dictionary(grouping: rejected, by: \.changeset).sorted(by: { $0.key < $1.key }) {
                let writes = writes.map { $0.withoutValues }
                compensations.append((id: try WriteRejectionStore.insert(writes, client: id, session), writes: writes))
            }
            return compensations
        }
    }

    /// Returns the stored acknowledgement of an ingest message, or nil.
    package func ingestAnswer(id: ClientID, number: UInt64) async throws -> [UInt8]? {
        let result = try await pool.share(
            PostgresStatement(
                "SELECT answer FROM sluice.ingest_answer WHERE client = $1 AND number = $2",
                [.int(Int64(clamping: id.rawValue)), .int(Int64(clamping: number))]))
        return result.isEmpty ? nil : result.bytes(0, 0)
    }
}

extension WriteRejection {
    /// The rejection without the object's values, which are among the dead letters.
    fileprivate var withoutValues: WriteRejection {
        var rejection = self
        rejection.values = [:]
        return rejection
    }
}
