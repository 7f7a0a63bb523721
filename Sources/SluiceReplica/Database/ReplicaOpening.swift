import SluiceCore

/// The opening of a replica's file: creation, checks, and the adjustment to the app's schema.
struct ReplicaOpening {
    /// The format of the file that this release writes and reads.
    static let formatVersion: Int64 = 1
    let database: ReplicaDatabase
    /// The owner that a file without one gets. `nil` if it is not synced.
    let owner: String?

    private static let tables = """
        CREATE TABLE IF NOT EXISTS _sluice_meta (name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS _sluice_property (
            type TEXT, name TEXT, kind TEXT, PRIMARY KEY (type, name)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS _sluice_server (
            type TEXT, key, row BLOB, clocks BLOB, time INTEGER, PRIMARY KEY (type, key)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS _sluice_pending (
            number INTEGER PRIMARY KEY, time INTEGER, base INTEGER, bytes INTEGER, acknowledged INTEGER);
        CREATE TABLE IF NOT EXISTS _sluice_pending_change (
            number INTEGER, ordinal INTEGER, type TEXT, key, change BLOB, PRIMARY KEY (number, ordinal)) WITHOUT ROWID;
        CREATE INDEX IF NOT EXISTS _sluice_pending_object ON _sluice_pending_change (type, key);
        CREATE TABLE IF NOT EXISTS _sluice_subscription_set (
            version INTEGER PRIMARY KEY, state TEXT, code INTEGER, message TEXT, changesets INTEGER);
        CREATE TABLE IF NOT EXISTS _sluice_subscription (
            version INTEGER, position INTEGER, id INTEGER, name TEXT, type TEXT, query TEXT, created BLOB, updated BLOB,
            options BLOB, PRIMARY KEY (version, position)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS _sluice_staged_removal (
            type TEXT, key, reason INTEGER, PRIMARY KEY (type, key)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS _sluice_staged_kept (type TEXT, key, PRIMARY KEY (type, key)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS _sluice_staged_times (
            type TEXT, key, times BLOB, time INTEGER, PRIMARY KEY (type, key)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS _sluice_ingest (
            id INTEGER PRIMARY KEY AUTOINCREMENT, batch INTEGER, change BLOB);
        CREATE TABLE IF NOT EXISTS _sluice_error (id INTEGER PRIMARY KEY AUTOINCREMENT, writes BLOB);
        """

    /// Creates missing tables and columns, and reads the file's state.
    func open(indexes: PropertyIndexes, shouldCompact: (@Sendable (Int, Int) -> Bool)?) throws(SluiceError) {
        let connection = database.connection
        let isNew = try !exists()
        try connection.transaction { () throws(SluiceError) in
            try checkVersion()
            try connection.execute(ReplicaOpening.tables + CommitHistory.table)
            let fields = try connection.meta()
            database.meta = ReplicaMeta(fields)
            if fields["format"] == nil { try database.setMeta("format", .int(ReplicaOpening.formatVersion)) }
            let lacksData = try ClassTables(database).fit(hasData: database.meta.applied.version > 0)
            try database.store.links.fit(database.store)
            try indexes.fit(connection)
            if let owner, database.meta.owner.isEmpty { database.meta.owner = owner }
            // Data that was never downloaded is missing now: the next session must bootstrap in full.
            if lacksData {
                database.meta.applied = AppliedPosition(lsn: .zero, version: 0)
                database.meta.held = []
                database.meta.checkpoint = []
            }
            try database.saveMeta(since: ReplicaMeta(fields))
        }
        connection.forgetStatements()
        if !isNew, let shouldCompact { try compact(when: shouldCompact) }
        try database.noteState()
    }

    /// Opens a file for reading only. It must have all tables and columns.
    func openReadOnly() throws(SluiceError) {
        guard try exists() else { throw SluiceError(.replicaCorrupt, "The file is not a local file of this SDK.") }
        try checkVersion()
        database.meta = ReplicaMeta(try database.connection.meta())
        try ClassTables(database).check()
        try database.noteState()
    }

    /// Opens the file without changing its tables.
    func openUnfitted() throws(SluiceError) {
        try checkVersion()
        database.meta = ReplicaMeta(try database.connection.meta())
        try database.noteState()
    }

    private func compact(when shouldCompact: @Sendable (Int, Int) -> Bool) throws(SluiceError) {
        let connection = database.connection
        let sizes = try connection.statement(
            "SELECT page_count * page_size, (page_count - freelist_count) * page_size "
                + "FROM pragma_page_count, pragma_page_size, pragma_freelist_count")
        guard try sizes.step() else { return sizes.reset() }
        let (total, used) = (Int(sizes.int(0)), Int(sizes.int(1)))
        sizes.reset()
        guard shouldCompact(total, used) else { return }
        connection.forgetStatements()
        try connection.execute("VACUUM")
        try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    }

    private func exists() throws(SluiceError) -> Bool {
        let exists = try Statement("SELECT 1 FROM sqlite_master WHERE name = '_sluice_meta'", on: database.connection)
        defer { exists.reset() }
        return try exists.step()
    }

    private func checkVersion() throws(SluiceError) {
        guard try exists() else { return }
        guard case .int(let version)? = try database.connection.meta()["format"] else {
            throw SluiceError(.replicaCorrupt, "The local file has no format version.")
        }
        guard version == ReplicaOpening.formatVersion else {
            throw SluiceError(
                .replicaVersion, "The local file has format \(version), this release reads \(ReplicaOpening.formatVersion).")
        }
    }
}
