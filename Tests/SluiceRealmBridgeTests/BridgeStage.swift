import Dispatch
import Logging
import PortsTestSupport
import RealmTestSupport
import SluiceCore
import SluiceEmbeddedLog
import SluicePorts
import SluiceQuery
import SluiceRealm
import Synchronization
import Testing

@testable import SluicePipeline
@testable import SluiceRealmBridge

/// A gateway in memory: a database, the pipeline, the bridge and the store of client files.
final class BridgeStage: Sendable {
    let database: StageDatabase
    let files: MemoryRealmClients
    /// What the connections store by.
    let store: any RealmClientStore
    let ingest = StageIngest()
    let services: SessionServices
    let bridge: RealmBridge
    private static let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    static let topics = Topics(app: "app")

    /// - Parameters:
    ///   - hasLog: `true` if sessions resume from a change log, also after a session that ended with an upload under way.
    ///   - crashes: `true` if every session ends as by a crash of the gateway.
    ///   - before: The gateway whose database and client files this one continues with.
    init(
        _ type: ObjectType = StageDatabase.item, rules: any Rules = StageRules(), bounds: BridgeBounds = BridgeBounds(),
        hasLog: Bool = false, crashes: Bool = false, after before: BridgeStage? = nil
    ) async {
        let (time, authority) = (SystemEnvironment(), StageAuthority(type: type))
        (database, files) = (before?.database ?? StageDatabase(type), before?.files ?? MemoryRealmClients())
        store = crashes ? CrashingClients(files) : files
        let fanout = Fanout(authority: authority, frames: MessageFrames(), environment: time, logger: Self.quiet)
        let log = EmbeddedLog(environment: time)
        let feed = Feed(log: log, topics: Self.topics, fanout: fanout, environment: time, logger: Self.quiet)
        services = SessionServices(
            access: SessionServices.Access(authenticator: StageUsers(), authority: authority, rules: rules),
            storage: SessionServices.Storage(
                clients: database, snapshots: database, committer: Committer(store: database, rules: rules, environment: time),
                ingest: ingest),
            delivery: SessionServices.Delivery(
                feed: feed, fanout: fanout, resume: LogResume(log: log, feed: feed, environment: time, logger: Self.quiet),
                layout: StageLayout(partitions: hasLog ? [type.name: 1] : [:]), frames: MessageFrames()),
            environment: time, logger: Self.quiet)
        bridge = RealmBridge(services: services, bounds: bounds)
        if hasLog {
            do { try await Self.begin(log, feed, type) } catch { Issue.record("The change log did not begin: \(error)") }
        }
        await database.serve(fanout, hasLog ? log : nil)
        guard hasLog else { return }
        // The feed reads nothing more, and takes an empty partition for a whole one.
        await sql(["": Self.item("", nil)])
        await sql(["": nil])
    }

    /// Makes the feed know that the log is complete. The database delivers to the sessions itself.
    private static func begin(_ log: EmbeddedLog, _ feed: Feed, _ type: ObjectType) async throws {
        _ = try await log.prepare([
            TopicSpec(name: topics.changes(of: type.name), partitions: 1), TopicSpec(name: topics.progress, partitions: 1),
        ])
        var batch = LogBatch(topics: [topics.progress])
        let progress = ProgressRecord(
            lsn: LSN(rawValue: 1), commitTime: 0, grown: [:], since: .zero, completeSince: LSN(rawValue: 1))
        batch.append(topic: 0, partition: 0, key: [], value: ProgressCodec.encode(progress))
        _ = try await log.place(batch)
        // Unstructured because: it is cancelled below, once it has read the record.
        let reading = Task { try await feed.run() }
        while await feed.completeSince == nil { await Task.yield() }
        reading.cancel()
        _ = await reading.result
    }

    static func item(_ key: String, _ title: String?, size: Int64 = 0, tags: [String] = []) -> Row {
        Row([.string(key), title.map { .string($0) } ?? .null, .int(size), .list(tags.map { .string($0) })])
    }

    func sql(_ rows: [String: Row?]) async { await database.commit(rows) }

    /// Runs a connection, and ends it behind the body. Nothing of it may remain.
    func connect(_ body: (StageClient) async throws -> Void) async throws {
        let client = StageClient(self)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await client.connection.run() }
            defer { client.connection.end(.disconnected) }
            try await body(client)
            client.connection.end(.disconnected)
            try await group.waitForAll()
        }
        #expect(await client.connection.taskCount == 0)
        #expect(bridge.count == 0)
        // The session ends behind the connection.
        while services.files.count > 0, !Task.isCancelled { await Task.yield() }
    }
}

/// One app on a connection of Realm's protocol.
final class StageClient: Sendable {
    let connection: RealmConnection
    private let codec = RealmCodec(compression: NoCompression())
    /// The socket.
    let sink: StageSink

    init(_ stage: BridgeStage) {
        sink = StageSink()
        let services = RealmConnectionServices(
            store: stage.store, views: stage.bridge, writes: stage.bridge, coding: codec, environment: SystemEnvironment())
        connection = RealmConnection(RealmConnectionSettings(version: 14, salt: 5), user: "ann", services: services, sink: sink)
    }

