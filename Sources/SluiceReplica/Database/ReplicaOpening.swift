import SluiceCore

/// Creation of the file, and its adjustment to the app's schema.
extension Writer {
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
        let isNew = try !exists()
        try connection.transaction { () throws(SluiceError) in
            try checkVersion()
            try connection.execute(Writer.tables + CommitHistory.table)
            let fields = try readMeta()
            meta = ReplicaMeta(fields)
            if fields["format"] == nil { try setMeta("format", .int(Writer.formatVersion)) }
            let lacksData = try fitTables()
            try store.links.fit(store)
            try indexes.fit(connection)
            if let owner, meta.owner.isEmpty { meta.owner = owner }
            // Data that was never downloaded is missing now: the next session must bootstrap in full.
            if lacksData {
                meta.applied = AppliedPosition(lsn: .zero, version: 0)
                meta.held = []
                meta.checkpoint = []
            }
            try saveMeta(since: ReplicaMeta(fields))
        }
        connection.forgetStatements()
        if !isNew, let shouldCompact { try compact(when: shouldCompact) }
        try noteState()
    }

    /// Opens a file for reading only. It must have all tables and columns.
    func openReadOnly() throws(SluiceError) {
        guard try exists() else { throw SluiceError(.replicaCorrupt, "The file is not a local file of this SDK.") }
        try checkVersion()
        meta = ReplicaMeta(try readMeta())
        try checkTables()
        try noteState()
    }

    /// Throws `invalidSchemaChange` unless every class has its table and every property its column.
    func checkTables() throws(SluiceError) {
        let known = try knownProperties()
        for layout in layouts where layout.hasTable {
            for (property, kind) in zip(layout.type.properties, layout.kinds)
            where known[layout.type.name]?[property.name] != kind.rawValue {
                throw SluiceError(
                    .invalidSchemaChange, "The local file has no property \(layout.type.name).\(property.name) of this type.",
                    fix: "Open the file with the classes that it was written with.")
            }
        }
    }

    private func compact(when shouldCompact: @Sendable (Int, Int) -> Bool) throws(SluiceError) {
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
        let exists = try Statement("SELECT 1 FROM sqlite_master WHERE name = '_sluice_meta'", on: connection)
        defer { exists.reset() }
        return try exists.step()
    }

    /// Opens the file without changing its tables.
    func openUnfitted() throws(SluiceError) {
        try checkVersion()
        meta = ReplicaMeta(try readMeta())
        try noteState()
    }

    private func checkVersion() throws(SluiceError) {
        guard try exists() else { return }
        guard case .int(let version)? = try readMeta()["format"] else {
            throw SluiceError(.replicaCorrupt, "The local file has no format version.")
        }
        guard version == Writer.formatVersion else {
            throw SluiceError(.replicaVersion, "The local file has format \(version), this release reads \(Writer.formatVersion).")
        }
    }

    /// Gives every class its table and every property its column.
    /// - Returns: `true` if something was added or changed, so that the file lacks data that the server has.
    private func fitTables() throws(SluiceError) -> Bool {
        var lacksData = false
        let known = try knownProperties()
        for layout in layouts where layout.hasTable {
            let before = known[layout.type.name]
            let wanted = Dictionary(uniqueKeysWithValues: zip(layout.type.properties.map(\.name), layout.kinds.map(\.rawValue)))
            if before.map({ before in wanted.allSatisfy { before[$0.key] == $0.value } }) ?? false { continue }
            lacksData = lacksData || before != nil || meta.applied.version > 0
            // A column of another kind cannot be converted: the server's data is downloaded again.
            let mustRebuild = before.map { before in wanted.contains { before[$0.key] != nil && before[$0.key] != $0.value } }
            if mustRebuild == true || before.map({ $0[layout.type.properties[layout.key].name] == nil }) == true {
                try connection.execute("DROP TABLE IF EXISTS \(layout.table)")
                try connection.execute(layout.creation(of: layout.table))
            } else if let before {
                try addColumns(layout, before: before)
            } else {
                try connection.execute(layout.creation(of: layout.table))
            }
            try dropStaging(layout)
            try remember(layout)
        }
        return lacksData
    }

    private func addColumns(_ layout: TableLayout, before: [String: String]) throws(SluiceError) {
        for (property, kind) in zip(layout.type.properties, layout.kinds) where before[property.name] == nil {
            let name = SQLQuote.identifier(property.name)
            try connection.execute("ALTER TABLE \(layout.table) ADD COLUMN \(name) \(kind.declaration)")
        }
    }

    func remember(_ layout: TableLayout) throws(SluiceError) {
        for (property, kind) in zip(layout.type.properties, layout.kinds) {
            let statement = try connection.statement("INSERT OR REPLACE INTO _sluice_property VALUES (?, ?, ?)")
            statement.bind(0, layout.type.name)
            statement.bind(1, property.name)
            statement.bind(2, kind.rawValue)
            try statement.run()
        }
    }

    func knownProperties() throws(SluiceError) -> [String: [String: String]] {
        let statement = try connection.statement("SELECT type, name, kind FROM _sluice_property")
        var known: [String: [String: String]] = [:]
        while try statement.step() { known[statement.string(0), default: [:]][statement.string(1)] = statement.string(2) }
        statement.reset()
        return known
    }
}
