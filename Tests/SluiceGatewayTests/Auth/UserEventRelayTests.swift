import Logging
import SluiceCore
import SluiceEmbeddedLog
import SluiceGateway
import SluiceIdentity
import SluicePorts
import SluiceValues
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(1)))
struct `The relay of users' events` {
    private static func event(_ id: Int64, _ user: String, _ kind: UserEvent.Kind) -> UserEvent {
        UserEvent(
            id: id, kind: kind, account: UserAccount(id: user, provider: "anon-user"), provider: "anon-user",
            milliseconds: 1_700_000_000_000)
    }

    private static let onLogin = AuthenticationTrigger("on login", .login, function: "greet")

    /// Runs a relay until the queue is empty.
    private static func deliver(
        _ events: [UserEvent], _ triggers: [AuthenticationTrigger], _ functions: any AppFunctions,
        topic: UserEventRelay.Topic? = nil, metrics: Metrics = Metrics(), meanwhile: () async throws -> Void = {}
    ) async throws -> MemoryEvents {
        let queue = MemoryEvents(events)
        let relay = UserEventRelay(
            queue: queue, topic: topic, triggers: triggers, functions: functions, metrics: metrics, environment: SystemEnvironment(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let running = Task { try await relay.run() }
        try await meanwhile()
        #expect(await queue.untilEmpty())
        running.cancel()
        _ = await running.result
        return queue
    }

    @Test func `calls the functions of matching triggers, in order for each user`() async throws {
        let functions = RecordingFunctions()
        let second = AuthenticationTrigger("second", .login, function: "count")
        let gone = AuthenticationTrigger("gone", .delete, function: "clean")
        let events = [
            Self.event(1, "a", .created), Self.event(2, "a", .loggedIn), Self.event(3, "b", .loggedIn), Self.event(4, "a", .deleted),
            Self.event(5, "b", .disabled),
        ]
        let queue = try await Self.deliver(events, [Self.onLogin, second, gone], functions)
        let calls = functions.calls.compactMap(\.id)
        #expect(
            Set(calls) == [
                "user-event-2-on login", "user-event-2-second", "user-event-3-on login", "user-event-3-second", "user-event-4-gone",
            ])
        #expect(calls.count == 5)
        let ofA = calls.filter { $0.contains("-2-") || $0.contains("-4-") }
        #expect(ofA == ["user-event-2-on login", "user-event-2-second", "user-event-4-gone"])
        #expect(queue.buried.isEmpty)
    }

    @Test func `repeats a call that failed, and lets later events of the user wait`() async throws {
        let functions = RecordingFunctions { call, count throws(SluiceError) in
            if call.id == "user-event-1-on login", count <= 3 { throw SluiceError(.functionUnavailable, "Away.") }
        }
        let metrics = Metrics()
        let queue = try await Self.deliver(
            [Self.event(1, "a", .loggedIn), Self.event(2, "a", .loggedIn)], [Self.onLogin], functions, metrics: metrics)
        #expect(functions.calls.map(\.id) == Array(repeating: "user-event-1-on login", count: 4) + ["user-event-2-on login"])
        #expect(queue.waits == [1, 2, 4])
        #expect(metrics.values(of: .triggerFailures).map(\.value) == [3])
        #expect(metrics.values(of: .userEvents).map(\.value) == [2])
    }

    @Test func `tells its lag while events wait`() async throws {
        let metrics = Metrics()
        let lags = Shared<[Double]>([])
        let functions = RecordingFunctions { _, _ throws(SluiceError) in
            for value in metrics.values(of: .userEventLag) { lags.append(value.value) }
        }
        _ = try await Self.deliver([Self.event(1, "a", .loggedIn)], [Self.onLogin], functions, metrics: metrics)
        #expect(lags.current == [1])
    }

    @Test func `gives a call up after its attempts, and goes on`() async throws {
        let functions = RecordingFunctions { call, _ throws(SluiceError) in
            if call.name == "greet" { throw SluiceError(.functionFailed, "Never.") }
        }
        let second = AuthenticationTrigger("second", .login, function: "count")
        let metrics = Metrics()
        let queue = try await Self.deliver([Self.event(1, "a", .loggedIn)], [Self.onLogin, second], functions, metrics: metrics)
        #expect(functions.calls.filter { $0.name == "greet" }.count == TriggerRetries.attempts)
        #expect(functions.calls.filter { $0.name == "count" }.count == 1)
        #expect(queue.buried.map(\.trigger) == ["on login"] && queue.buried.first?.reason == "Never.")
        #expect(metrics.values(of: .triggersBuried).map(\.value) == [1])
    }

    @Test func `publishes every event once, while its triggers fail`() async throws {
        let log = EmbeddedLog(environment: SystemEnvironment())
        _ = try await log.prepare([TopicSpec(name: "shop.users", partitions: 1)])
        let functions = RecordingFunctions { _, count throws(SluiceError) in if count == 1 { throw SluiceError(.functionTimeout, "Late.") }
        }
        let events = [Self.event(1, "a", .created), Self.event(2, "a", .loggedIn)]
        _ = try await Self.deliver(events, [Self.onLogin], functions, topic: .init(log: log, name: "shop.users"))
        let partition = LogPartition("shop.users", 0)
        let records = try await log.withReader { reader in
            try await reader.assign([partition: 0])
            return try await reader.next(LogFetch(), milliseconds: 1_000)
        }
        let values = try records.entries.map { try JSON.parse(Array(records.arena[$0.value])) }
        #expect(values.compactMap { $0["id"]?.int } == [1, 2])
        #expect(
            values.first == [
                "id": 1, "kind": "created", "at": ["$date": "2023-11-14T22:13:20Z"], "provider": "anon-user",
                "user": UserContext(id: "a").json,
            ])
    }