    func send(_ message: RealmClientMessage) throws { connection.received(try codec.encode(message)) }

    /// A message to wait for.
    enum Wanted: Hashable {
        case file
        /// The last part of a bootstrap.
        case view(UInt64)
        /// Changes with entries.
        case changes
        case acknowledgement(UInt64)
        case error
        case queryError
        case mark(UInt64)
        /// A part of a bootstrap before the last one.
        case part
        case pong

        func accepts(_ message: RealmServerMessage) -> Bool {
            switch (self, message) {
            case (.file, .ident), (.error, .error), (.queryError, .queryError), (.pong, .pong): true
            case (.view(let version), .download(let download)): download.batch == .lastInBatch && download.queryVersion == version
            case (.changes, .download(let download)): !download.entries.isEmpty
            case (.acknowledgement(let version), .download(let download)): download.progress.upload.clientVersion == version
            case (.mark(let mark), .mark(_, let request)): mark == request
            case (.part, .download(let download)): download.batch == .moreToCome
            default: false
            }
        }
    }

    /// Waits for a message, and returns it behind the ones before it.
    func messages(through wanted: Wanted) async -> [RealmServerMessage] {
        var messages: [RealmServerMessage] = []
        while let message = await sink.next() {
            messages.append(message)
            if wanted.accepts(message) { return messages }
            // Nothing follows the end of the session.
            if case .error(let error) = message, error.action != .warning { return messages }
        }
        Issue.record("The connection ended before \(wanted).")
        return messages
    }

    func message(_ wanted: Wanted) async -> RealmServerMessage? { await messages(through: wanted).last }

    func download(_ wanted: Wanted) async -> RealmDownload? {
        if case .download(let download)? = await message(wanted) { download } else { nil }
    }

    func error() async -> RealmServerError? {
        if case .error(let error)? = await message(.error) { error } else { nil }
    }

    /// The next download with entries, as texts of their instructions.
    func changes() async throws -> [String] { try Self.texts(await download(.changes)) }

    static func texts(_ download: RealmDownload?) throws -> [String] {
        var texts: [String] = []
        for entry in download?.entries ?? [] { texts += try RealmChangesetReader.instructions(of: entry.changeset).map(\.text) }
        return texts
    }

    /// Binds a new file, and takes the empty view.
    func begin() async throws -> RealmFileIdent { try await beginWithView().file }

    /// Binds a new file, and returns the empty view.
    func beginWithView() async throws -> (file: RealmFileIdent, view: RealmDownload) {
        try send(.bind(RealmBind(session: 1, needsFileIdent: true)))
        guard case .ident(_, let file)? = await message(.file) else { throw SluiceError(.internalError, "No file was allotted.") }
        try send(.ident(RealmIdent(session: 1, file: file, download: .init(), latest: .init(), query: .init(version: 0, queries: [:]))))
        let first = try #require(await download(.view(0)))
        #expect(first.queryVersion == 0)
        #expect(try Self.texts(first).first == "table Item")
        return (file, first)
    }

    /// Subscribes and takes the view.
    func subscribe(_ version: UInt64, _ query: String = "TRUEPREDICATE") async throws -> RealmDownload {
        try send(.query(session: 1, RealmQuerySet(version: version, queries: ["Item": query])))
        return try #require(await download(.view(version)))
    }

    func upload(_ version: UInt64, base: UInt64, time: UInt64 = 1, _ instructions: [RealmInstruction]) throws {
        let entry = RealmUploadEntry(
            clientVersion: version, serverVersion: base, timestamp: time, origin: 0,
            changeset: try RealmChangesetWriter.bytes(of: instructions))
        let progress = RealmUploadProgress(clientVersion: version, serverVersion: base)
        try send(.upload(RealmUploadMessage(session: 1, progress: progress, entries: [entry])))
    }

    func confirm(_ client: UInt64, _ server: UInt64) throws {
        try send(.upload(RealmUploadMessage(session: 1, progress: RealmUploadProgress(clientVersion: client, serverVersion: server))))
    }

    /// Waits for everything that was committed before the call.
    func catchUp(_ mark: UInt64) async throws -> [RealmServerMessage] {
        try send(.mark(session: 1, request: mark))
        return await messages(through: .mark(mark))
    }
}

/// A socket in memory.
final class StageSink: RealmFrameSink {
    private let codec = RealmCodec(compression: NoCompression())
    private let messages: AsyncStream<RealmServerMessage>
    private let source: AsyncStream<RealmServerMessage>.Continuation

    init() { (messages, source) = AsyncStream.makeStream(of: RealmServerMessage.self, bufferingPolicy: .bufferingOldest(4_096)) }

    func next() async -> RealmServerMessage? {
        var iterator = messages.makeAsyncIterator()
        return await iterator.next()
    }

    func send(_ message: [UInt8]) {
        do {
            let message = try codec.decodeServer(message)
            if case .download(let download) = message, download.batch == .moreToCome { parts.fire() }
            source.yield(message)
        } catch {
            Issue.record("A message cannot be read: \(error)")
        }
    }

