import SluiceCore
import SluicePorts
import SluiceValues

/// A frequent write of a session's file: one for each delivered change, and one for each confirmation by the client.
enum RealmFileWrite: Sendable {
    case append([RealmStreamEntry], RealmFileSession)
    case record(RealmUploadProgress, RealmFileSession)
}

/// Frequent writes of many files in one transaction, instead of a transaction for each file.
///
/// A batch performs a write only if `RealmFileTransaction` would perform it without an error and without losing the stream. It leaves
/// out all others, and files that another transaction has locked, so it never waits for a lock. The caller then performs those that were
/// left out one by one. A file has at most one write of each kind in a batch.
struct RealmFileBatch {
    private struct Append {
        let index: Int
        let file: Int64
        let session: Int64
        let entries: [RealmStreamEntry]
    }

    private struct Record {
        let index: Int
        let file: Int64
        let session: Int64
        let progress: RealmUploadProgress
    }

    private var appends: [Int64: Append] = [:]
    private var records: [Int64: Record] = [:]
    private let bounds: ClientStreamBounds
    private let count: Int

    init(_ writes: [RealmFileWrite], _ bounds: ClientStreamBounds) {
        self.bounds = bounds
        count = writes.count
        for (index, write) in writes.enumerated() {
            switch write {
            case .append(let entries, let session):
                guard let (file, number) = Self.numbers(session), appends[file] == nil, Self.isOrdered(entries) else { continue }
                appends[file] = Append(index: index, file: file, session: number, entries: entries)
            case .record(let progress, let session):
                guard let (file, number) = Self.numbers(session), records[file] == nil,
                    max(progress.clientVersion, progress.serverVersion) <= UInt64(Int64.max)
                else { continue }
                records[file] = Record(index: index, file: file, session: number, progress: progress)
            }
        }
    }

    private static func numbers(_ session: RealmFileSession) -> (Int64, Int64)? {
        guard let file = Int64(exactly: session.file), let number = Int64(exactly: session.number) else { return nil }
        return (file, number)
    }

    /// Returns `true` for at least one entry, in the order of the versions, which fit 63 bits.
    private static func isOrdered(_ entries: [RealmStreamEntry]) -> Bool {
        guard let last = entries.last, max(last.serverVersion, last.clientVersion) <= UInt64(Int64.max) else { return false }
        return zip(entries, entries.dropFirst()).allSatisfy { $0.serverVersion < $1.serverVersion && $0.clientVersion <= $1.clientVersion }
    }

    /// Performs the writes in a transaction of two round trips.
    /// - Returns: `true` for each write that took effect.
    func perform(_ session: PostgresSession) throws -> [Bool] {
        var done = [Bool](repeating: false, count: count)
        let files = Set(appends.keys).union(records.keys)
        guard !files.isEmpty else { return done }
        let lock = PostgresStatement(Self.lock, [Self.array(files.sorted())])
        try session.inTransaction(.readCommitted, first: lock) { locked in
            let files = Set((0..<locked.count).compactMap { locked.int($0, 0) })
            return [append(files), record(files)]
        } row: { statement, row in
            guard let file = row.int(0), let index = statement == 0 ? appends[file]?.index : records[file]?.index else { return }
            done[index] = true
        }
        return done
    }

    // MARK: Statements

    /// The first statement, so that the others see all that earlier holders of the rows committed.
    private static let lock = "SELECT id FROM sluice.realm_file WHERE id = ANY($1::bigint[]) FOR NO KEY UPDATE SKIP LOCKED"

    private func append(_ locked: Set<Int64>) -> PostgresStatement {
        let appends = appends.values.filter { locked.contains($0.file) }.sorted { $0.file < $1.file }
        let all = appends.flatMap { append in append.entries.map { (file: append.file, entry: $0) } }
        let bytes = { (content: [UInt8]?) in content.map { "\\x" + Hex.encode($0) } }
        return PostgresStatement(
            Self.append,
            [
                Self.array(all.map(\.file)), Self.array(all.map { Int64(clamping: $0.entry.serverVersion) }),
                Self.array(all.map { Int64(clamping: $0.entry.clientVersion) }),
                Self.array(all.map { Int64(bitPattern: $0.entry.origin) }), Self.array(all.map { Int64(bitPattern: $0.entry.timestamp) }),
                Self.array(all.map(\.entry.created)), Self.array(all.map { Int64($0.entry.cost) }),
                .text(StoreText.array(all.map { bytes($0.entry.changeset) })),
                .text(StoreText.array(all.map { bytes($0.entry.compensation.map { RealmFileRow.encode($0) }) })),
                Self.array(appends.map(\.file)), Self.array(appends.map(\.session)),
                Self.array(appends.map { Int64(clamping: $0.entries.first?.serverVersion ?? 0) }),
                Self.array(appends.map { Int64(clamping: $0.entries.first?.clientVersion ?? 0) }),
                .int(bounds.age), .int(bounds.entries), .int(bounds.bytes),
            ])
    }

