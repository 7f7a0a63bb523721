import Foundation
import SluiceCore
import SluiceReplica
import SluiceSDK
import SluiceSync
import Synchronization
import Testing

/// What happens while rows of a new set come, and to what was written before they came.
@Suite(.timeLimit(.minutes(5))) struct `Rows that come for a set` {
    private static func rows(_ count: Int) -> String {
        "INSERT INTO orders (_id, store, title, size) SELECT 'n' || g, 'north', repeat('t', 50), g FROM generate_series(1, \(count)) g"
    }

    /// An app's file and its engine, which tells what happens.
    private final class Device {
        let replica: Replica
        let news: AsyncStream<SyncReport>
        let engine: SyncEngine
        private let running: _Concurrency.Task<Void, Never>

        /// - Parameter dies: when this is reported the app ends, in the middle of what it does.
        init(
            _ gateway: RunningGateway, token: String, path: String, diesAt dies: @escaping @Sendable (SyncReport) -> Bool = { _ in false }
        ) throws {
            let schema = Schema([
                ObjectType(
                    name: "Order",
                    properties: [
                        Property(id: 1, name: "_id", type: .string), Property(id: 2, name: "store", type: .string),
                        Property(id: 3, name: "size", type: .int),
                    ])
            ])
            replica = try Replica(path: path, schema: schema)
            let (news, note) = AsyncStream<SyncReport>.makeStream()
            self.news = news
            let life = Life()
            let engine = SyncEngine(
                configuration: SyncConfiguration(url: gateway.url, app: "shop"), replica: replica,
                refresh: { () throws(SluiceError) in token },
                onReport: { report in
                    if dies(report) { life.end() }
                    note.yield(report)
                })
            self.engine = engine
            engine.start()
            // Unstructured because: an app's engine lives as long as the app; `stop` or the app's death ends it.
            running = _Concurrency.Task {
                await engine.run()
                note.finish()
            }
            life.begin(running)
        }

        func subscribe() throws {
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

    @Test func `Scenario 12: a bootstrap that was cut off shows nothing, and the next one leaves nothing behind`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql(Self.rows(20_000))
            let (folder, token) = (try Phone.Folder(), try await gateway.anonymousToken())
            let path = folder.url.appendingPathComponent("a.replica").path
            do {
                let device = try Device(gateway, token: token, path: path) {
                    if case .downloading(_, let rows, _) = $0 { rows > 0 } else { false }
                }
                try device.subscribe()
                await device.ended()
                #expect(try device.sizes().isEmpty, "a part of a set is never shown")
            }
            try await gateway.sql("DELETE FROM orders WHERE size % 2 = 0; UPDATE orders SET size = -size WHERE size % 3 = 0")
            let device = try Device(gateway, token: token, path: path)
            try await device.engine.wait(for: .download, milliseconds: 60_000)
            let sizes = try device.sizes()
            #expect(sizes.count == 10_000 && sizes["n3"] == -3 && sizes["n5"] == 5 && sizes["n4"] == nil)
            #expect(sizes.values.allSatisfy { $0 % 2 != 0 && ($0 < 0) == ($0 % 3 == 0) })
            await device.stop()
        }
    }

    @Test func `Scenario 14: nothing is uploaded while rows come`() async throws {
        try await RunningGateway.with { gateway in
            try await gateway.sql(Self.rows(20_000))
            let folder = try Phone.Folder()
            let device = try Device(
                gateway, token: try await gateway.anonymousToken(), path: folder.url.appendingPathComponent("a.replica").path)
            try device.subscribe()
            var order: [String] = []
            for await report in device.news {
                switch report {
                case .downloading(_, let rows, _) where rows > 0 && order.isEmpty:
                    order.append("rows")
                    let transaction = try device.replica.beginWrite()
                    try transaction.create(type: 0, key: .string("mine"), values: ["store": .string("north"), "size": .int(1)])
                    try transaction.commit()
                case .downloaded: order.append("downloaded")
                case .uploaded: order.append("uploaded")
                default: break
                }
                if order.last == "uploaded" { break }
            }
            #expect(order == ["rows", "downloaded", "uploaded"])
            #expect(try device.sizes().count == 20_001)
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE _id = 'mine'") == 1)
            await device.stop()
        }
    }

    @MainActor
    @Test func `Scenario 19: an object that was created where another was out of view gives way to it`() async throws {
        try await RunningGateway.with { @MainActor gateway in
            try await gateway.sql("INSERT INTO orders (_id, store, title, size) VALUES ('x', 'south', 'theirs', 7)")
            let phone = try await Phone.open(gateway, orders: ["store == 'north'"])
            phone.session.suspend()
            let subscriptions = phone.realm.subscriptions
            try phone.add("x", store: "south", title: "mine")
            subscriptions.update({ subscriptions.append(QuerySubscription<Order>(name: "south") { $0.store == "south" }) }, onComplete: nil)
            phone.session.resume()
            try await phone.session.wait(for: .upload)
            try await phone.wait { $0.count == 1 && $0.first?.title == "theirs" && $0.first?.size == 7 }
            await phone.said.wait { !$0.sync.isEmpty }
            let refused = phone.said.sync.flatMap { $0.compensatingWriteInfo ?? [] }
            #expect(refused.map(\.primaryKey) == [.string("x")], "the app is told: \(phone.said.all)")
            #expect(try await gateway.count("SELECT count(*) FROM orders WHERE title = 'theirs' AND size = 7") == 1)
        }
    }
}
