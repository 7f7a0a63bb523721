package import SluiceCore

/// A client file as the gateway knows it.
package struct ClientRecord: Hashable, Sendable {
    package var id: ClientID
    package var user: String
    package var secret: [UInt8]
    /// The highest changeset and ingest numbers that took effect.
    package var lastChangeset: UInt64
    package var lastIngest: UInt64
    /// How often the file has been opened: writes of a session with an older number are refused.
    package var session: UInt64
}

/// Client files (`sluice.client`).
package struct ClientStore: Sendable {
    private let pool: PostgresPool

    package init(pool: PostgresPool) { self.pool = pool }

    /// Allots a number to a new client file.
    package func allot(user: String, secret: [UInt8]) async throws -> ClientRecord {
        let result = try await pool.share(
            PostgresStatement(
                "INSERT INTO sluice.client (user_id, secret, position) VALUES ($1, $2, pg_current_wal_insert_lsn()) RETURNING id",
                [.text(user), .bytes(secret)]))
        let id = ClientID(rawValue: UInt64(result.int(0, 0) ?? 0))
        return ClientRecord(id: id, user: user, secret: secret, lastChangeset: 0, lastIngest: 0, session: 0)
    }

    /// Finds a client file, notes that it was seen, and begins a session of it. It waits for a write of the session before that is
    /// under way, so that what it answers, and what is read after it, holds that write; later ones are refused.
    /// - Parameter oldestBase: No changeset that the file has yet to send has an older base; zero when it does not say.
    /// - Parameter applied: what the file has seen. A database that is not there yet has been restored from an older backup (RST-1).
    /// - Throws: `badClientFile` for an unknown number or a wrong secret, and for a file that has seen what the database has not;
    ///   `userMismatch` for another user's file.
    package func open(
        id: ClientID, secret: [UInt8], user: String, oldestBase: LSN = .zero, applied: LSN = .zero
    ) async throws -> ClientRecord {
        try await pool.perform { session in
            // What a crash could take from it, the sessions that a crash ends do not need.
            let begin = [
                PostgresStatement("SELECT set_config('synchronous_commit', 'off', true)", []),
                PostgresStatement(
                    """
                    UPDATE sluice.client SET seen_at = now(), session = session + 1,
                        position = greatest(position, least($2::pg_lsn, pg_current_wal_insert_lsn()))
                    WHERE id = $1 AND user_id = $3 AND sha256(secret) = sha256($4) AND pg_current_wal_insert_lsn() >= $5::pg_lsn
                    RETURNING last_changeset, last_ingest, session
                    """,
                    [
                        .int(Int64(clamping: id.rawValue)), .text(oldestBase.description), .text(user), .bytes(secret),
                        .text(applied.description),
                    ]),
            ]
            let opened: PostgresResult
            do throws(PipelineFailure) { opened = try session.pipeline(begin)[1] } catch { throw error.error }
            guard !opened.isEmpty else { throw try Self.refusal(id: id, secret: secret, user: user, applied: applied, session) }
            return ClientRecord(
                id: id, user: user, secret: secret, lastChangeset: UInt64(opened.int(0, 0) ?? 0),
                lastIngest: UInt64(opened.int(0, 1) ?? 0), session: UInt64(opened.int(0, 2) ?? 0))
        }
    }

    /// Why a client file was not opened.
    private static func refusal(
        id: ClientID, secret: [UInt8], user: String, applied: LSN, _ session: PostgresSession
    ) throws -> SluiceError {
        let result = try session.query(
            "SELECT user_id, sha256(secret) = sha256($2), pg_current_wal_insert_lsn() FROM sluice.client WHERE id = $1",
            [.int(Int64(clamping: id.rawValue)), .bytes(secret)], cached: true)
        guard let owner = result[0, 0], result.bool(0, 1) == true else {
            return SluiceError(.badClientFile, "There is no client file \(id) with this secret.")
        }
        guard owner == user else { return SluiceError(.userMismatch, "Client file \(id) belongs to another user than \(user).") }
        let end = result[0, 2].flatMap { LSN($0) } ?? .zero
        return SluiceError(
            .badClientFile,
            "Client file \(id) has seen \(applied), the log of the database ends at \(end): it was restored from an older backup.")
    }

    /// See `ClientHorizon.advance`. To be called every ten minutes.
    package func advanceHorizon() async throws { try await pool.perform { try ClientHorizon.advance($0) } }

    /// Notes that the ingest message of a number took effect; smaller numbers change nothing.
    package func recordIngest(id: ClientID, number: UInt64) async throws {
        try await pool.perform { session in
            _ = try session.execute(
                "UPDATE sluice.client SET last_ingest = greatest(last_ingest, $2) WHERE id = $1",
                [.int(Int64(clamping: id.rawValue)), .int(Int64(clamping: number))], cached: true)
        }
    }
}
