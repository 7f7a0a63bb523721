import GatewayTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluiceIdentity
import SluicePorts
import SluicePostgres
import SluiceValues
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct `The relay of a database trigger` {
    private static let topic = TriggerTopic(trigger: "onOrder", topic: TriggerLog.topic, partitions: 4)

    private static func trigger(match: Condition = .constant(true)) -> DatabaseTrigger {
        var shape = ChangeEventShape(database: "public", collection: "orders")
        (shape.hasFullDocument, shape.hasPreImage) = (true, true)
        var trigger = DatabaseTrigger(
            "onOrder", on: "Order", Set(ChangeEvent.Operation.allCases), function: "greet", shape: shape)
        trigger.match = match
        return trigger
    }

    /// The services of a relay in a database of its own.
    private struct Place: Sendable {
        let log: TriggerLog
        let pool: PostgresPool
        let conninfo: String
        let metrics = Metrics()

        func store() -> PostgresTriggerStore { PostgresTriggerStore(pool: pool, conninfo: conninfo) }

        /// Starts a relay.
        func run(
            _ functions: RecordedCalls, _ trigger: DatabaseTrigger = trigger(), on other: TriggerLog? = nil,
            store given: (any TriggerStore)? = nil, environment: any Environment = SystemEnvironment(),
            schema: @escaping @Sendable () -> AppSchema = { TriggerLog.app }, logger: Logger = Logger.quiet
        ) -> Task<Void, Never> {
            let relay = DatabaseTriggerRelay(
                trigger, topic: topic,
                ports: .init(
                    log: (other ?? log).log, store: given ?? store(), functions: functions, schema: schema, metrics: metrics,
                    environment: environment, logger: logger))
            return Task { await relay.run() }
        }

        func begin() async throws {
            try await store().begin(topic, ends: Dictionary((0..<topic.partitions).map { ($0, Int64(0)) }) { $1 })
        }
    }

    private static func with(
        windowBytes: Int = 64 << 20, _ body: @escaping @Sendable (Place) async throws -> Void
    ) async throws {
        try await GatewayDatabase.with { conninfo in
            let connection = try await PostgresConnection.connect(conninfo)
            try await CompanionSchema.create(connection)
            await connection.close()
            let pool = PostgresPool(conninfo, size: 4)
            let place = Place(log: try await TriggerLog(windowBytes: windowBytes), pool: pool, conninfo: conninfo)
            try await place.begin()
            let result: Result<Void, any Error>
            do { result = .success(try await body(place)) } catch { result = .failure(error) }
            await pool.close()
            try result.get()
        }
    }

    private static func end(_ relays: Task<Void, Never>...) async {
        for relay in relays { relay.cancel() }
        for relay in relays { await relay.value }
    }

    @Test func `calls for each change that matches, with both rows`() async throws {
        try await Self.with { place in
            let functions = RecordedCalls()
            let trigger = Self.trigger(match: try Condition(filter: ["fullDocument.size": ["$gte": 5]]))
            let relay = place.run(functions, trigger)
            try await place.log.write(1, "a", nil, 1)
            try await place.log.write(2, "a", 1, 5)
            try await place.log.write(3, "b", nil, 7)
            try await place.log.write(4, "a", 5, nil)
            #expect(await functions.until(2))
            await Self.end(relay)
            let calls = Dictionary(functions.calls.map { ($0.arguments[0]["documentKey"]?["_id"]?.string ?? "", $0) }) { $1 }
            #expect(functions.calls.count == 2 && calls["b"]?.arguments[0]["operationType"] == "insert")
            let event = calls["a"]?.arguments[0]
            #expect(event?["fullDocumentBeforeChange"] == ["_id": "a", "size": 1, "note": .null])
            #expect(event?["fullDocument"] == ["_id": "a", "size": 5, "note": .null])
            #expect(event?["updateDescription"]?["updatedFields"] == ["size": 5])
        }
    }

    @Test func `repeats a call of which no cursor was stored, under the same id`() async throws {
        try await Self.with { place in
            let functions = RecordedCalls()
            try await place.log.write(1, "a", nil, 1)
            // As when the gateway is killed after the call.
            let killed = place.run(functions, store: Amnesiac(store: place.store()))
            #expect(await functions.until(1))
            await Self.end(killed)
            let heir = place.run(functions)
            #expect(await functions.until(2))
            await Self.end(heir)
            #expect(functions.calls[0].id != nil && functions.calls[0].id == functions.calls[1].id)
            let third = place.run(functions)
            try await place.log.write(2, "a", 1, 2)
            #expect(await functions.until(3))
            await Self.end(third)
            #expect(functions.calls[2].id != functions.calls[0].id)
        }
    }

    @Test func `shares the changes with other gateways, each once and those of an object in order`() async throws {
        try await Self.with { place in
            let functions = RecordedCalls()
            let first = place.run(functions)
            let keys = (0..<12).map { "key \($0)" }
            for number in 0..<240 { try await place.log.write(number, keys[number % 12], nil, Int64(number)) }
            let second = place.run(functions)
            for number in 240..<480 { try await place.log.write(number, keys[number % 12], nil, Int64(number)) }
            #expect(try await eventually { try await Self.holders(place) == [2, 2] })
            for number in 480..<720 { try await place.log.write(number, keys[number % 12], nil, Int64(number)) }
            #expect(await functions.until(720))
            await Self.end(first, second)
            #expect(functions.calls.count == 720 && Set(functions.calls.compactMap(\.id)).count == 720)
            for key in keys {
                let sizes = functions.calls.map { $0.arguments[0] }.filter { $0["documentKey"]?["_id"]?.string == key }
                    .compactMap { $0["fullDocument"]?["size"]?.int }
                #expect(sizes == sizes.sorted() && sizes.count == 60, "\(key): \(sizes)")
            }
        }
    }

    /// The number of partitions of each gateway.
    private static func holders(_ place: Place) async throws -> [Int64] {
        let connection = try await PostgresConnection.connect(place.conninfo)
        let found = try await connection.query(
            """
            SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND granted
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) GROUP BY pid
            """)
        await connection.close()
        return (0..<found.count).compactMap { found.int($0, 0) }
    }

    @Test func `repeats and gives up a call, while those of other objects go on`() async throws {
        try await Self.with { place in
            let functions = RecordedCalls { call throws(SluiceError) in
                if call.arguments[0]["documentKey"] == ["_id": "bad"], call.arguments[0]["fullDocument"]?["size"] == 1 {
                    throw SluiceError(.functionFailed, "Never.")
                }
            }
            let relay = place.run(functions, environment: FastTime())
            try await place.log.write(1, "bad", nil, 1, in: 0)
            try await place.log.write(2, "bad", 1, 2, in: 0)
            for number in 3...9 { try await place.log.write(number, "good \(number)", nil, 1, in: 0) }
            #expect(await functions.until(TriggerRetries.attempts + 8))
            await Self.end(relay)
            let bad = functions.calls.filter { $0.arguments[0]["documentKey"] == ["_id": "bad"] }
            #expect(bad.prefix(TriggerRetries.attempts).allSatisfy { $0.id == bad[0].id })
            #expect(bad.count == TriggerRetries.attempts + 1 && bad.last?.arguments[0]["fullDocument"]?["size"] == 2)
            // The others did not wait for it.
            #expect(functions.calls.prefix(12).filter { $0.arguments[0]["documentKey"] != ["_id": "bad"] }.count == 7)
            let connection = try await PostgresConnection.connect(place.conninfo)
            let buried = try await connection.query(
                "SELECT trigger, attempts, reason, event -> 'documentKey' ->> '_id' FROM sluice.trigger_failure")
            await connection.close()
            #expect(buried.count == 1 && (0..<4).map { buried[0, $0] } == ["onOrder", "12", "Never.", "bad"])
            #expect(place.metrics.values(of: .triggersBuried).map(\.value) == [1])
            #expect(place.metrics.values(of: .triggerFailures).map(\.value) == [12])
        }
    }

    @Test func `counts no attempt that the function's bound prevented`() async throws {
        try await Self.with { place in
            let functions = RecordedCalls(counting: { _, count throws(SluiceError) in
                if count <= 20 { throw SluiceError(.tooManyRequests, "Later.") }
            })
            let relay = place.run(functions, environment: FastTime())
            try await place.log.write(1, "a", nil, 1)
            #expect(await functions.until(21))
            await Self.end(relay)
            #expect(place.metrics.values(of: .triggersBuried).isEmpty)
        }
    }

    @Test func `reads no further than its window while a service is slow, and loses nothing`() async throws {
        try await Self.with { place in
            let gate = AsyncEvent(environment: SystemEnvironment())
            let functions = RecordedCalls { _ in await gate.wait(after: 0, milliseconds: 60_000) }
            let relay = place.run(functions)
            let count = TriggerWindow.bound.records * 3
            for number in 0..<count { try await place.log.write(number, "a", nil, Int64(number), in: 1) }
            // Another partition goes on.
            try await place.log.write(count, "b", nil, 0, in: 2)
            #expect(await functions.until(2))
            gate.fire()
            #expect(await functions.until(count + 1))
            await Self.end(relay)
            let sizes = functions.calls.filter { $0.arguments[0]["documentKey"] == ["_id": "a"] }
                .compactMap { $0.arguments[0]["fullDocument"]?["size"]?.int }
            #expect(sizes == (0..<Int64(count)).map { $0 })
            #expect(place.metrics.values(of: .triggerLosses).isEmpty)
        }
    }

    @Test func `tells what the log lost, and goes on behind it`() async throws {
        try await Self.with(windowBytes: 2_000) { place in
            let functions = RecordedCalls()
            let relay = place.run(functions)
            try await place.log.write(0, "a", nil, 0)
            #expect(await functions.until(1))
            await Self.end(relay)
            for number in 1...100 { try await place.log.write(number, "a", nil, Int64(number)) }
            let next = place.run(functions)
            #expect(
                await functions.until { $0.last?.arguments[0]["fullDocument"]?["size"] == 100 })
            await Self.end(next)
            #expect(functions.calls.count < 50 && place.metrics.values(of: .triggerLosses).map(\.value) == [1])
        }
    }

    @Test func `waits while its class has left the schema, says so once, and loses nothing`() async throws {
        try await Self.with { place in
            let (functions, lines) = (RecordedCalls(), LinesOfLog())
            let schema = Watched(TriggerLog.app)
            let relay = place.run(functions, schema: { schema.value }, logger: Logger(label: "test") { _ in lines })
            try await place.log.write(1, "a", nil, 1)
            #expect(await functions.until(1))
            schema.change { $0 = AppSchema(version: 2, schema: Schema([]), fields: QueryableFields(), isDevelopment: false) }
            for number in 2...20 { try await place.log.write(number, "a", nil, Int64(number), in: Int32(number % 4)) }
            await lines.wait(for: "its class has left the schema", about: "Order")
            schema.change {
                $0 = TriggerLog.app
                $0.version = 3
            }
            #expect(await functions.until(20))
            await Self.end(relay)
            #expect(Set(functions.calls.compactMap { $0.arguments[0]["fullDocument"]?["size"]?.int }) == Set(1...20))
            #expect(lines.lines.map(\.level) == [.warning])
            #expect(place.metrics.values(of: .triggerLosses).isEmpty)
        }
    }

    /// The embedded log begins anew with each start of its gateway, and the publisher repeats what the slot still has.
    @Test func `finds its place in a log that begins anew`() async throws {
        try await Self.with { place in
            let functions = RecordedCalls()
            let relay = place.run(functions)
            for number in 1...5 { try await place.log.write(number, "a", nil, Int64(number)) }
            #expect(await functions.until(5))
            await Self.end(relay)
            let anew = try await TriggerLog()
            for number in 4...12 { try await anew.write(number, "a", nil, Int64(number)) }
            let next = place.run(functions, on: anew)
            #expect(await functions.until(12))
            await Self.end(next)
            #expect(functions.calls.compactMap { $0.arguments[0]["fullDocument"]?["size"]?.int } == (1...12).map { $0 })
            #expect(place.metrics.values(of: .triggerLosses).isEmpty)
        }
    }
}

