import GatewayTestSupport
import SluiceCore
import SluiceReplica
import SluiceSync
import SluiceValues
import Synchronization

/// An app's file and its engine, which tells what happens.
final class EngineDevice: Sendable {
    static let schema = Schema([
        ObjectType(
            name: "Order",
            properties: [
                Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "store", type: .string),
                Property(id: 3, name: "size", type: .int),
            ])
    ])
    /// With a class of asymmetric objects.
    static let sending = Schema(
        schema.types + [
            ObjectType(
                name: "Reading", kind: .asymmetric,
                properties: [
                    Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "store", type: .string),
                    Property(id: 3, name: "value", type: .double),
                ])
        ])

    let replica: Replica
    let news: AsyncStream<SyncReport>
    let engine: SyncEngine
    private let kept = Kept()
    private let running: _Concurrency.Task<Void, Never>

    /// - Parameters:
    ///   - token: the one that it has whenever it asks.
    ///   - dies: when this is reported the app ends, in the middle of what it does.
    convenience init(
        _ gateway: RunningGateway, token: String, path: String, schema: Schema = EngineDevice.schema,
        transport: any SyncTransport = WebSocketTransport(), diesAt dies: @escaping @Sendable (SyncReport) -> Bool = { _ in false }
    ) throws {
        try self.init(gateway, path: path, schema: schema, transport: transport, refresh: { () throws(SluiceError) in token }, diesAt: dies)
    }

    init(
        _ gateway: RunningGateway, path: String, schema: Schema = EngineDevice.schema, transport: any SyncTransport,
        refresh: @escaping @Sendable () async throws(SluiceError) -> String,
        diesAt dies: @escaping @Sendable (SyncReport) -> Bool = { _ in false }
    ) throws {
        replica = try Replica(path: path, schema: schema)
        let (news, note) = AsyncStream<SyncReport>.makeStream()
        self.news = news
        let (life, kept) = (Life(), kept)
        let engine = SyncEngine(
            configuration: SyncConfiguration(url: gateway.url, app: "shop"), replica: replica, transport: transport,
            refresh: refresh,
            onReport: { report in
                kept.reports.withLock { $0.append(report) }
                if dies(report) { life.end() }
                note.yield(report)
                return true
            })
        self.engine = engine
        engine.start()
        running = _Concurrency.Task {  // Unstructured because: an app's engine lives as long as the app; `stop` or the app's death ends it.
            await engine.run()
            note.finish()
        }
        life.begin(running)
    }

    private final class Kept: Sendable {
        let reports = Mutex<[SyncReport]>([])
    }

    /// Whatever it has told.
    var reports: [SyncReport] { kept.reports.withLock { $0 } }

    /// Waits until rows of a set come.
    func untilRowsCome() async {
        for await report in news { if case .downloading(_, let rows, _) = report, rows > 0 { return } }
    }

    func subscribe() throws { try Self.subscribe(replica) }

    static func subscribe(_ replica: Replica) throws {
        let now = Timestamp(seconds: 0)
        _ = try replica.addSubscriptionSet([
            StoredSubscription(id: 1, name: "s", type: "Order", query: "store == 'north'", created: now, updated: now)
        ])
    }

    func stop() async {
        running.cancel()
        await running.value
    }

    /// Waits for the app's death.
    func ended() async { await running.value }

    func sizes() throws -> [String: Int64] {
        var sizes: [String: Int64] = [:]
        try replica.makeReader().store.scan(type: 0) { view in
            let row = Row(view)
            if case .string(let key)? = row[0], case .int(let size)? = row[2] { sizes[key] = size }
        }
        return sizes
    }
}

extension SyncReport {
    var isReset: Bool { if case .resetting = self { true } else { false } }
    var isInterruption: Bool { if case .interrupted = self { true } else { false } }
}

/// A task that can be ended from within, also before it is known.
private final class Life: Sendable {
    private let state = Mutex<(task: _Concurrency.Task<Void, Never>?, isOver: Bool)>((nil, false))

    func begin(_ task: _Concurrency.Task<Void, Never>) {
        let isOver = state.withLock { state in
            state.task = task
            return state.isOver
        }
        if isOver { task.cancel() }
    }

    func end() {
        let task = state.withLock { state in
            state.isOver = true
            return state.task
        }
        task?.cancel()
    }
}
