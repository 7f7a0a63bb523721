import SluiceCore

/// The changes of a transaction that observers are notified of.
struct WriterNews {
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

    mutating func merge(_ later: WriterNews) {
        types.merge(later.types) { $0.merging($1) }
        local = local || later.local
        subscriptions = subscriptions || later.subscriptions
        version = max(version, later.version)
        isOwn = isOwn || later.isOwn
        left += later.left.prefix(LeftObject.most - left.count)
    }
}

/// The writing side of a replica. All changes of the file go through it.
// Sendable because: it is used on the replica's writer queue only, or by the one holder of a lease on that queue.
final class Writer: @unchecked Sendable {
    /// The format of the file that this release writes and reads.
    static let formatVersion: Int64 = 1

    let connection: Connection
    let store: RowStore
    let layouts: [TableLayout]
    let isSynced: Bool
    let environment: any Environment
    var meta = ReplicaMeta()
    var news = WriterNews()
    /// Committed changes that were not published yet.
    var committed = WriterNews()
    /// The version after the last commit that changed shown objects, as far as this process knows.
    var version: UInt64 = 0
    /// SQLite's `data_version`, which other processes' commits change.
    var foreignCommits: Int64 = 0
    /// SQLite's `schema_version`.
    var definitions: Int64 = 0
    /// By class: the last number given to an object without a declared key, also in transactions that were rolled back.
    var hiddenKeys: [Int: Int64] = [:]
    /// The classes whose last number was compared with the file in the open transaction.
    var comparedKeys: Set<Int> = []
    /// The statement of the last row. Rows of one class often arrive in a row; a lookup by text would cost a tenth of each.
    var lastUpsert: (type: Int, statement: Statement)?
    /// The objects that the last transaction, if it was an app's, edited inside of values. The next one need not replay all pending
    /// changes. Valid only if no other transaction came in between.
    var edited: [ObjectKey: EditedObject] = [:]
    private var metaBefore = ReplicaMeta()
    private var isDurable = false
    private let indexByName: [String: Int]

    /// The user who opened the file. `nil` if it is not synced.
    let owner: String?
    /// The bound of a changeset. `nil` if none is uploaded.
    let uploadBound: UploadBound?
    /// `true` if the file is deleted with its replica. Then no commit waits for the disk.
    let isTemporary: Bool

    init(
        connection: Connection, layouts: [TableLayout], links: LinkIndex, isSynced: Bool, options: ReplicaOptions,
        environment: any Environment
    ) {
        self.connection = connection
        owner = options.owner
        uploadBound = options.uploadBound
        isTemporary = options.isTemporary
        self.layouts = layouts
        self.isSynced = isSynced
        self.environment = environment
        store = RowStore(connection: connection, layouts: layouts, links: links, isWriter: true)
        indexByName = Dictionary(layouts.map { ($0.type.name, $0.index) }, uniquingKeysWith: { first, _ in first })
    }

    func layout(named name: String) -> TableLayout? { indexByName[name].map { layouts[$0] } }

    // MARK: Transactions

