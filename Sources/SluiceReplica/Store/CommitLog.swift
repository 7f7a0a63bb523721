import SluiceCore

/// What the latest commits touched: how processes that share a file learn of each other's changes, and the version of its state.
enum CommitLog {
    static let table = "CREATE TABLE IF NOT EXISTS _sluice_commit (version INTEGER PRIMARY KEY, changes BLOB);"
    /// Commits that are kept. A process that is further behind takes it that every row may have changed.
    static let kept: UInt64 = 1_000
    /// Of a class that more keys are of, only the fact is kept.
    static let keyLimit = 1_000

    /// By class name: the keys, or null for all.
    static func encode(_ types: [Int: TypeChange], _ layouts: [TableLayout]) -> [UInt8] {
        var changes: [String: Value] = [:]
        for (type, change) in types {
            let isWhole = change.isWhole || change.keys.count > keyLimit
            changes[layouts[type].type.name] = isWhole ? .null : .list(Array(change.keys))
        }
        return StoredValue.encode(.dictionary(changes))
    }

    /// Classes that this process does not have are left out. Nil when the bytes are malformed.
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
    /// The version of the state that the connection sees.
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
    /// Puts what the transaction did to what apps see into the log.
    /// - Returns: the version of the state after it.
    func recordCommit() throws(SluiceError) -> UInt64 {
        if news.types.isEmpty { return version }
        let next = version + 1
        let statement = try connection.statement("INSERT INTO _sluice_commit VALUES (?, ?)")
        statement.bind(0, next)
        statement.bind(1, CommitLog.encode(news.types, layouts))
        try statement.run()
        if next > CommitLog.kept, next.isMultiple(of: 64) {
            try connection.execute("DELETE FROM _sluice_commit WHERE version <= \(next - CommitLog.kept)")
        }
        return next
    }

    /// Remembers the file as it is.
    func noteState() throws(SluiceError) {
        foreignCommits = try connection.number("data_version")
        definitions = try connection.number("schema_version")
        version = try connection.version()
    }

    /// Takes in what other processes have committed since the last look; free when they have not.
    func catchUp() throws(SluiceError) {
        let commits = try connection.number("data_version")
        if commits == foreignCommits { return }
        let definitions = try connection.number("schema_version")
        if definitions != self.definitions {
            try checkTables()
            self.definitions = definitions
        }
        meta = ReplicaMeta(try readMeta())
        var foreign = WriterNews(local: true, subscriptions: true)
        let statement = try connection.statement("SELECT version, changes FROM _sluice_commit WHERE version > ? ORDER BY version")
        statement.bind(0, version)
        defer { statement.reset() }
        var reached = version
        while try statement.step() {
            let types = CommitLog.decode(statement.bytes(1)) { layout(named: $0)?.index }
            let isNext = statement.unsigned(0) == reached + 1
            reached = statement.unsigned(0)
            guard isNext, let types else {
                for layout in layouts where layout.hasTable { foreign.types[layout.index] = TypeChange(isWhole: true) }
                continue
            }
            foreign.types.merge(types) { $0.merging($1) }
        }
        version = reached
        foreign.version = reached
        foreignCommits = commits
        committed.merge(foreign)
    }
}
