import Dispatch
import SluiceCore
import SluicePorts
import SluiceQuery
import SluiceWire
import Synchronization
import Testing

@testable import SluicePipeline

/// Rules that show orders above a size; calls of them can be made to wait, or to fail, by their number. What one answers is what the
/// rules said when it was made.
private final class ChangingRules: Rules {
    private let least = Atomic<Int>(0)
    private let calls = Mutex((opened: 0, asked: 0))
    private let opening: @Sendable (Int) async throws -> Void
    private let checking: @Sendable (Int) async throws -> Void

    init(
        opening: @escaping @Sendable (Int) async throws -> Void = { _ in },
        checking: @escaping @Sendable (Int) async throws -> Void = { _ in }
    ) {
        self.opening = opening
        self.checking = checking
    }

    /// How often they were asked what a user may.
    var opened: Int { calls.withLock(\.opened) }
    /// How often they were asked about a subscription set.
    var asked: Int { calls.withLock(\.asked) }

    func change(to size: Int) { least.store(size, ordering: .sequentiallyConsistent) }

    func openSession(user: UserContext, types: [String]) async throws -> SessionPlan {
        let number = calls.withLock { calls in
            calls.opened += 1
            return calls.opened
        }
        try await opening(number)
        return try await OpenRules().openSession(user: user, types: types)
    }

    func checkSubscription(user: UserContext, queries: [(type: String, query: String)]) async throws -> [String] {
        let number = calls.withLock { calls in
            calls.asked += 1
            return calls.asked
        }
        let size = least.load(ordering: .sequentiallyConsistent)
        try await checking(number)
        return queries.map { _ in "size > \(size)" }
    }

    func checkWrites(user: UserContext, _ writes: [ProposedWrite]) async throws -> [WriteVerdict] { writes.map { _ in .allow } }
    func ingest(_ objects: ObjectRows) async throws -> [IngestVerdict]? { nil }
}

/// Holds who comes until it is opened, also when they are cancelled.
private final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var hasComer = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }
    private let state = Mutex(State())

    /// - Returns: whether it is the first time.
    func come() -> Bool {
        state.withLock { state in
            defer { state.hasComer = true }
            return !state.hasComer
        }
    }

    func pass() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                state.hasComer = true
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Returns when somebody has come.
    func comer() async {
        while !state.withLock(\.hasComer), !Task.isCancelled { await Task.yield() }
    }
}

private let failure = SluiceError(.pluginFailed, "The plugin is away.")

/// Rules that keep what they are asked about.
private final class NotedRules: Rules {
    private let noted = Mutex<[String]>([])
    var asked: [String] { noted.withLock { $0 } }

    func openSession(user: UserContext, types: [String]) async throws -> SessionPlan {
        try await OpenRules().openSession(user: user, types: types)
    }

    func checkSubscription(user: UserContext, queries: [(type: String, query: String)]) async throws -> [String] {
        noted.withLock { $0 += queries.map { "\($0.type): \($0.query)" } }
        return try await OpenRules().checkSubscription(user: user, queries: queries)
    }

    func checkWrites(user: UserContext, _ writes: [ProposedWrite]) async throws -> [WriteVerdict] { writes.map { _ in .allow } }
    func ingest(_ objects: ObjectRows) async throws -> [IngestVerdict]? { nil }
}

@Suite(.timeLimit(.minutes(2))) struct `What the rules are asked about a set` {
    private let rules = NotedRules()

    private func build(_ texts: String..., over channel: (any SessionChannel)? = nil) async throws {
        let ann = UserContext(id: "ann")
        let plan = try await rules.openSession(user: ann, types: ["Order"])
        var set = PBSubscribe()
        set.version = 1
        set.queries = texts.map { text in
            var query = PBQuery()
            (query.type, query.text) = ("Order", text)
            return query
        }
        let services = SessionFixture.services(rules: rules)
        let permissions = SessionPermissions(plan, schema: services.authority.current())
        let builder = ViewBuilder(services: services, user: ann, permissions: permissions, clientTypes: [], channel: channel)
        _ = try await builder.build(set)
    }

    /// However a device spells it.
    @Test(arguments: ["_id=='7'", " (_id   ==  \"7\" ) ", "_id  = '7'"]) func `is canonical text`(text: String) async throws {
        try await build(text, "truepredicate")
        #expect(rules.asked == [#"Order: _id == "7""#, "Order: TRUEPREDICATE"])
    }

    @Test func `leads to no work once the client is gone`() async throws {
        let channel = KeptMessages()
        try await build("_id == '7'", over: channel)
        channel.close(SluiceError(.shuttingDown, "The client is gone."))
        await #expect(throws: CancellationError.self) { try await build("_id == '7'", over: channel) }
    }

    @Test func `is nothing when a query is none`() async throws {
        await #expect(throws: SluiceError.self) { try await build("_id == '7'", "_id >") }
        #expect(rules.asked.isEmpty)
    }
}

