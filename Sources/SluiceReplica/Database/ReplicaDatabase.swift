import SluiceCore

/// The changes of a transaction that observers are notified of.
struct CommitNews {
    var types: [Int: TypeChange] = [:]
    /// `true` if there is data to upload.
    var local = false
    /// `true` if a subscription set changed its state.
    var subscriptions = false
    /// The version after the last commit in `types`.
    var version: UInt64 = 0
    /// `true` if it includes a commit of this process, which other processes are notified of.
    var isOwn = false
    /// The objects that the server removed from the device.
    var left: [LeftObject] = []

    var isEmpty: Bool { types.isEmpty && !local && !subscriptions && !isOwn }

    mutating func merge(_ later: CommitNews) {
        types.merge(later.types) { $0.merging($1) }
        local = local || later.local
        subscriptions = subscriptions || later.subscriptions
        version = max(version, later.version)
        isOwn = isOwn || later.isOwn
        left += later.left.prefix(LeftObject.most - left.count)
    }
}

/// The database of a replica, as its only writer sees it: the connection, one write transaction at a time, the commit history and the
/// commits of other processes. All changes of the file go through it.
// Sendable because: it is used on the replica's writer queue only, or by the one holder of a lease on that queue.
final class ReplicaDatabase: @unchecked Sendable {
    let connection: Connection
    let store: RowStore
    let layouts: [TableLayout]
    /// The single values of the file, with the changes of the open transaction.
    var meta = ReplicaMeta()
    /// The changes of the open transaction.
    var news = CommitNews()
    /// `true` while SQLite overwrites deleted content.
    private var isErasing = false
    /// Grows with each transaction that begins and each catching up with other processes. A value derived from the file stays valid from
    /// one transaction to the next only if it grew by one.
    private(set) var generation: UInt64 = 0
    /// The version after the last commit that changed shown objects, as far as this process knows.
    private(set) var version: UInt64 = 0
    /// Committed changes that were not published yet.
    private var committed = CommitNews()
    /// SQLite's `data_version`, which other processes' commits change.
    private var foreignCommits: Int64 = 0
    /// SQLite's `schema_version`.
    private var definitions: Int64 = 0
    private var metaBefore = ReplicaMeta()
    private var isDurable = false
    private let indexByName: [String: Int]
    /// `true` if the file is deleted with its replica. Then no commit waits for the disk.
    private let isTemporary: Bool

    init(connection: Connection, layouts: [TableLayout], links: LinkIndex, isTemporary: Bool) {
        self.connection = connection
        self.layouts = layouts
        self.isTemporary = isTemporary
        store = RowStore(connection: connection, layouts: layouts, links: links, isWriter: true)
        indexByName = Dictionary(layouts.map { ($0.type.name, $0.index) }, uniquingKeysWith: { first, _ in first })
    }

    func layout(named name: String) -> TableLayout? { indexByName[name].map { layouts[$0] } }

    /// - Throws: `unknownType` unless the class has a table.
    func table(_ type: Int) throws(SluiceError) -> TableLayout {
        guard layouts.indices.contains(type), layouts[type].hasTable else {
            throw SluiceError(.unknownType, "The type with index \(type) has no rows on the device.")
        }
        return layouts[type]
    }

    // MARK: Transactions

    /// Begins a transaction and applies other processes' commits.
    /// - Parameter isDurable: `true` if the commit waits for the disk, as when it gives out a number that must not be given twice. The
    ///   server's data can be requested again, and need not wait.
    func begin(isDurable: Bool) throws(SluiceError) {
        // A temporary file keeps the mode that its connection was opened with.
        if isDurable != self.isDurable, !isTemporary {
            try connection.execute("PRAGMA synchronous = \(isDurable ? "FULL" : "NORMAL")")
            self.isDurable = isDurable
        }
        try connection.execute("BEGIN IMMEDIATE")
        do throws(SluiceError) {
            // Inside the transaction: from here on no other process can commit.
            try catchUp()
        } catch {
            // Not `rollback()`: `metaBefore` is still that of the previous transaction, whose changes are committed.
            try? connection.execute("ROLLBACK")
            throw error
        }
        metaBefore = meta
        news = CommitNews()
        generation += 1
        store.blocks = [:]
    }

    /// Overwrites the content that the transaction deletes from here on, since the user may no longer see it.
    ///
    /// SQLite would leave freed pages in the file until other rows take them. It always overwrites what it frees inside of a page.
    func erase() throws(SluiceError) {
        if isErasing { return }
        try connection.execute("PRAGMA secure_delete = ON")
        isErasing = true
    }

    /// - Parameter isCommitted: `true` to remove the earlier content from the log as well, unless a reader still needs it. The next start
    ///   removes it then.
    private func endErasing(isCommitted: Bool) {
        guard isErasing else { return }
        isErasing = false
        try? connection.execute("PRAGMA secure_delete = FAST")
        if isCommitted { connection.truncateLog() }
    }

    func commit() throws(SluiceError) {
        // Other connections must never see rows without their links.
        try store.updateLinks()
        try saveMeta()
        let next = try recordCommit()
        try connection.execute("COMMIT")
        endErasing(isCommitted: true)
        version = next
        news.version = next
        news.isOwn = true
        committed.merge(news)
        news = CommitNews()
    }

    func rollback() {
        // A failed statement may have ended the transaction already. The caller reports its own error.
        try? connection.execute("ROLLBACK")
        endErasing(isCommitted: false)
        meta = metaBefore
        news = CommitNews()
    }

    func transaction<R>(isDurable: Bool, _ body: () throws(SluiceError) -> R) throws(SluiceError) -> R {
        try begin(isDurable: isDurable)
        do throws(SluiceError) {
            let result = try body()
            try commit()
            return result
        } catch {
            rollback()
            throw error
        }
    }

    /// Waits until all commits are on the disk. Does nothing for a temporary file.
    func syncLog() throws(SluiceError) { if !isTemporary { try connection.syncLog() } }

    func takeNews() -> CommitNews {
        defer { committed = CommitNews() }
        return committed
    }

    func noteLeft(_ layout: TableLayout, _ key: Value, _ reason: LeftObject.Reason) {
        guard news.left.count < LeftObject.most else { return }
        news.left.append(LeftObject(object: ObjectKey(type: layout.type.name, key: key), reason: reason))
    }

    func note(_ type: Int, _ key: Value) { news.types[type, default: TypeChange()].insert(key) }

    // MARK: Meta

    private func saveMeta() throws(SluiceError) { try saveMeta(since: metaBefore) }

    func saveMeta(since earlier: ReplicaMeta) throws(SluiceError) {
        if meta == earlier { return }
        let before = earlier.fields
        for (name, value) in meta.fields where before[name] != value { try setMeta(name, value) }
    }

    func setMeta(_ name: String, _ value: Value) throws(SluiceError) {
        let statement = try connection.statement(
            "INSERT INTO _sluice_meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value")
        statement.bind(0, name)
        statement.bind(1, StoredValue.encode(value))
        try statement.run()
    }

    // MARK: History and other processes

    /// Records the transaction's changes of shown objects in the history.
    /// - Returns: the version of the state after the transaction.
    private func recordCommit() throws(SluiceError) -> UInt64 {
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
            try ClassTables(self).check()
            self.definitions = definitions
        }
        meta = ReplicaMeta(try connection.meta())
        // Their changesets and sets are not in the history. Notify the observers of both in any case.
        var foreign = CommitNews(local: true, subscriptions: true)
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
        generation += 1
        committed.merge(foreign)
    }
}
