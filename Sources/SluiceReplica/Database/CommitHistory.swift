import SluiceCore

/// The commit history: the objects that the latest commits changed, for processes that share a file, and the version of its state.
enum CommitHistory {
    static let table = "CREATE TABLE IF NOT EXISTS _sluice_commit (version INTEGER PRIMARY KEY, changes BLOB);"
    /// The number of kept commits. A process that is further behind assumes that every row has changed.
    static let kept: UInt64 = 1_000
    /// The maximum number of keys recorded per class. Beyond it, the whole class counts as changed.
    static let keyLimit = 1_000

    /// Encodes the changes by class name: the keys, or null for the whole class.
    static func encode(_ types: [Int: TypeChange], _ layouts: [TableLayout]) -> [UInt8] {
        var changes: [String: Value] = [:]
        for (type, change) in types {
            let isWhole = change.isWhole || change.keys.count > keyLimit
            changes[layouts[type].type.name] = isWhole ? .null : .list(Array(change.keys))
        }
        return StoredValue.encode(.dictionary(changes))
    }

    /// Decodes the changes. Omits classes that this process does not have. Returns `nil` if the bytes are malformed.
    static func decode(_ bytes: UnsafeRawBufferPointer, _ index: (String) -> Int?) -> [Int: TypeChange]? {
        guard case .dictionary(let changes)? = StoredValue.decode(bytes) else { return nil }
        var types: [Int: TypeChange] = [:]
        for (name, keys) in changes {
            guard let type = index(name) else { continue }
            if case .list(let keys) = keys { types[type] = TypeChange(keys: Set(keys)) } else { types[type] = TypeChange(isWhole: true) }
        }
        return types
    }
}

extension Connection {
    /// Returns the version of the state that the connection sees.
    func version() throws(SluiceError) -> UInt64 {
        let statement = try statement("SELECT max(version) FROM _sluice_commit")
        defer { statement.reset() }
        return try statement.step() ? statement.unsigned(0) : 0
    }

    fileprivate func number(_ pragma: String) throws(SluiceError) -> Int64 {
        let statement = try statement("PRAGMA \(pragma)")
        defer { statement.reset() }
        return try statement.step() ? statement.int(0) : 0
    }
}

extension Writer {
    /// Records the transaction's changes of shown objects in the history.
    /// - Returns: the version of the state after the transaction.
    func recordCommit() throws(SluiceError) -> UInt64 {
        if news.types.isEmpty { return version }
        let next = version + 1
        let statement = try connection.statement("INSERT INTO _sluice_commit VALUES (?, ?)")
        statement.bind(0, next)
        statement.bind(1, CommitHistory.encode(news.types, layouts))
        try statement.run()
        // Pruned every 64 commits, so up to 63 more than `kept` remain.
        if next > CommitHistory.kept, next.isMultiple(of: 64) {
            try connection.execute("DELETE FROM _sluice_commit WHERE version <= \(next - CommitHistory.kept)")
        }
        return next
    }

    /// Records the current state of the file, for the next `catchUp`.
    func noteState() throws(SluiceError) {
        foreignCommits = try connection.number("data_version")
        definitions = try connection.number("schema_version")
        version = try connection.version()
    }

    /// Applies the commits of other processes since the last call. Without any, it costs one PRAGMA.
    func catchUp() throws(SluiceError) {
        let commits = try connection.number("data_version")
        if commits == foreignCommits { return }
        let definitions = try connection.number("schema_version")
        // Another process may have changed the schema: fail now instead of reading wrong columns.
        if definitions != self.definitions {
            try checkTables()
            self.definitions = definitions
        }
        meta = ReplicaMeta(try readMeta())
        // Their changesets and sets are not in the history. Notify the observers of both in any case.
        var foreign = WriterNews(local: true, subscriptions: true)
        let statement = try connection.statement("SELECT version, changes FROM _sluice_commit WHERE version > ? ORDER BY version")
        statement.bind(0, version)
        defer { statement.reset() }
        var reached = version
        while try statement.step() {
            let types = CommitHistory.decode(statement.bytes(1)) { layout(named: $0)?.index }
            let isNext = statement.unsigned(0) == reached + 1
            reached = statement.unsigned(0)
            // A gap means that history was pruned. Any row may have changed.
            guard isNext, let types else {
                for layout in layouts where layout.hasTable { foreign.types[layout.index] = TypeChange(isWhole: true) }
                continue
            }
            foreign.types.merge(types) { $0.merging($1) }
        }
        version = reached
        foreign.version = reached
        foreignCommits = commits
        // These objects lack the changes of the other processes.
        edited = [:]
        committed.merge(foreign)
    }
}
