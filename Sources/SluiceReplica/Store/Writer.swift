import SluiceCore

/// What a transaction did that others want to know.
struct WriterNews {
    var types: [Int: TypeChange] = [:]
    /// There is something to send.
    var local = false
    /// A subscription set changed its state.
    var subscriptions = false
    /// Of the last commit that `types` are of.
    var version: UInt64 = 0
    /// Whether a commit of this process is among it, which others want to know of.
    var isOwn = false
    /// Objects that the server took off the device.
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

/// The writing side of a replica: everything that changes the file goes through it.
// Sendable because: it is used on the replica's writer queue only, or by the one holder of a lease on that queue.
final class Writer: @unchecked Sendable {
    /// The format that this release writes. It reads all older ones.
    static let formatVersion: Int64 = 1

    let connection: Connection
    let store: RowStore
    let layouts: [TableLayout]
    let isSynced: Bool
    let environment: any Environment
    var meta = ReplicaMeta()
    var news = WriterNews()
    /// What is committed and not published yet.
    var committed = WriterNews()
    /// Of the last commit that changed what apps see, as far as this process knows.
    var version: UInt64 = 0
    /// SQLite's number for what other processes have committed.
    var foreignCommits: Int64 = 0
    /// SQLite's number for the tables' definitions.
    var definitions: Int64 = 0
    /// By class: the last number given to an object without a key of its own, of a transaction that was undone too.
    var hiddenKeys: [Int: Int64] = [:]
    /// The classes whose number was compared with the file's in the transaction under way.
    var comparedKeys: Set<Int> = []
    /// Many rows of one class come in a row: looking the statement up by its text would cost a tenth of each.
    var lastUpsert: (type: Int, statement: Statement)?
    /// What the last transaction, if it was an app's, has made of objects inside of whose values it changed something: the next one need
    /// not play all pending changes again. Nobody else may have written in between.
    var edited: [ObjectKey: EditedObject] = [:]
    private var metaBefore = ReplicaMeta()
    private var isDurable = false
    private let indexByName: [String: Int]

    /// Who opened the file; nil where it is not synced.
    let owner: String?
    /// The largest changeset; nil where none is uploaded.
    let uploadBound: UploadBound?

    init(
        connection: Connection, layouts: [TableLayout], links: LinkIndex, isSynced: Bool, owner: String?, uploadBound: UploadBound?,
        environment: any Environment
    ) {
        self.connection = connection
        self.owner = owner
        self.uploadBound = uploadBound
        self.layouts = layouts
        self.isSynced = isSynced
        self.environment = environment
        store = RowStore(connection: connection, layouts: layouts, links: links, isWriter: true)
        indexByName = Dictionary(layouts.map { ($0.type.name, $0.index) }, uniquingKeysWith: { first, _ in first })
    }

    func layout(named name: String) -> TableLayout? { indexByName[name].map { layouts[$0] } }

    // MARK: Transactions

    /// - Parameter isDurable: whether the commit waits for the disk. It does where the outside may learn of a number that must
    ///   not be given twice; what the server said can be asked for again.
    func begin(isDurable: Bool = false) throws(SluiceError) {
        if isDurable != self.isDurable {
            try connection.execute("PRAGMA synchronous = \(isDurable ? "FULL" : "NORMAL")")
            self.isDurable = isDurable
        }
        try connection.execute("BEGIN IMMEDIATE")
        do throws(SluiceError) {
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
        // A failed statement may have ended the transaction already; the error is the caller's either way.
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
    /// The single values of the file, by name.
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
    /// Number of the last changeset written.
    var changeset: UInt64 = 0
    /// The last changeset that the server's rows have.
    var taken: UInt64 = 0
    /// Number of the last ingest batch formed.
    var ingest: UInt64 = 0
    var clock = HybridTime.zero
    /// The last number given to an element that was put into a list.
    var tag: UInt64 = 0
    /// The last compensation applied.
    var compensation: UInt64 = 0
    /// The position of the bootstrap's view under way; rows staged belong to it.
    var bootstrapping: UInt64 = 0
    /// What the gateway said that the file has, as it said it; empty for nothing.
    var held: [UInt8] = []
    /// What it said of how far the bootstrap under way has come; empty for nothing.
    var checkpoint: [UInt8] = []
    /// The highest id that a subscription ever had.
    var subscription: UInt64 = 0
    /// A client reset under way: a `ReplicaReset`, 0 for none, and how often one was begun since the last that was finished.
    var reset: UInt64 = 0
    var resets: UInt64 = 0
    /// Whose writes are in the file; empty for nobody's.
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