@Suite(.timeLimit(.minutes(2))) struct `A review of the rules` {
    /// Delivers orders, by key and size.
    private static func deliver(_ orders: [(key: String, size: Int64)], at lsn: UInt64, to client: SessionClient<NoWrites>) async {
        let position = LSN(rawValue: lsn)
        let records = orders.map { OrderAuthority.inserted($0.key, size: $0.size, at: position) }
        await client.services.fanout.deliver(ReleasedBatch(records: records, watermark: position, resync: []))
    }

    private static func hears(_ client: SessionClient<NoWrites>, of key: String) -> Bool { client.told.contains { $0.contains(key) } }

    @Test func `that is answered while the rules change is made again`() async throws {
        let gate = Gate()
        let rules = ChangingRules(checking: { number in
            if number == 2 { throw failure }
            if number == 3 { await gate.pass() }
        })
        let client = try await SessionClient(NoWrites(), rules: rules)
        try await client.subscribe(1)
        await client.until { $0.contains("end 1") }
        await client.session.reconsider(user: nil)
        // In doubt, and being answered.
        await gate.comer()
        rules.change(to: 5)
        await client.session.reconsider(user: nil)
        gate.open()
        await client.session.rulesAvailable()
        await client.until { $0.filter { $0 == "end 1" }.count >= 2 }
        await client.session.endOfBootstrap()
        await Self.deliver([("small", 4), ("large", 6)], at: 1_000, to: client)
        #expect(Self.hears(client, of: "large") && !Self.hears(client, of: "small"), "\(client.told)")
        #expect(client.channel.goodbye == nil)
        await client.session.closed()
    }

    @Test func `judges a set too that was built while the rules changed`() async throws {
        let gate = Gate()
        // The second question about a set is that of version 2; its answer is older than the review's.
        let rules = ChangingRules(checking: { number in if number == 2 { await gate.pass() } })
        let client = try await SessionClient(NoWrites(), rules: rules)
        try await client.subscribe(1)
        await client.until { $0.contains("end 1") }
        async let subscribed: Void = client.subscribe(2)
        await gate.comer()
        rules.change(to: 5)
        await client.session.reconsider(user: nil)
        await client.until { $0.filter { $0 == "end 1" }.count == 2 }
        gate.open()
        try await subscribed
        await client.until { $0.contains("end 2") }
        await Self.deliver([("small", 4), ("large", 6)], at: 1_000, to: client)
        #expect(Self.hears(client, of: "large") && !Self.hears(client, of: "small"), "\(client.told)")
        await client.session.closed()
    }

    @Test func `leaves nothing of the old view, whose bootstrap ends at that moment`() async throws {
        let (ending, goesOn) = (Gate(), DispatchSemaphore(value: 0))
        let channel = KeptMessages { message in
            guard case .bootstrapEnd? = message.kind, ending.come() else { return }
            // Whoever sends is the fan-out, of which the review wants something meanwhile.
            _ = goesOn.wait(timeout: .now() + .seconds(20))
        }
        let rules = ChangingRules()
        let later = Gate()
        let client = try await SessionClient(
            NoWrites(), rules: rules, snapshots: EmptyTables { if rules.asked > 1 { await later.pass() } }, channel: channel)
        try await client.subscribe(1)
        await ending.comer()
        rules.change(to: 5)
        async let reviewed: Void = client.session.reconsider(user: nil)
        while rules.asked < 2 { await Task.yield() }
        // Until the review waits for the fan-out; coming earlier it would find the bootstrap at its end, which is harder to get wrong.
        try await Task.sleep(for: .milliseconds(50))
        goesOn.signal()
        await reviewed
        await Self.deliver([("small", 4)], at: 1_000, to: client)
        #expect(client.told == ["begin 1", "end 1"])
        later.open()
        await client.until { $0.filter { $0 == "end 1" }.count == 2 }
        await client.session.closed()
    }

    /// Why bootstraps said that objects left, where they said it.
    private static func reasons(_ client: SessionClient<NoWrites>) -> [PBViewEvent] {
        client.channel.messages.flatMap(\.bootstrapRows.reasons)
    }

    @Test func `that finds nothing new leaves what a limit displaces later with its reason`() async throws {
        let table = OrderTable()
        table.insert("b", size: 2)
        let client = try await SessionClient(NoWrites(), rules: ChangingRules(), snapshots: table)
        try await client.subscribe(1, limit: 1)
        await client.until { $0.contains("end 1") }
        await client.session.reconsider(user: nil)
        table.insert("a", size: 2)
        await Self.deliver([("a", 2)], at: 1_000, to: client)
        await client.until { $0.filter { $0 == "end 1" }.count == 2 }
        #expect(Self.reasons(client) == [.leftQuery], "\(client.told)")
        await client.session.closed()
    }

    @Test func `that narrows a query under the same plan does not call it the query that objects left`() async throws {
        let (table, rules) = (OrderTable(), ChangingRules())
        table.insert("b", size: 2)
        table.insert("c", size: 9)
        let client = try await SessionClient(NoWrites(), rules: rules, snapshots: table)
        try await client.subscribe(1, limit: 1)
        await client.until { $0.contains("end 1") }
        rules.change(to: 5)
        await client.session.reconsider(user: nil)
        await client.until { $0.filter { $0 == "end 1" }.count == 2 }
        #expect(!Self.reasons(client).contains(.leftQuery), "\(client.told)")
        await client.session.closed()
    }

    @Test func `and a look at the members that both get no answer are asked again by one`() async throws {
        let gate = Gate()
        let rules = ChangingRules { number in
            if number == 2 { await gate.pass() }
        } checking: { number in
            // The look's, which waits for the review to have begun, and the review's.
            if number == 2 { await gate.comer() }
            if number == 2 || number == 3 { throw failure }
        }
        let client = try await SessionClient(NoWrites(), rules: rules)
        try await client.subscribe(1, limit: 2)
        async let reviewed: Void = client.session.reconsider(user: nil)
        while await !client.session.machine.isAsking { await Task.yield() }
        gate.open()
        await reviewed
        await client.session.rulesAvailable()
        await client.until { $0.filter { $0 == "end 1" }.count >= 2 }
        // Another one would have asked at the same time.
        try await Task.sleep(for: .milliseconds(200))
        #expect(rules.opened == 3 && client.channel.goodbye == nil, "\(rules.opened) \(client.told)")
        await client.session.closed()
    }
}

extension Session {
    fileprivate func endOfBootstrap() async { await tasks.work?.value }
}
