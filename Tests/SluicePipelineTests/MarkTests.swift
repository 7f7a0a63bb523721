import SluiceCore
import SluicePorts
import SluiceQuery
import SluiceWire
import Synchronization
import Testing

@testable import SluicePipeline

/// Rules that fail when they are asked about subscriptions for the second time, and so often from there on.
private final class FailingRules: Rules {
    private let asked = Atomic<Int>(0)
    private let failures: Int

    init(failures: Int) { self.failures = failures }

    var questions: Int { asked.load(ordering: .relaxed) }

    func openSession(user: UserContext, types: [String]) async throws -> SessionPlan {
        try await OpenRules().openSession(user: user, types: types)
    }
    func checkSubscription(user: UserContext, queries: [(type: String, query: String)]) async throws -> [String] {
        let number = asked.add(1, ordering: .relaxed).newValue
        guard number == 1 || number > 1 + failures else { throw SluiceError(.pluginFailed, "The plugin is away.") }
        return try await OpenRules().checkSubscription(user: user, queries: queries)
    }
    func checkWrites(user: UserContext, _ writes: [ProposedWrite]) async throws -> [WriteVerdict] { writes.map { _ in .allow } }
    func ingest(_ objects: ObjectRows) async throws -> [IngestVerdict]? { nil }
}

@Suite(.timeLimit(.minutes(2))) struct `A mark` {
    @Test func `waits for the bootstrap before it, and nothing behind it waits`() async throws {
        let (gate, open) = AsyncStream<Never>.makeStream()
        let tables = EmptyTables { for await _ in gate {} }
        let client = try await SessionClient(NoWrites(), snapshots: tables)
        try await client.subscribe(1)
        try await client.mark(1)
        try await client.mark(2)
        try await client.upload(1)
        await client.until { $0.contains("ack 1 at 0") }
        #expect(client.told == ["ack 1 at 0"])
        open.finish()
        await client.until { $0.contains("mark 2") }
        #expect(client.told.filter { $0.hasPrefix("end") || $0.hasPrefix("mark") } == ["end 1", "mark 1", "mark 2"])
        #expect(client.channel.goodbye == nil)
        await client.session.closed()
    }

    @Test func `is answered when rules that failed are there again, and the session goes on`() async throws {
        let rules = FailingRules(failures: 3)
        let client = try await SessionClient(NoWrites(), rules: rules)
        try await client.subscribe(1, limit: 2)
        try await client.mark(1)
        await client.until { $0.contains("mark 1") }
        #expect(rules.questions > 4)
        #expect(client.channel.goodbye == nil && !client.told.contains { $0.hasPrefix("error") }, "\(client.told)")
        await client.session.closed()
    }

    /// Whoever waits for it has what decided when they began to wait.
    @Test func `is answered although what decides on the members changes all the time`() async throws {
        let client = try await SessionClient(NoWrites())
        try await client.subscribe(1, limit: 2)
        await client.until { $0.contains("end 1") }
        let fanout = client.services.fanout
        let writing = Task {  // Unstructured because: it is cancelled below.
            var lsn: UInt64 = 1_000
            while !Task.isCancelled {
                lsn += 1
                let position = LSN(rawValue: lsn)
                let records = [OrderAuthority.inserted("k\(lsn)", at: position)]
                await fanout.deliver(ReleasedBatch(records: records, watermark: position, resync: []))
                await Task.yield()
            }
        }
        for id in UInt64(1)...5 {
            try await client.mark(id)
            await client.until { $0.contains("mark \(id)") }
        }
        #expect(client.told.filter { $0.hasPrefix("mark") } == ["mark 1", "mark 2", "mark 3", "mark 4", "mark 5"])
        #expect(client.channel.goodbye == nil)
        writing.cancel()
        await writing.value
        await client.session.closed()
    }
}
