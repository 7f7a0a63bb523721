import SluiceCore
package import SluicePorts

/// The client files of Realm's protocol (`sluice.realm_file`, `sluice.realm_entry`).
///
/// Each call for a session is one transaction that locks the row of the file first, see `RealmFileTransaction`. The frequent calls of
/// concurrent sessions share a transaction, see `RealmFileBatch`.
package struct PostgresRealmClients: RealmClientStore {
    /// The maximum number of files that one call of `forget` deletes.
    package static let forgotten = 1_000

    private static let table = "sluice.realm_file"

    private let pool: PostgresPool
    private let bounds: ClientStreamBounds
    private let files: ReplicaBound
    /// One batch runs at a time: the next one gathers meanwhile, and shares one flush of the WAL.
    private let batches = RequestCoalescer<RealmFileWrite, Bool>(width: 1, most: 1_024)

    /// - Parameters:
    ///   - bounds: The bounds of a file's entries.
    ///   - files: The bound of a user's files.
    package init(pool: PostgresPool, bounds: ClientStreamBounds = ClientStreamBounds(), files: ReplicaBound = ReplicaBound()) {
        (self.pool, self.bounds, self.files) = (pool, bounds, files)
    }

    package func allot(user: String) async throws -> RealmFileIdent {
        let salt = UInt64.random(in: 1...UInt64(Int64.max))
        let id = try await files.register(user, in: Self.table, ["salt": "$4::bigint"], [.int(salt)], pool)
        return RealmFileIdent(ident: UInt64(clamping: id), salt: salt)
    }

    /// Records that open files are in use.
    package func recordUse(of files: [UInt64]) async throws { try await ReplicaBound.recordUse(of: files, in: Self.table, pool) }

    /// Deletes files of deleted users, as `ClientStore.deleteOrphans` does.
    package func deleteOrphans() async throws -> Int { try await ReplicaBound.deleteOrphans(of: Self.table, pool) }

    package func open(_ file: RealmFileIdent, user: String) async throws -> StoredRealmClient {
        // The numbers come from a client.
        guard let id = Int64(exactly: file.ident), let salt = Int64(exactly: file.salt) else { throw Self.unknown(file) }
        return try await pool.perform { session in
            // Waits for a running write of the previous session, which holds the row. The entries are read behind that lock.
            let begin = PostgresStatement(Self.begin, [.int(id), .int(salt), .text(user)])
            return try session.inTransaction(.readCommitted, first: begin) { opened in
                guard !opened.isEmpty else { throw try Self.refusal(file, salt: salt, user: user, session) }
                let entries = try session.query(RealmFileRow.entries, [.int(id)], cached: true)
                return try RealmFileRow.client(file, opened, entries)
            }
        }
    }

    private static let begin = """
        UPDATE sluice.realm_file SET session = session + 1, seen_at = now() WHERE id = $1 AND salt = $2 AND user_id = $3
        RETURNING \(RealmFileRow.columns)
        """

    private static func unknown(_ file: RealmFileIdent) -> SluiceError {
        SluiceError(.badClientFile, "Client file \(file.ident) does not exist, or has another salt.")
    }

    /// Returns the reason why a file was not opened. The pair must be right before the error reveals that the file exists.
    private static func refusal(_ file: RealmFileIdent, salt: Int64, user: String, _ session: PostgresSession) throws -> SluiceError {
        let found = try session.query(
            "SELECT FROM sluice.realm_file WHERE id = $1 AND salt = $2", [.int(file.ident), .int(salt)], cached: true)
        if found.isEmpty { return unknown(file) }
        return SluiceError(.userMismatch, "Client file \(file.ident) belongs to another user than \(user).")
    }

    package func append(_ entries: [RealmStreamEntry], to session: RealmFileSession) async throws {
        guard try await share(.append(entries, session)) else {
            return try await change(session) { try $0.append(entries) }
        }
    }

    package func record(_ progress: RealmUploadProgress, of session: RealmFileSession) async throws {
        guard try await share(.record(progress, session)) else {
            return try await change(session) { try $0.record(progress) }
        }
    }

    package func beginBootstrap(queryVersion: UInt64, of session: RealmFileSession) async throws {
        try await change(session) { try $0.setBuilding(queryVersion) }
    }

    package func completeBootstrap(_ view: RealmClientRecord.View, of session: RealmFileSession) async throws {
        try await change(session) { try $0.completeBootstrap(view) }
    }

    package func cancelBootstrap(of session: RealmFileSession) async throws {
        try await change(session) { try $0.setBuilding(nil) }
    }

    package func keep(replica: [UInt8], ofView view: UInt64, of session: RealmFileSession) async throws {
        try await change(session) { try $0.keep(replica: replica, ofView: view) }
    }

    package func lose(_ session: RealmFileSession) async throws {
        try await change(session) { try $0.lose() }
    }

    /// Performs a write in a batch.
    /// - Returns: `false` if it did not take effect, and the file's own transaction must decide.
    private func share(_ write: RealmFileWrite) async throws -> Bool {
        do { return try await batches.ask(write, perform) } catch { throw PostgresError.forPort(error) }
    }

    /// Performs writes together. Those with the answer `false` did not take effect.
    private func perform(_ writes: [RealmFileWrite]) async -> Gathered<Bool> {
        let batch = RealmFileBatch(writes, bounds)
        do {
            let done = try await pool.withSession { session in
                do {
                    return try batch.perform(session)
                } catch {
                    // A write that the server rejects must not fail the others.
                    guard let rejected = ((error as? PipelineFailure)?.error ?? error) as? PostgresError, rejected.sqlState != nil,
                        !session.isBroken
                    else { throw error }
                    return writes.map { _ in false }
                }
            }
            return Gathered(answers: done.map { .success($0) })
        } catch {
            let error = (error as? PipelineFailure)?.error ?? error
            return Gathered(answers: writes.map { _ in .failure(error) })
        }
    }

    private func change(_ file: RealmFileSession, _ body: @escaping @Sendable (RealmFileTransaction) throws -> Void) async throws {
        let bounds = bounds
        try await pool.perform { session in
            let lock = try RealmFileTransaction.lock(file)
            try session.inTransaction(.readCommitted, first: lock) { locked in
                try body(RealmFileTransaction(file, locked, bounds, session))
            }
        }
    }

    /// Returns the user's files with the first bytes of their states (`RealmClientRecord.replica`), the most recently used first.
    ///
    /// Cost: O(files). It serves explanations for operators.
    package func heads(of user: String, bytes: Int, limit: Int) async throws -> [(file: UInt64, head: [UInt8])] {
        let result = try await pool.share(
            PostgresStatement(
                "SELECT id, substring(replica FOR $2) FROM sluice.realm_file WHERE user_id = $1 ORDER BY seen_at DESC, id DESC LIMIT $3",
                [.text(user), .int(Int64(bytes)), .int(Int64(limit))]))
        return (0..<result.count).map { (UInt64(clamping: result.int($0, 0) ?? 0), result.bytes($0, 1) ?? []) }
    }

    /// Deletes files that no session has opened or changed for so many days, with their entries. Their clients are reset if they return.
    /// Up to 1,000 in one call; a file that is in use at the moment stays.
    ///
    /// - Returns: The number of deleted files. The caller repeats the call while it is 1,000.
    @discardableResult
    package func forget(unusedFor days: Int = Limits.clientMemoryDays) async throws -> Int {
        try await pool.perform { session in
            try session.execute(
                """
                DELETE FROM sluice.realm_file WHERE id = ANY(ARRAY(
                    SELECT id FROM sluice.realm_file WHERE seen_at < now() - make_interval(days => $1)
                    ORDER BY seen_at LIMIT \(Self.forgotten) FOR UPDATE SKIP LOCKED))
                """, [.int(Int64(min(max(days, 0), 36_500)))])
        }
    }
}
