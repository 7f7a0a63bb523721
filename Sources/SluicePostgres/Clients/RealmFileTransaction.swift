package import SluiceCore
package import SluicePorts

/// The changes of one client file in a transaction that holds the file's row.
///
/// The statement of `lock` comes first. Later statements see all that earlier holders of the row committed, because each statement of a
/// read-committed transaction has a snapshot of its own.
package struct RealmFileTransaction {
    private let file: Int64
    private let isLost: Bool
    /// The last server version of the stream: that of the last entry, view or confirmation.
    private let lastServer: UInt64
    /// The client version of the last entry.
    private let lastClient: UInt64
    private let count: Int
    private let bytes: Int
    private let bounds: ClientStreamBounds
    private let session: PostgresSession

    /// Returns the statement that locks the file's row. `FOR NO KEY UPDATE` permits the references of `realm_entry`.
    package static func lock(_ file: RealmFileSession) throws(SluiceError) -> PostgresStatement {
        guard let id = Int64(exactly: file.file) else { throw gone(file) }
        return PostgresStatement(
            """
            SELECT session, is_lost, greatest(last_server, acknowledged, coalesce(view_server, 0)), last_client, entries, bytes
            FROM sluice.realm_file WHERE id = $1 FOR NO KEY UPDATE
            """, [.int(id)])
    }

    /// Creates the changes from the result of `lock`.
    ///
    /// - Throws: `badClientFile` if the file is gone, `resync` if it has been opened again.
    package init(
        _ file: RealmFileSession, _ locked: PostgresResult, _ bounds: ClientStreamBounds, _ session: PostgresSession
    ) throws(SluiceError) {
        guard let id = Int64(exactly: file.file), let number = locked.int(0, 0) else { throw Self.gone(file) }
        guard UInt64(clamping: number) == file.number else {
            throw SluiceError(.resync, "Client file \(file.file) has been opened by another session.")
        }
        self.file = id
        isLost = locked.bool(0, 1) ?? true
        lastServer = UInt64(clamping: locked.int(0, 2) ?? 0)
        lastClient = UInt64(clamping: locked.int(0, 3) ?? 0)
        count = Int(clamping: locked.int(0, 4) ?? 0)
        bytes = Int(clamping: locked.int(0, 5) ?? 0)
        (self.bounds, self.session) = (bounds, session)
    }

    private static func gone(_ file: RealmFileSession) -> SluiceError {
        SluiceError(.badClientFile, "Client file \(file.file) does not exist.")
    }

    // MARK: Entries

    /// Appends entries, or loses the stream if a bound is exceeded.
    package func append(_ entries: [RealmStreamEntry]) throws {
        guard !isLost, let last = entries.last else { return }
        try checkOrder(entries)
        let cost = entries.reduce(0) { $0 + $1.cost }
        if count + entries.count > bounds.entries || bytes + cost > bounds.bytes { return try lose() }
        if try isOld(entries) { return try lose() }
        var statements = try entries.map { try insertion($0) }
        statements.append(
            PostgresStatement(
                """
                UPDATE sluice.realm_file SET last_server = $2, last_client = $3, entries = entries + $4, bytes = bytes + $5, seen_at = now()
                WHERE id = $1
                """,
                [
                    .int(file), .int(try Self.number(last.serverVersion)), .int(try Self.number(last.clientVersion)),
                    .int(entries.count), .int(cost),
                ]))
        try run(statements)
    }

    private func checkOrder(_ entries: [RealmStreamEntry]) throws(SluiceError) {
        var (server, client) = (lastServer, lastClient)
        for entry in entries {
            guard entry.serverVersion > server, entry.clientVersion >= client else {
                throw SluiceError(
                    .internalError,
                    """
                    An entry of version \(entry.serverVersion) and client version \(entry.clientVersion) follows \(server) and \(client) \
                    in the stream of client file \(file).
                    """)
            }
            (server, client) = (entry.serverVersion, entry.clientVersion)
        }
    }

    /// Returns `true` if the oldest entry is over the age when the newest one is made.
    private func isOld(_ entries: [RealmStreamEntry]) throws -> Bool {
        guard let first = entries.first, let newest = entries.map(\.created).max() else { return false }
        let stored = try session.query(
            "SELECT created FROM sluice.realm_entry WHERE file = $1 AND NOT is_covered ORDER BY server_version LIMIT 1", [.int(file)],
            cached: true)
        let oldest = stored.int(0, 0) ?? first.created
        return oldest < newest && newest - max(oldest, 0) > bounds.age
    }

    private func insertion(_ entry: RealmStreamEntry) throws(SluiceError) -> PostgresStatement {
        PostgresStatement(
            """
            INSERT INTO sluice.realm_entry
                (file, server_version, client_version, origin, stamp, created, cost, changeset, compensation)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
            """,
            [
                .int(file), .int(try Self.number(entry.serverVersion)), .int(try Self.number(entry.clientVersion)),
                .int(Int64(bitPattern: entry.origin)), .int(Int64(bitPattern: entry.timestamp)), .int(entry.created), .int(entry.cost),
                .bytes(entry.changeset), entry.compensation.map { .bytes(RealmFileRow.encode($0)) } ?? .null,
            ])
    }

    /// Removes all entries. The client is reset when it returns.
    package func lose() throws {
        try run([
            PostgresStatement("DELETE FROM sluice.realm_entry WHERE file = $1", [.int(file)]),
            PostgresStatement(
                "UPDATE sluice.realm_file SET is_lost = true, entries = 0, bytes = 0, seen_at = now() WHERE id = $1", [.int(file)]),
        ])
    }

    // MARK: Progress

    /// Stores the progress of uploads, and removes the entries that it confirms.
    package func record(_ progress: RealmUploadProgress) throws {
        try run([
            PostgresStatement(
                """
                UPDATE sluice.realm_file SET upload_client = greatest(upload_client, $2), upload_server = greatest(upload_server, $3)
                WHERE id = $1
                """,
                [.int(file), .int(try Self.number(progress.clientVersion)), .int(try Self.number(progress.serverVersion))]),
            try confirmation(progress.serverVersion),
        ])
    }

    private func confirmation(_ version: UInt64) throws(SluiceError) -> PostgresStatement {
        PostgresStatement(
            """
            WITH gone AS (
                DELETE FROM sluice.realm_entry WHERE file = $1 AND server_version <= $2 RETURNING cost, is_covered),
            freed AS (SELECT count(*) AS entries, coalesce(sum(cost), 0)::bigint AS bytes FROM gone WHERE NOT is_covered)
            UPDATE sluice.realm_file AS f SET acknowledged = greatest(f.acknowledged, $2), seen_at = now(),
                entries = f.entries - freed.entries, bytes = f.bytes - freed.bytes
            FROM freed WHERE f.id = $1
            """, [.int(file), .int(try Self.number(version))])
    }

    // MARK: Bootstraps

    /// Stores the query version of the bootstrap under way, or nil.
    package func setBuilding(_ queryVersion: UInt64?) throws {
        let version: PostgresParameter = if let queryVersion { .int(try Self.number(queryVersion)) } else { .null }
        try run([
            PostgresStatement("UPDATE sluice.realm_file SET building = $2, seen_at = now() WHERE id = $1", [.int(file), version])
        ])
    }

    /// Stores a complete view. Of the entries that it covers, compensating writes alone remain.
    package func completeBootstrap(_ view: RealmClientRecord.View) throws {
        try run([
            PostgresStatement(
                """
                WITH kept AS (
                    UPDATE sluice.realm_entry SET is_covered = true, changeset = ''
                    WHERE file = $1 AND server_version <= $2 AND compensation IS NOT NULL AND NOT is_covered RETURNING cost),
                gone AS (DELETE FROM sluice.realm_entry WHERE file = $1 AND server_version <= $2 AND compensation IS NULL RETURNING cost),
                freed AS (
                    SELECT count(*) AS entries, coalesce(sum(cost), 0)::bigint AS bytes
                    FROM (SELECT cost FROM kept UNION ALL SELECT cost FROM gone) AS covered)
                UPDATE sluice.realm_file AS f SET building = NULL, view_server = $2, view_query = $3, seen_at = now(),
                    replica = coalesce($4, f.replica),
                    entries = f.entries - freed.entries, bytes = f.bytes - freed.bytes
                FROM freed WHERE f.id = $1
                """,
                [
                    .int(file), .int(try Self.number(view.serverVersion)), .int(try Self.number(view.queryVersion)),
                    view.replica.map { .bytes($0) } ?? .null,
                ]),
            // A client that changes its view again and again without confirming any.
            PostgresStatement(
                """
                DELETE FROM sluice.realm_entry WHERE file = $1 AND is_covered AND server_version <= (
                    SELECT server_version FROM sluice.realm_entry WHERE file = $1 AND is_covered
                    ORDER BY server_version DESC OFFSET $2 LIMIT 1)
                """, [.int(file), .int(max(0, bounds.compensations))]),
        ])
    }

    /// Stores the state from which the views of the file continue.
    package func keep(replica: [UInt8], ofView view: UInt64) throws {
        try run([
            PostgresStatement(
                "UPDATE sluice.realm_file SET replica = $2, seen_at = now() WHERE id = $1 AND coalesce(view_server, 0) = $3",
                [.int(file), .bytes(replica), .int(try Self.number(view))])
        ])
    }

    // MARK: Statements

    private func run(_ statements: [PostgresStatement]) throws {
        do throws(PipelineFailure) { _ = try session.pipeline(statements) } catch { throw error.error }
    }

    /// Returns a version as PostgreSQL holds it.
    private static func number(_ version: UInt64) throws(SluiceError) -> Int64 {
        guard let number = Int64(exactly: version) else {
            throw SluiceError(.internalError, "Version \(version) of a client file exceeds 63 bits.")
        }
        return number
    }
}
