import SluiceCore
import SluicePorts
import SluiceWire
import Synchronization
import Testing

@testable import SluicePipeline

/// Commits at once, and is asked whether that will outlive a crash until the test has it answer.
private final class SlowDisk: WriteStore {
    private struct State {
        var committed: [UInt64] = []
        var asked = 0
        var waiting: [CheckedContinuation<Void, any Error>] = []
    }

    private let state = Mutex(State())
    /// Changesets of which a write is undone.
    let undone: Set<UInt64>
    /// Changesets of which a write comes to nothing.
    let futile: Set<UInt64>

    init(undone: Set<UInt64> = [], futile: Set<UInt64> = []) {
        self.undone = undone
        self.futile = futile
    }

    var committed: [UInt64] { state.withLock(\.committed) }
    /// How often the disk was waited for.
    var asked: Int { state.withLock(\.asked) }

    func transaction(_ request: WriteRequest, _ decide: WriteDecider) async throws -> WriteOutcome {
        let number = request.origin.changeset
        state.withLock { $0.committed.append(number) }
        let object = ObjectKey(type: "Order", key: .string("k"))
        let rejected = WriteRejection(changeset: number, object: object, code: .compensatingWrite, reason: "No.", values: [:])
        return WriteOutcome(
            lsn: LSN(rawValue: 100 + number), rejected: undone.contains(number) ? [rejected] : [],
            compensation: undone.contains(number) ? number : nil, futile: futile.contains(number) ? [object] : [])
    }

    func durable() async throws {
        try await withCheckedThrowingContinuation { continuation in
            state.withLock { state in
                state.asked += 1
                state.waiting.append(continuation)
            }
        }
    }

    func answer(_ result: Result<Void, any Error> = .success(())) {
        for continuation in state.withLock({ state in
            defer { state.waiting = [] }
            return state.waiting
        }) {
            continuation.resume(with: result)
        }
    }
}

extension SessionClient<SlowDisk> {
    /// Waits until the disk has been asked so often, or the client was told without.
    fileprivate func untilAsked(_ count: Int) async {
        let before = told.count
        while store.asked < count, told.count == before, !Task.isCancelled { await Task.yield() }
    }
}

/// A commit does not wait for the disk; who is told of it has to.
@Suite(.timeLimit(.minutes(2))) struct `An upload` {
    private typealias Client = SessionClient<SlowDisk>

    @Test func `is acknowledged, and what of it is undone told, once it will outlive a crash`() async throws {
        let client = try await Client(SlowDisk(undone: [1]))
        try await client.upload(1)
        await client.untilAsked(1)
        #expect(client.store.committed == [1] && client.store.asked == 1)
        #expect(client.told == [])
        // The next one does not wait. When it is committed, what the disk is asked for has begun.
        try await client.upload(2)
        #expect(client.store.committed == [1, 2] && client.store.asked == 1)
        #expect(client.told == [])
        client.store.answer()
        await client.until { $0.count >= 2 }
        await client.until { _ in client.store.asked == 2 }
        #expect(client.told == ["compensation 1", "ack 1 at 101"])
        client.store.answer()
        await client.until { $0.count >= 3 }
        #expect(client.told == ["compensation 1", "ack 1 at 101", "ack 2 at 102"])
        await client.session.closed()
    }

    @Test func `is told with its acknowledgement what of it came to nothing, by changeset`() async throws {
        let client = try await Client(SlowDisk(futile: [1, 2]))
        try await client.upload(1)
        await client.untilAsked(1)
        for number: UInt64 in 2...3 { try await client.upload(number) }
        client.store.answer()
        await client.until { !$0.isEmpty }
        await client.until { _ in client.store.asked == 2 }
        client.store.answer()
        await client.until { $0.count >= 2 }
        #expect(client.told == ["ack 1 at 101, 1 in vain to Order", "ack 3 at 103, 2 in vain to Order"])
        await client.session.closed()
    }

    @Test func `is waited for until it is acknowledged when its gateway ends`() async throws {
        let client = try await Client(SlowDisk())
        try await client.upload(1)
        await client.untilAsked(1)
        let (session, store) = (client.session, client.store)
        // Runs to its first wait before the disk answers.
        let waiting = Task.immediate { await session.answered() }  // Unstructured because: it is awaited here.
        // Committed while the disk is asked for the first one.
        try await client.upload(2)
        store.answer()
        await client.until { _ in store.asked == 2 }
        store.answer()
        await waiting.value
        #expect(client.told == ["ack 1 at 101", "ack 2 at 102"])
        // Nothing waits, so neither does this.
        await session.answered()
        await session.closed()
    }

    /// The first time it may have been committed without anybody hearing whether that would outlive a crash.
    @Test func `that comes again is acknowledged no earlier`() async throws {
        let client = try await Client(SlowDisk(), uploaded: 3)
        try await client.upload(3)
        await client.untilAsked(1)
        #expect(client.store.committed == [] && client.store.asked == 1)
        #expect(client.told == [])
        client.store.answer()
        await client.until { !$0.isEmpty }
        #expect(client.told == ["ack 3 at 0"])
        await client.session.closed()
    }

    @Test func `is acknowledged before a mark that was set behind it is answered`() async throws {
        let client = try await Client(SlowDisk())
        try await client.upload(1)
        var mark = PBMark()
        mark.id = 5
        try await client.send(.mark(mark))
        await client.untilAsked(1)
        #expect(client.told == [])
        client.store.answer()
        await client.until { $0.count >= 2 }
        #expect(client.told == ["ack 1 at 101", "mark 5"])
        await client.session.closed()
    }

    @Test func `ends the session when the disk fails, and is not acknowledged`() async throws {
        let client = try await Client(SlowDisk(undone: [1]))
        try await client.upload(1)
        await client.untilAsked(1)
        try await client.upload(2)
        client.store.answer(.failure(SluiceError(.postgresUnreachable, "The disk is full.")))
        await client.until { !$0.isEmpty }
        #expect(client.told == ["error 600"] && client.channel.goodbye?.code == .postgresUnreachable)
        // Nothing is taken any more.
        try await client.upload(3)
        #expect(client.store.committed == [1, 2] && client.store.asked == 1)
        await client.session.closed()
        #expect(client.told == ["error 600"])
    }
}
