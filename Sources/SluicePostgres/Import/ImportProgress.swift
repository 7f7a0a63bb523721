import SluiceCore

/// The progress of one collection's import: the place in the source up to which all documents are rows or quarantined.
package struct ImportProgress: Hashable, Sendable {
    /// The fingerprint of the source's file.
    package let source: String
    package let type: String
    /// The number of documents that were read.
    package var documents: Int64 = 0
    /// The place of the next document in the uncompressed source, in bytes; 0 for archives, which are read from their start.
    package var offset: Int64 = 0
    package var quarantined: Int64 = 0
    /// The number of documents whose rows the table had already, with equal values.
    package var unchanged: Int64 = 0
    /// The length of the quarantine file, in bytes.
    package var quarantineBytes: Int64 = 0
    /// The bytes of the documents that were read.
    package var bytes: Int64 = 0
    /// The digest of the rows that were written.
    package var written = RowDigest()
    /// The digest of the table's rows that no import has written.
    package var foreign = RowDigest()
    /// `true` once every document was read.
    package var isRead = false
    /// `true` once the rows were read back and found equal.
    package var isVerified = false

    package init(source: String, type: String) {
        self.source = source
        self.type = type
    }
}

/// The table `sluice.import_progress`. A chunk of rows and its progress are one transaction, so nothing is lost or doubled.
package struct ImportProgressStore: Sendable {
    /// The time for which an import waits for another one of its class. The server notices the end of a killed process within it.
    package static let patience = Duration.seconds(20)

    package init() {}

    /// Creates the table, if it is missing.
    package func create(_ session: PostgresSession) throws {
        try session.inTransaction {
            try TableCatalog.lock(session)
            try session.script(
                """
                CREATE TABLE IF NOT EXISTS sluice.import_progress (
                    source text COLLATE "C" NOT NULL, type text COLLATE "C" NOT NULL, path text NOT NULL,
                    documents bigint NOT NULL, next_offset bigint NOT NULL, quarantined bigint NOT NULL, quarantine_bytes bigint NOT NULL,
                    bytes bigint NOT NULL, written bigint[] NOT NULL, foreign_rows bigint[] NOT NULL,
                    is_read boolean NOT NULL, is_verified boolean NOT NULL, unchanged bigint NOT NULL,
                    started_at timestamptz NOT NULL DEFAULT now(), changed_at timestamptz NOT NULL DEFAULT now(),
                    PRIMARY KEY (source, type)
                )
                """)
        }
    }

    /// Locks the class against other imports until the connection ends.
    ///
    /// - Throws: `timeout` if another import of the class is running.
    package func lock(_ type: String, within limit: Duration = patience, _ session: PostgresSession) throws {
        do {
            try session.query("SELECT pg_advisory_lock(hashtextextended($1, 0))", [.text("sluice.import " + type)], within: limit)
        } catch let error as PostgresError where error.code == .timeout {
            throw PostgresError(
                .timeout, "Another import into class \(type) is running.",
                fix: "Wait until it has ended, and run the command again. If it ran on a machine that is gone, end its connection with "
                    + "pg_terminate_backend.",
                cause: .error(error.asSluiceError))
        }
    }

    /// Returns the progress of a source; nil if its import has not begun.
    package func find(source: String, type: String, _ session: PostgresSession) throws -> ImportProgress? {
        let found = try session.query("\(Self.selection) WHERE source = $1 AND type = $2", [.text(source), .text(type)])
        return found.isEmpty ? nil : try Self.progress(found, 0)
    }

    /// Begins the import of a source.
    ///
    /// - Parameter stored: The digest of the table's rows.
    package func begin(_ progress: inout ImportProgress, path: String, stored: RowDigest, _ session: PostgresSession) throws {
        progress.foreign = try stored - written(type: progress.type, session)
        try save(progress, path: path, session)
    }

    /// Returns the digest of the rows that all imports of a class have written.
    package func written(type: String, _ session: PostgresSession) throws -> RowDigest {
        let found = try session.query("\(Self.selection) WHERE type = $1", [.text(type)])
        return try (0..<found.count).reduce(RowDigest()) { $0 + (try Self.progress(found, $1)).written }
    }

    package func save(_ progress: ImportProgress, path: String, _ session: PostgresSession) throws {
        try session.execute(
            """
            INSERT INTO sluice.import_progress VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
            ON CONFLICT (source, type) DO UPDATE SET path = excluded.path, documents = excluded.documents,
                next_offset = excluded.next_offset, quarantined = excluded.quarantined, quarantine_bytes = excluded.quarantine_bytes,
                bytes = excluded.bytes, written = excluded.written, foreign_rows = excluded.foreign_rows,
                is_read = excluded.is_read, is_verified = excluded.is_verified, unchanged = excluded.unchanged, changed_at = now()
            """,
            [
                .text(progress.source), .text(progress.type), .text(path), .int(progress.documents), .int(progress.offset),
                .int(progress.quarantined), .int(progress.quarantineBytes), .int(progress.bytes), .text(Self.text(progress.written)),
                .text(Self.text(progress.foreign)), .bool(progress.isRead), .bool(progress.isVerified),
                .int(progress.unchanged),
            ], cached: true)
    }

    private static let selection = """
        SELECT source, type, documents, next_offset, quarantined, quarantine_bytes, bytes, written[1], written[2], written[3],
            foreign_rows[1], foreign_rows[2], foreign_rows[3], is_read, is_verified, unchanged FROM sluice.import_progress
        """

    private static func text(_ digest: RowDigest) -> String {
        "{\(digest.rows),\(Int64(bitPattern: digest.first)),\(Int64(bitPattern: digest.second))}"
    }

    private static func progress(_ result: PostgresResult, _ row: Int) throws -> ImportProgress {
        func int(_ column: Int) -> Int64 { result.int(row, column) ?? 0 }
        func digest(_ column: Int) -> RowDigest {
            RowDigest(rows: int(column), first: UInt64(bitPattern: int(column + 1)), second: UInt64(bitPattern: int(column + 2)))
        }
        var progress = ImportProgress(source: result[row, 0] ?? "", type: result[row, 1] ?? "")
        (progress.documents, progress.offset, progress.quarantined, progress.quarantineBytes) = (int(2), int(3), int(4), int(5))
        (progress.bytes, progress.written, progress.foreign) = (int(6), digest(7), digest(10))
        (progress.isRead, progress.isVerified) = (result.bool(row, 13) ?? false, result.bool(row, 14) ?? false)
        progress.unchanged = int(15)
        return progress
    }
}