/// Functions that record their calls, and fail or wait as the test says.
private final class RecordedCalls: AppFunctions {
    typealias Body = @Sendable (FunctionCall, _ count: Int) async throws(SluiceError) -> Void

    private let body: Body
    private let recorded = Watched<[FunctionCall]>([])

    init(counting body: @escaping Body) { self.body = body }

    var calls: [FunctionCall] { recorded.value }

    func until(_ count: Int) async -> Bool { await recorded.until { $0.count >= count } }

    func until(_ isMet: @escaping @Sendable ([FunctionCall]) -> Bool) async -> Bool { await recorded.until(isMet) }

    func canCall(_ name: String) -> Bool { true }

    func call(_ call: FunctionCall) async throws(SluiceError) -> JSON {
        let count = recorded.change { calls in
            calls.append(call)
            return calls.count
        }
        try await body(call, count)
        return .null
    }
}

extension RecordedCalls {
    convenience init(_ body: @escaping @Sendable (FunctionCall) async throws(SluiceError) -> Void = { _ in }) {
        self.init(counting: { call, _ throws(SluiceError) in try await body(call) })
    }
}

/// A store that stores no cursor.
private struct Amnesiac: TriggerStore {
    let store: PostgresTriggerStore

    func claim(_ topic: TriggerTopic, keeping kept: Set<Int32>) async throws -> TriggerClaim { try await store.claim(topic, keeping: kept) }
    func release(_ topic: TriggerTopic) async { await store.release(topic) }
    func begin(_ topic: TriggerTopic, ends: [Int32: Int64]) async throws { try await store.begin(topic, ends: ends) }
    func open(_ topic: TriggerTopic, ends: [Int32: Int64]) async throws -> [Int32: TriggerCursor] {
        try await store.open(topic, ends: ends)
    }
    func save(_ topic: TriggerTopic, _ cursors: [Int32: TriggerCursor]) async throws -> Set<Int32> { Set(cursors.keys) }
    func forget(_ triggers: [String]) async throws { try await store.forget(triggers) }
    func bury(_ failure: TriggerFailure) async throws { try await store.bury(failure) }
}

/// A clock that runs a thousand times as fast.
private struct FastTime: Environment {
    private static let factor: UInt64 = 1_000
    private let system = SystemEnvironment()

    func wallMilliseconds() -> Int64 { system.wallMilliseconds() }
    func monotonicNanoseconds() -> UInt64 { system.monotonicNanoseconds() * Self.factor }
    func random() -> UInt64 { system.random() }
    func sleep(nanoseconds: UInt64) async throws { try await system.sleep(nanoseconds: nanoseconds / Self.factor) }
}