    /// Begins a transaction and applies other processes' commits.
    /// - Parameter isDurable: `true` if the commit waits for the disk, as when it gives out a number that must not be given twice. The
    ///   server's data can be requested again, and need not wait.
    func begin(isDurable: Bool = false) throws(SluiceError) {
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
            rollback()
            throw error
        }
        metaBefore = meta
        news = WriterNews()
        comparedKeys = []
        edited = [:]
        store.blocks = [:]
    }

    func commit() throws(SluiceError) {
        // Other connections must never see rows without their links.
        try store.updateLinks()
        try saveMeta()
        let next = try recordCommit()
        try connection.execute("COMMIT")
        version = next
        news.version = next
        news.isOwn = true
        committed.merge(news)
        news = WriterNews()
    }

    func rollback() {
        // A failed statement may have ended the transaction already. The caller reports its own error.
        try? connection.execute("ROLLBACK")
        meta = metaBefore
        news = WriterNews()
    }

    func transaction<R>(isDurable: Bool = false, _ body: () throws(SluiceError) -> R) throws(SluiceError) -> R {
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

    func takeNews() -> WriterNews {
        defer { committed = WriterNews() }
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

    func readMeta() throws(SluiceError) -> [String: Value] { try connection.meta() }
}

extension Connection {
    /// Returns the single values of the file, by name.
    func meta() throws(SluiceError) -> [String: Value] {
        let statement = try statement("SELECT name, value FROM _sluice_meta")
        var fields: [String: Value] = [:]
        while try statement.step() { fields[statement.string(0)] = StoredValue.decode(statement.bytes(1)) }
        statement.reset()
        return fields
    }
}

/// The single values of a file.
struct ReplicaMeta: Hashable {
    var identity: ReplicaIdentity?
    var applied = AppliedPosition(lsn: .zero, version: 0)
    /// The number of the last changeset written.
    var changeset: UInt64 = 0
    /// The last own changeset that the server rows reflect.
    var taken: UInt64 = 0
    /// The number of the last ingest batch formed.
    var ingest: UInt64 = 0
    var clock = HybridTime.zero
    /// The last tag given to an element inserted into a list.
    var tag: UInt64 = 0
    /// The number of the last compensation applied.
    var compensation: UInt64 = 0
    /// The subscription set version of the bootstrap under way, which the staged rows belong to. 0 if there is none.
    var bootstrapping: UInt64 = 0
    /// The gateway's client view record, unchanged. Empty if there is none.
    var held: [UInt8] = []
    /// The gateway's resume offer for the bootstrap under way, unchanged. Empty if there is none.
    var checkpoint: [UInt8] = []
    /// The highest id that a subscription ever had.
    var subscription: UInt64 = 0
    /// The client reset under way, a `ReplicaReset` or 0, and the number of resets begun since the last that ended.
    var reset: UInt64 = 0
    var resets: UInt64 = 0
    /// The user whose writes are in the file. Empty if there is none.
    var owner = ""

    var fields: [String: Value] {
        func number(_ value: UInt64) -> Value { .int(Int64(bitPattern: value)) }
        return [
            "client": identity.map { number($0.client.rawValue) } ?? .null,
            "secret": identity.map { .binary($0.secret) } ?? .null,
            "applied_lsn": number(applied.lsn.rawValue), "applied_version": number(applied.version),
            "witness": .binary(applied.witness),
            "changeset": number(changeset), "taken": number(taken), "ingest": number(ingest), "clock": number(clock.rawValue),
            "compensation": number(compensation), "bootstrapping": number(bootstrapping), "held": .binary(held),
            "checkpoint": .binary(checkpoint),
            "subscription": number(subscription), "reset": number(reset), "resets": number(resets),
            "tag": number(tag), "owner": .string(owner),
        ]
    }

    init() {}

    init(_ fields: [String: Value]) {
        func number(_ name: String) -> UInt64 { if case .int(let v)? = fields[name] { UInt64(bitPattern: v) } else { 0 } }
        if case .int(let client)? = fields["client"], case .binary(let secret)? = fields["secret"] {
            identity = ReplicaIdentity(client: ClientID(rawValue: UInt64(bitPattern: client)), secret: secret)
        }
        applied = AppliedPosition(lsn: LSN(rawValue: number("applied_lsn")), version: number("applied_version"))
        if case .binary(let bytes)? = fields["witness"] { applied.witness = bytes }
        changeset = number("changeset")
        taken = number("taken")
        ingest = number("ingest")
        clock = HybridTime(rawValue: number("clock"))
        tag = number("tag")
        compensation = number("compensation")
        bootstrapping = number("bootstrapping")
        if case .binary(let bytes)? = fields["held"] { held = bytes }
        if case .binary(let bytes)? = fields["checkpoint"] { checkpoint = bytes }
        subscription = number("subscription")
        reset = number("reset")
        resets = number("resets")
        if case .string(let text)? = fields["owner"] { owner = text }
    }
}