    /// The conditions are those of `RealmFileTransaction.append`. Rows that fail one are not returned.
    private static let append = """
        WITH entry AS MATERIALIZED (
            SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
                $8::bytea[], $9::bytea[]) AS e (file, server, client, origin, stamp, created, cost, changeset, compensation)),
        wanted AS MATERIALIZED (
            SELECT w.*, e.last_server, e.last_client, e.entries, e.bytes, e.oldest, e.newest
            FROM unnest($10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[]) AS w (file, session, first_server, first_client)
            JOIN (SELECT file, max(server) AS last_server, max(client) AS last_client, count(*) AS entries, sum(cost)::bigint AS bytes,
                min(created) AS oldest, max(created) AS newest FROM entry GROUP BY file) AS e USING (file)),
        changed AS (
            UPDATE sluice.realm_file AS f SET last_server = w.last_server, last_client = w.last_client, entries = f.entries + w.entries,
                bytes = f.bytes + w.bytes, seen_at = now()
            FROM wanted AS w
            WHERE f.id = w.file AND f.session = w.session AND NOT f.is_lost
                AND w.first_server > greatest(f.last_server, f.acknowledged, coalesce(f.view_server, 0))
                AND w.first_client >= f.last_client AND f.entries + w.entries <= $15 AND f.bytes + w.bytes <= $16
                AND w.newest - greatest(least(w.oldest, (SELECT created FROM sluice.realm_entry AS o WHERE o.file = f.id
                    AND NOT o.is_covered ORDER BY o.server_version LIMIT 1)), 0) <= $14
            RETURNING f.id),
        added AS (
            INSERT INTO sluice.realm_entry
                (file, server_version, client_version, origin, stamp, created, cost, changeset, compensation)
            SELECT entry.* FROM entry JOIN changed ON changed.id = entry.file)
        SELECT id FROM changed
        """

    private func record(_ locked: Set<Int64>) -> PostgresStatement {
        let records = records.values.filter { locked.contains($0.file) }
        return PostgresStatement(
            Self.record,
            [
                Self.array(records.map(\.file)), Self.array(records.map(\.session)),
                Self.array(records.map { Int64(clamping: $0.progress.clientVersion) }),
                Self.array(records.map { Int64(clamping: $0.progress.serverVersion) }),
            ])
    }

    private static let record = """
        WITH wanted AS MATERIALIZED (
            SELECT w.* FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS w (file, session, client, server)
            JOIN sluice.realm_file AS f ON f.id = w.file AND f.session = w.session),
        gone AS (
            DELETE FROM sluice.realm_entry AS e USING wanted AS w WHERE e.file = w.file AND e.server_version <= w.server
            RETURNING e.file, e.cost, e.is_covered),
        freed AS (
            SELECT w.file, w.client, w.server, count(g.cost) AS entries, coalesce(sum(g.cost), 0)::bigint AS bytes
            FROM wanted AS w LEFT JOIN gone AS g ON g.file = w.file AND NOT g.is_covered GROUP BY w.file, w.client, w.server)
        UPDATE sluice.realm_file AS f SET upload_client = greatest(f.upload_client, w.client),
            upload_server = greatest(f.upload_server, w.server), acknowledged = greatest(f.acknowledged, w.server), seen_at = now(),
            entries = f.entries - w.entries, bytes = f.bytes - w.bytes
        FROM freed AS w WHERE f.id = w.file RETURNING f.id
        """

    private static func array(_ numbers: [Int64]) -> PostgresParameter {
        .text("{" + numbers.map(String.init).joined(separator: ",") + "}")
    }
}
