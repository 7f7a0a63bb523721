import SluiceCore

/// Making and fitting the file.
extension Writer {
    private static let tables = """
        CREATE TABLE IF NOT EXISTS _sluice_meta (name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS _sluice_property (
            type TEXT, name TEXT, kind TEXT, PRIMARY KEY (type, name)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS _sluice_server (type TEXT, key, row BLOB, PRIMARY KEY (type, key)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS _sluice_pending (
            number INTEGER PRIMARY KEY, time INTEGER, base INTEGER, bytes INTEGER, acknowledged INTEGER);
        CREATE TABLE IF NOT EXISTS _sluice_pending_change (
            number INTEGER, ordinal INTEGER, type TEXT, key, change BLOB, PRIMARY KEY (number, ordinal)) WITHOUT ROWID;
        CREATE INDEX IF NOT EXISTS _sluice_pending_object ON _sluice_pending_change (type, key);
        CREATE TABLE IF NOT EXISTS _sluice_subscription_set (
            version INTEGER PRIMARY KEY, state TEXT, code INTEGER, message TEXT, changesets INTEGER);
        CREATE TABLE IF NOT EXISTS _sluice_subscription (
            version INTEGER, position INTEGER, id INTEGER, name TEXT, type TEXT, query TEXT, created BLOB, updated BLOB,
            PRIMARY KEY (version, position)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS _sluice_staged_removal (type TEXT, key, PRIMARY KEY (type, key)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS _sluice_staged_kept (type TEXT, key, PRIMARY KEY (type, key)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS _sluice_ingest (
            id INTEGER PRIMARY KEY AUTOINCREMENT, batch INTEGER, change BLOB);
        CREATE TABLE IF NOT EXISTS _sluice_error (id INTEGER PRIMARY KEY AUTOINCREMENT, writes BLOB);
        """

    /// Makes what is missing and reads what is there.
    func open() throws(SluiceError) {
        try connection.execute("PRAGMA synchronous = NORMAL; PRAGMA secure_delete = OFF")
        try transaction { () throws(SluiceError) in
            try checkVersion()
            try connection.execute(Writer.tables)
            let fields = try readMeta()
            meta = ReplicaMeta(fields)
            if fields["format"] == nil { try setMeta("format", .int(Writer.formatVersion)) }
            let lacksData = try fitTables()
            try store.links.fit(store)
            if lacksData {
                meta.applied = AppliedPosition(lsn: .zero, version: 0)
                meta.held = []
            }
        }
        connection.forgetStatements()
    }

    private func checkVersion() throws(SluiceError) {
        let exists = try Statement("SELECT 1 FROM sqlite_master WHERE name = '_sluice_meta'", on: connection)
        defer { exists.reset() }
        guard try exists.step() else { return }
        guard case .int(let version)? = try readMeta()["format"] else {
            throw SluiceError(.replicaCorrupt, "The local file has no format version.")
        }
        guard version <= Writer.formatVersion else {
            throw SluiceError(
                .replicaVersion, "The local file has format \(version), this release reads up to \(Writer.formatVersion).")
        }
    }

    /// Gives every class its table and every property its column.
    /// - Returns: whether the file lacks data that the server has because something was added or changed.
    private func fitTables() throws(SluiceError) -> Bool {
        var lacksData = false
        let known = try knownProperties()
        for layout in layouts where layout.hasTable {
            let before = known[layout.type.name]
            let wanted = Dictionary(uniqueKeysWithValues: zip(layout.type.properties.map(\.name), layout.kinds.map(\.rawValue)))
            if before.map({ before in wanted.allSatisfy { before[$0.key] == $0.value } }) ?? false { continue }
            lacksData = lacksData || before != nil || meta.applied.version > 0
            let mustRebuild = before.map { before in wanted.contains { before[$0.key] != nil && before[$0.key] != $0.value } }
            if mustRebuild == true || before.map({ $0[layout.type.properties[layout.key].name] == nil }) == true {
                try connection.execute("DROP TABLE IF EXISTS \(layout.table)")
                try connection.execute(layout.creation(of: layout.table))
            } else if let before {
                try addColumns(layout, before: before)
            } else {
                try connection.execute(layout.creation(of: layout.table))
            }
            try connection.execute("DROP TABLE IF EXISTS \(layout.staging)")
            try remember(layout)
        }
        return lacksData
    }

    private func addColumns(_ layout: TableLayout, before: [String: String]) throws(SluiceError) {
        for (property, kind) in zip(layout.type.properties, layout.kinds) where before[property.name] == nil {
            let name = TableLayout.quoted(property.name)
            try connection.execute("ALTER TABLE \(layout.table) ADD COLUMN \(name) \(kind.declaration)")
        }
    }

    private func remember(_ layout: TableLayout) throws(SluiceError) {
        for (property, kind) in zip(layout.type.properties, layout.kinds) {
            let statement = try connection.statement("INSERT OR REPLACE INTO _sluice_property VALUES (?, ?, ?)")
            statement.bind(0, layout.type.name)
            statement.bind(1, property.name)
            statement.bind(2, kind.rawValue)
            try statement.run()
        }
    }

    private func knownProperties() throws(SluiceError) -> [String: [String: String]] {
        let statement = try connection.statement("SELECT type, name, kind FROM _sluice_property")
        var known: [String: [String: String]] = [:]
        while try statement.step() { known[statement.string(0), default: [:]][statement.string(1)] = statement.string(2) }
        statement.reset()
        return known
    }
}