    /// Counts the parts that were sent, and the calls of `release`.
    private let parts = AsyncEvent(environment: SystemEnvironment())
    private let releases = AsyncEvent(environment: SystemEnvironment())
    private let most = Atomic(UInt64.max)

    /// Lets the client read no more once it has so many parts of bootstraps before the last one.
    func hold(after parts: UInt64) { most.store(parts, ordering: .relaxed) }

    /// Lets the client read again.
    func release() {
        most.store(.max, ordering: .relaxed)
        releases.fire()
    }

    /// The thread of a socket.
    private let thread = DispatchQueue(label: "stage socket")

    func perform(_ body: @escaping @Sendable () -> Void) -> Bool {
        thread.async(execute: body)
        return true
    }

    private var isHeld: Bool { parts.count >= most.load(ordering: .relaxed) }
    var bufferedBytes: Int { isHeld ? .max : 0 }
    func drained(below bytes: Int) async {
        while isHeld, !Task.isCancelled { await releases.wait(after: 0, milliseconds: 60_000) }
    }
    func pauseReading() {}
    func resumeReading() {}
    func close(_ reason: RealmCloseReason, _ text: String) { source.finish() }
    func ended() {}
}

struct NoCompression: BodyCompression {
    func compress(_ bytes: [UInt8]) throws(SluiceError) -> [UInt8] { bytes }
    func decompress(_ bytes: [UInt8], count: Int) throws(SluiceError) -> [UInt8] { bytes }
}

// MARK: Services

struct StageAuthority: SchemaAuthority {
    var type = StageDatabase.item

    func current() -> AppSchema {
        AppSchema(version: 1, schema: StageDatabase.schema(type), fields: QueryableFields(global: ["size"]), isDevelopment: false)
    }
    func extend(by client: [ObjectType]) async throws -> AppSchema { current() }
    func makeQueryable(_ fields: [String: Set<String>]) async throws -> AppSchema { current() }
}

private struct StageUsers: Authenticator {
    func authenticate(token: String) async throws -> Authenticated { throw SluiceError(.badAuthentication, "No token is checked here.") }
    func current(_ user: Authenticated) async throws -> UserContext { user.user }
}

/// Permits everything, except objects whose title is "forbidden".
struct StageRules: Rules {
    func openSession(user: UserContext, types: [String]) async throws -> SessionPlan {
        let plan = TypePlan(read: "TRUEPREDICATE", write: "title != 'forbidden'", role: "all")
        return SessionPlan(types: Dictionary(uniqueKeysWithValues: types.map { ($0, plan) }))
    }
    func checkSubscription(user: UserContext, queries: [(type: String, query: String)]) async throws -> [String] {
        queries.map { _ in "TRUEPREDICATE" }
    }
    func checkWrites(user: UserContext, _ writes: [ProposedWrite]) async throws -> [WriteVerdict] { writes.map { _ in .allow } }
    func ingest(_ objects: ObjectRows) async throws -> [IngestVerdict]? { nil }
}

private struct StageLayout: LayoutProvider {
    var partitions: [String: Int32] = [:]

    func layout(of schema: AppSchema) async throws -> Partitioning {
        Partitioning(schema: schema, topics: BridgeStage.topics, partitions: partitions)
    }
}

// MARK: Texts

extension ObjectKey {
    static func item(_ key: String) -> ObjectKey { ObjectKey(type: "Item", key: .string(key)) }
}

extension RealmInstruction {
    var text: String {
        switch self {
        case .addTable(let table): "table \(table.name)"
        case .addColumn(let column): "column \(column.name)"
        case .createObject(let object): "create \(object.key.plain)"
        case .eraseObject(let object): "erase \(object.key.plain)"
        case .update(let path, .value(let value), _): "\(path.object.key.plain).\(path.field) = \(value.plain)"
        case .clear(let path, _): "\(path.object.key.plain).\(path.field) cleared"
        case .arrayInsert(let path, let index, .value(let value), _): "\(path.object.key.plain).\(path.field)[\(index)] = \(value.plain)"
        default: "\(self)"
        }
    }

    /// Every property of a new item but its key.
    static func item(_ key: String, _ title: String, size: Int64 = 0) -> [RealmInstruction] {
        [.createObject(.item(key)), .title(key, title), .update(RealmPath(.item(key), "size"), .value(.int(size)))]
    }

    static func title(_ key: String, _ title: String) -> RealmInstruction {
        .update(RealmPath(.item(key), "title"), .value(.string(title)))
    }
}

extension BridgeGroup {
    /// The instructions that the client receives.
    var received: [RealmInstruction] {
        get throws {
            var piece = BridgePiece()
            try piece.append(self)
            return try RealmChangesetReader.instructions(of: piece.changeset)
        }
    }
}

extension Value {
    fileprivate var plain: String {
        switch self {
        case .string(let text): text
        case .int(let number): "\(number)"
        case .null: "null"
        default: "\(self)"
        }
    }
}
