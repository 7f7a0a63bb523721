package import SluiceCore

/// A client file as the gateway knows it.
package struct ClientRecord: Hashable, Sendable {
    package var id: ClientID
    package var user: String
    package var secret: [UInt8]
    /// The highest changeset and ingest numbers that took effect.
    package var lastChangeset: UInt64
    package var lastIngest: UInt64
    /// The first batch of asymmetric objects whose acknowledgement is kept; nil when there is none.
    package var refusedIngest: UInt64?
    /// When the last changeset was made, by the file's clock; zero when that is not known.
    package var lastTime = HybridTime.zero
    /// How often the file has been opened: writes of a session with an older number are refused.
    package var session: UInt64
    /// What the database knows of what the file has seen.
    package var position = History.Finding.forgotten
    package var point = History.Finding.forgotten
}

/// Client files (`sluice.client`).
package struct ClientStore: Sendable {
    private let pool: PostgresPool

    /// How long a session that begins waits for a write of the one before. Meanwhile it has a connection for a moment at a time, as what
    /// such a write waits for may take long.
    private static let patience = Duration.seconds(60)
    private static let moment = "200ms"

    package init(pool: PostgresPool) { self.pool = pool }

    /// Allots a number to a new client file.
    package func allot(user: String, secret: [UInt8]) async throws -> ClientRecord {
        let result = try await pool.share(
            PostgresStatement(
                "INSERT INTO sluice.client (user_id, secret, position) VALUES ($1, $2, pg_current_wal_insert_lsn()) RETURNING id",
                [.text(user), .bytes(secret)]))
        let id = ClientID(rawValue: UInt64(clamping: result.int(0, 0) ?? 0))
        return ClientRecord(id: id, user: user, secret: secret, lastChangeset: 0, lastIngest: 0, session: 0)
    }

    /// Finds a client file, notes that it was seen, and begins a session of it. It waits for a write of the session before that is
    /// under way, so that what it answers, and what is read after it, holds that write; later ones are refused.
    /// - Parameter oldestBase: No changeset that the file has yet to send has an older base; zero when it does not say.
    /// - Parameters:
    ///   - applied: what the file has seen. A database that is not there yet has been restored from an older backup (RST-1).
    ///   - position: the last transaction before that; one that the database never had says the same, also when it has grown since.
    ///   - point: a transaction that the file's last bootstrap has seen.
    /// - Throws: `badClientFile` for an unknown number or a wrong secret, and for a file that has seen what the database has not;
    ///   `userMismatch` for another user's file.
    package func open(
        id: ClientID, secret: [UInt8], user: String, oldestBase: LSN = .zero, applied: LSN = .zero, position: Witness? = nil,
        point: Witness? = nil
    ) async throws -> ClientRecord {
        let end = ContinuousClock.now + Self.patience
        while true {
            let record = try await openAtOnce(
                id: id, secret: secret, user: user, oldestBase: oldestBase, applied: applied, position: position, point: point)
            if let record { return record }
            guard ContinuousClock.now < end else {
                throw SluiceError(.timeout, "A write of the session before of client file \(id) is under way for \(Self.patience).")
            }
            try await Task.sleep(for: .milliseconds(200))
        }
    }

    /// - Returns: nil while a write of the session before is under way.
    private func openAtOnce(
        id: ClientID, secret: [UInt8], user: String, oldestBase: LSN, applied: LSN, position: Witness?, point: Witness?
    ) async throws -> ClientRecord? {
        try await pool.perform { session in
            // What a crash could take from it, the sessions that a crash ends do not need.
            let begin = [
                PostgresStatement(
                    "SELECT set_config('synchronous_commit', 'off', true), set_config('lock_timeout', $1, true)", [.text(Self.moment)]),
                PostgresStatement(
                    """
                    UPDATE sluice.client SET seen_at = now(), session = session + 1,
                        position = greatest(position, least($2::pg_lsn, pg_current_wal_insert_lsn()))
                    WHERE id = $1 AND user_id = $3 AND sha256(secret) = sha256($4) AND pg_current_wal_insert_lsn() >= $5::pg_lsn
                        AND coalesce(\(Self.position), 0) <> 1
                    RETURNING last_changeset, greatest(last_ingest, (SELECT number FROM sluice.ingest_number WHERE client = $1)), session,
                        \(Self.position), \(Self.point), last_time, (SELECT min(number) FROM sluice.ingest_answer WHERE client = $1)
                    """,
                    [
                        .int(Int64(clamping: id.rawValue)), .text(oldestBase.description), .text(user), .bytes(secret),
                        .text(applied.description),
                    ] + Self.parameters(position) + Self.parameters(point)),
            ]
            let opened: PostgresResult
            do throws(PipelineFailure) { opened = try session.pipeline(begin)[1] } catch {
                if (error.error as? PostgresFailure)?.sqlState == "55P03" { return nil }
                throw error.error
            }
            guard !opened.isEmpty else { throw try Self.refusal(id: id, secret: secret, user: user, applied: applied, position, session) }
            return ClientRecord(
                id: id, user: user, secret: secret, lastChangeset: UInt64(clamping: opened.int(0, 0) ?? 0),
                lastIngest: UInt64(clamping: opened.int(0, 1) ?? 0), refusedIngest: opened.int(0, 6).map { UInt64(clamping: max($0, 1)) },
                lastTime: HybridTime(rawValue: UInt64(bitPattern: opened.int(0, 5) ?? 0)),
                session: UInt64(clamping: opened.int(0, 2) ?? 0), position: History.Finding(opened.int(0, 3)),
                point: History.Finding(opened.int(0, 4)))
        }
    }

    private static let position = History.finding("$6::text::xid", "$7::bigint")
    private static let point = History.finding("$8::text::xid", "$9::bigint")

    private static func parameters(_ witness: Witness?) -> [PostgresParameter] {
        witness?.parameters.map { .text($0) } ?? [.null, .null]
    }

    /// Why a client file was not opened.
    private static func refusal(
        id: ClientID, secret: [UInt8], user: String, applied: LSN, _ position: Witness?, _ session: PostgresSession
    ) throws -> SluiceError {
        let result = try session.query(
            "SELECT user_id, sha256(secret) = sha256($2), pg_current_wal_insert_lsn() FROM sluice.client WHERE id = $1",
            [.int(Int64(clamping: id.rawValue)), .bytes(secret)], cached: true)
        guard let owner = result[0, 0], result.bool(0, 1) == true else {
            return SluiceError(.badClientFile, "There is no client file \(id) with this secret.")
        }
        guard owner == user else { return SluiceError(.userMismatch, "Client file \(id) belongs to another user than \(user).") }
        let end = result[0, 2].flatMap { LSN($0) } ?? .zero
        let seen = end < applied ? "\(applied)" : position.map { "transaction \($0.transaction) at \($0.lsn)" } ?? ""
        return SluiceError(
            .badClientFile,
            "Client file \(id) has seen \(seen), the database has not; its log ends at \(end): it was restored from an older backup.")
    }

    /// The user's files, those first that began a session or wrote last, with when that was (UTC, ISO 8601).
    package func seen(of user: String, limit: Int) async throws -> [(id: ClientID, at: String)] {
        let result = try await pool.share(
            PostgresStatement(
                """
                SELECT id, to_char(seen_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') FROM sluice.client
                WHERE user_id = $1 ORDER BY seen_at DESC, id DESC LIMIT $2
                """, [.text(user), .int(Int64(limit))]))
        return (0..<result.count).map { (ClientID(rawValue: UInt64(clamping: result.int($0, 0) ?? 0)), result[$0, 1] ?? "") }
    }

    /// See `ClientHorizon.advance`. To be called every ten minutes.
    package func advanceHorizon(days: Int = Limits.clientMemoryDays) async throws {
        try await pool.perform { try ClientHorizon.advance($0, days: days) }
    }

    /// Notes that the ingest message of a number took effect; smaller numbers change nothing, nor does it of a file that is gone. It waits
    /// for no changeset of the file.
    /// - Parameter answer: its acknowledgement, kept while the client may ask for it again; nil keeps none.
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

    /// The acknowledgement of an ingest message, when it is kept.
    package func ingestAnswer(id: ClientID, number: UInt64) async throws -> [UInt8]? {
        let result = try await pool.share(
            PostgresStatement(
                "SELECT answer FROM sluice.ingest_answer WHERE client = $1 AND number = $2",
                [.int(Int64(clamping: id.rawValue)), .int(Int64(clamping: number))]))
        return result.isEmpty ? nil : result.bytes(0, 0)
    }
}