    @Test func `removes events unread if nothing receives them`() async throws {
        let metrics = Metrics()
        let functions = RecordingFunctions()
        let events = [Self.event(1, "a", .created), Self.event(2, "a", .loggedIn), Self.event(3, "b", .loggedIn)]
        let queue = try await Self.deliver(events, [], functions, metrics: metrics)
        #expect(functions.calls.isEmpty && queue.takes == 0)
        #expect(metrics.values(of: .userEvents).map(\.value).sorted() == [1, 2])
    }

    @Test func `publishes later events while a trigger is slow`() async throws {
        let log = EmbeddedLog(environment: SystemEnvironment())
        _ = try await log.prepare([TopicSpec(name: "shop.users", partitions: 1)])
        let functions = HeldFunctions()
        let events = (1...3).map { Self.event(Int64($0), "a", .loggedIn) }
        _ = try await Self.deliver(events, [Self.onLogin], functions, topic: .init(log: log, name: "shop.users")) {
            let partition = LogPartition("shop.users", 0)
            let arePublished = try await eventually { try await log.ends(of: [partition])[partition] == 3 }
            #expect(arePublished)
            functions.gate.fire()
        }
    }
}

/// Functions that answer once the test lets them.
private struct HeldFunctions: AppFunctions {
    let gate = AsyncEvent(environment: SystemEnvironment())

    func canCall(_ name: String) -> Bool { true }

    func call(_ call: FunctionCall) async throws(SluiceError) -> JSON {
        await gate.wait(after: 0, milliseconds: 60_000)
        return .null
    }
}

/// Functions that record their calls, and fail as the test says.
private final class RecordingFunctions: AppFunctions {
    typealias Body = @Sendable (FunctionCall, _ count: Int) throws(SluiceError) -> Void

    private let body: Body
    private let recorded = Mutex<[FunctionCall]>([])

    init(_ body: @escaping Body = { _, _ in }) { self.body = body }

    var calls: [FunctionCall] { recorded.withLock(\.self) }

    func canCall(_ name: String) -> Bool { true }

    func call(_ call: FunctionCall) async throws(SluiceError) -> JSON {
        let count = recorded.withLock { calls in
            calls.append(call)
            return calls.count
        }
        try body(call, count)
        return .null
    }
}

/// The queue in memory. A postponed event is due at once.
private final class MemoryEvents: UserEventQueue {
    private struct State: Sendable {
        var events: [UserEvent]
        var taken: Set<Int64> = []
        var published: Set<Int64> = []
        var triggered: Set<Int64> = []
        var waits: [Int] = []
        /// The number of calls that took events.
        var takes = 0
        var buried: [(trigger: String, reason: String)] = []
    }

    private let state: Watched<State>

    init(_ events: [UserEvent]) { state = Watched(State(events: events)) }

    var waits: [Int] { state.value.waits.filter { $0 < 600 } }
    var buried: [(trigger: String, reason: String)] { state.value.buried }
    var takes: Int { state.value.takes }

    func untilEmpty() async -> Bool { await state.until { $0.events.isEmpty } }

    func take(_ limit: Int, leaseSeconds seconds: Int) async throws -> [UserEvent] {
        state.change { state in
            state.takes += 1
            var users: Set<String> = []
            let open = state.events.filter { !state.triggered.contains($0.id) }
            let heads = open.filter { users.insert($0.account.id).inserted && !state.taken.contains($0.id) }.prefix(limit)
            state.taken.formUnion(heads.map(\.id))
            return Array(heads)
        }
    }

    func takeUnpublished(_ limit: Int, leaseSeconds seconds: Int) async throws -> [UserEvent] {
        state.change { state in
            state.takes += 1
            return state.events.filter { !state.published.contains($0.id) }
        }
    }

    func keep(unpublished ids: [Int64], seconds: Int) async throws {}

    func postpone(_ event: UserEvent, seconds: Int) async throws {
        state.change { state in
            state.waits.append(seconds)
            for index in state.events.indices where state.events[index].id == event.id { state.events[index] = event }
            // A lease is prolonged by as much.
            if seconds < 600 { state.taken.remove(event.id) }
        }
    }

    func bury(_ event: UserEvent, trigger: String, reason: String) async throws {
        state.change { $0.buried.append((trigger, reason)) }
    }

    func finish(
        _ ids: [Int64], at destination: UserEventDestination, of destinations: Set<UserEventDestination>
    ) async throws -> Set<Int64> {
        state.change { state in
            if destination == .topic { state.published.formUnion(ids) } else { state.triggered.formUnion(ids) }
            var gone = Set(ids)
            if destinations.contains(.topic) { gone.formIntersection(state.published) }
            if destinations.contains(.triggers) { gone.formIntersection(state.triggered) }
            state.events.removeAll { gone.contains($0.id) }
            return gone
        }
    }

    func discard(_ limit: Int, of destinations: Set<UserEventDestination>) async throws -> [UserEvent.Kind: Int] {
        guard destinations.isEmpty else { return [:] }
        return state.change { state in
            let gone = state.events.prefix(limit)
            state.events.removeFirst(gone.count)
            return gone.reduce(into: [:]) { $0[$1.kind, default: 0] += 1 }
        }
    }

    func lag() async throws -> Double { Double(state.value.events.count) }
}
