import Foundation
import SluiceCore
import SluiceReplica
import SluiceSync
import Synchronization
import TestSupport
import Testing

/// An engine over a real replica, and what it reported.
private final class Device: Sendable {
    let replica: Replica
    let engine: SyncEngine
    private let folder: URL
    private let reports: Reports

    final class Reports: Sendable {
        private struct State {
            var all: [SyncReport] = []
            var isHeard = true
            var waiters: [(matches: @Sendable (SyncReport) -> Bool, CheckedContinuation<SyncReport, Never>)] = []
        }

        private let state = Mutex(State())

        /// What the app answers to reports from now on.
        func hear(_ isHeard: Bool) { state.withLock { $0.isHeard = isHeard } }

        func add(_ report: SyncReport) -> Bool {
            let (waiters, isHeard) = state.withLock { state in
                state.all.append(report)
                let met = state.waiters.filter { $0.matches(report) }
                state.waiters.removeAll { $0.matches(report) }
                return (met, state.isHeard)
            }
            for waiter in waiters { waiter.1.resume(returning: report) }
            return isHeard
        }

        func first(_ matches: @escaping @Sendable (SyncReport) -> Bool) async -> SyncReport {
            await withCheckedContinuation { continuation in
                let found = state.withLock { state -> SyncReport? in
                    if let found = state.all.first(where: matches) { return found }
                    state.waiters.append((matches, continuation))
                    return nil
                }
                if let found { continuation.resume(returning: found) }
            }
        }

        var all: [SyncReport] { state.withLock(\.all) }
    }

    /// - Parameters:
    ///   - replica: nil: of a file of its own.
    ///   - failures: how many ends of bootstraps the file does not take.
    init(
        _ network: MemoryNetwork, replica: Replica? = nil, failures: Int = 0,
        token: @escaping @Sendable () async throws(SluiceError) -> String = { "token-0" },
        onReset: @escaping @Sendable (ResetStep) -> Void = { _ in }
    ) throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("sluice-sync-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let replica = try replica ?? Replica(path: folder.appendingPathComponent("file").path, schema: clientTypes)
        self.replica = replica
        let reports = Reports()
        self.reports = reports
        engine = SyncEngine(
            configuration: SyncConfiguration(url: "ws://memory", app: "test"),
            replica: failures > 0 ? FailingReplica(replica, failures: failures) : replica,
            transport: MemoryTransport(network: network), refresh: token, onReport: { reports.add($0) }, onReset: onReset)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    var all: [SyncReport] { reports.all }
    /// Those of refused writes.
    var refusals: Int { all.filter { if case .refused = $0 { true } else { false } }.count }
    func hear(_ isHeard: Bool) { reports.hear(isHeard) }
    func report(_ matches: @escaping @Sendable (SyncReport) -> Bool) async -> SyncReport { await reports.first(matches) }

    /// Runs the engine while the body runs.
    func running(_ body: @Sendable () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await self.engine.run() }
            engine.start()
            try await body()
            group.cancelAll()
        }
    }

    func subscribe(_ stores: [String]) throws -> UInt64 { try replica.addSubscriptionSet(set(0, stores).subscriptions) }

    func write(_ key: Int64, _ item: Item) throws {
        let transaction = try replica.beginWrite()
        try transaction.create(type: 0, key: .int(key), values: ["store": .string(item.store), "value": .string(item.value)])
        try transaction.commit()
    }

    func pending() async throws -> [Changeset] {
        try await replica.read { parts throws(SluiceError) in try parts.local.unacknowledged(after: 0, maximumBytes: .max) }
    }

    /// The compensating writes that the app has not received.
    func unreported() async throws -> [CompensationReport] {
        try await replica.read { parts throws(SluiceError) in try parts.local.compensations.reports.all() }
    }

    func shown() throws -> [Int64: Item] {
        let transaction = try replica.beginWrite()
        defer { transaction.cancel() }
        var items: [Int64: Item] = [:]
        for key: Int64 in 0..<20 {
            guard let row = try transaction.store.row(type: 0, key: .int(key)) else { continue }
            guard case .string(let value)? = row[0], case .string(let store)? = row[2] else { continue }
            items[key] = Item(store: store, value: value)
        }
        return items
    }
}

@Suite(.timeLimit(.minutes(2))) struct SyncEngineTests {
    @Test func `what one device writes another sees, and what others commit both see`() async throws {
        let network = MemoryNetwork()
        await network.commit(1, Item(store: "north", value: "old"))
        await network.commit(2, Item(store: "south", value: "elsewhere"))
        let (first, second) = (try Device(network), try Device(network))
        _ = try first.subscribe(["north"])
        _ = try second.subscribe(["north", "south"])
        try await first.running {
            try await second.running {
                try await first.engine.wait(for: .download)
                #expect(try first.shown() == [1: Item(store: "north", value: "old")])
                try first.write(3, Item(store: "north", value: "mine"))
                try await first.engine.wait(for: .upload)
                await network.commit(1, Item(store: "north", value: "new"))
                try await first.engine.wait(for: .download)
                try await second.engine.wait(for: .download)
                let expected: [Int64: Item] = [1: Item(store: "north", value: "new"), 3: Item(store: "north", value: "mine")]
                #expect(try first.shown() == expected)
                #expect(try second.shown() == expected.merging([2: Item(store: "south", value: "elsewhere")]) { $1 })
                #expect(try await first.pending().isEmpty)
            }
        }
        #expect(await network.violations.isEmpty)
        #expect(try first.replica.currentSubscriptionSet().state == .complete)
    }

    @Test func `a refused write is told after the file shows the gateway's state again, once`() async throws {
        let network = MemoryNetwork()
        await network.commit(1, Item(store: "north", value: "theirs"))
        let device = try Device(network)
        _ = try device.subscribe(["north"])
        try await device.running {
            try await device.engine.wait(for: .download)
            try device.write(1, Item(store: "north", value: "forbidden"))
            let report = await device.report { if case .refused = $0 { true } else { false } }
            guard case .refused(let writes) = report else { return }
            #expect(writes.map(\.object) == [ObjectKey(type: "Item", key: .int(1))] && writes.first?.code == 231)
            #expect(try device.shown() == [1: Item(store: "north", value: "theirs")])
            await network.hangUpAll()
            device.engine.reconnect()
            try await device.engine.wait(for: .upload)
        }
        #expect(device.refusals == 1)
        #expect(try await device.unreported().isEmpty)
    }

    @Test func `a refused write that nobody hears of is told when the file is synced the next time`() async throws {
        let network = MemoryNetwork()
        await network.commit(1, Item(store: "north", value: "theirs"))
        let device = try Device(network)
        _ = try device.subscribe(["north"])
        device.hear(false)
        try await device.running {
            try await device.engine.wait(for: .download)
            try device.write(1, Item(store: "north", value: "forbidden"))
            _ = await device.report { if case .refused = $0 { true } else { false } }
            try await device.engine.wait(for: .upload)
        }
        let kept = try await device.unreported()
        #expect(kept.map(\.writes.count) == [1])
        // As after two restarts of the app.
        for expected in [1, 0] {
            let next = try Device(network, replica: device.replica)
            try await next.running { try await next.engine.wait(for: .download) }
            #expect(next.refusals == expected)
        }
        #expect(try await device.unreported().isEmpty)
    }

    @Test func `work that was done offline goes up once the network is there, in the view it was done in`() async throws {
        let network = MemoryNetwork()
        let device = try Device(network)
        _ = try device.subscribe(["north"])
        try device.write(1, Item(store: "north", value: "a"))
        _ = try device.subscribe(["south"])
        try device.write(2, Item(store: "south", value: "b"))
        let reading = try device.replica.beginWrite()
        try reading.create(type: 1, key: .int(5), values: ["level": .int(3)])
        try reading.commit()
        try await device.running { try await device.engine.wait(for: .upload) }
        #expect(await network.items == [1: Item(store: "north", value: "a"), 2: Item(store: "south", value: "b")])
        #expect(await network.readings == [5: 1])
        #expect(device.all.allSatisfy { if case .refused = $0 { false } else { true } })
    }

    @Test func `a lost connection is made again and nothing is sent twice`() async throws {
        let network = MemoryNetwork()
        let device = try Device(network)
        _ = try device.subscribe(["north"])
        try await device.running {
            for key: Int64 in 0..<10 {
                try device.write(key, Item(store: "north", value: "\(key)"))
                await network.hangUpAll()
                device.engine.reconnect()
                try await device.engine.wait(for: .upload)
            }
            try await device.engine.wait(for: .download)
        }
        #expect(try device.shown().count == 10)
        #expect(await network.effects.count == 10)
        #expect(await network.effects.values.allSatisfy { $0 == 1 })
    }

    @Test func `Scenario 60: a device stays away for as long as the gateway says, and then comes back`() async throws {
        let network = MemoryNetwork()
        let device = try Device(network)
        _ = try device.subscribe(["north"])
        try await device.running {
            try await device.engine.wait(for: .download)
            #expect(await network.tokens.count == 1)
            let begin = ContinuousClock.now
            // Longer than the device's own first pause, which is a second at most.
            await network.end(SluiceError(.shuttingDown, "deploy"), backoffMilliseconds: 2_000)
            await network.commit(1, Item(store: "north", value: "meanwhile"))
            try #require(try await eventually { await network.tokens.count >= 2 })
            #expect(ContinuousClock.now - begin >= .seconds(2))
            try await device.engine.wait(for: .download)
        }
        #expect(try device.shown() == [1: Item(store: "north", value: "meanwhile")])
    }

    @Test func `an expired token is refreshed by the app's closure`() async throws {
        let network = MemoryNetwork()
        await network.accept(token: "second")
        let count = Atomic<Int>(0)
        let device = try Device(network) { () async throws(SluiceError) -> String in
            count.add(1, ordering: .relaxed).newValue == 1 ? "first" : "second"
        }
        try await device.running { try await device.engine.wait(for: .download) }
        #expect(await network.tokens == ["first", "second"])
    }

    @Test func `a refused set is told, and the older one goes on`() async throws {
        let network = MemoryNetwork()
        let device = try Device(network)
        _ = try device.subscribe(["north"])
        try await device.running {
            try await device.engine.wait(for: .download)
            let bad = try device.subscribe(["bad"])
            let report = await device.report { if case .setRefused = $0 { true } else { false } }
            guard case .setRefused(bad, let error, isLast: true) = report else {
                Issue.record("\(report)")
                return
            }
            #expect(error.code == .querySyntax)
            await network.commit(4, Item(store: "north", value: "still"))
            try await device.engine.wait(for: .download)
            #expect(try device.shown() == [4: Item(store: "north", value: "still")])
        }
        guard case .error(300, _) = try device.replica.currentSubscriptionSet().state else {
            Issue.record("the state is not an error")
            return
        }
    }

    @Test func `waits end with their deadline, with their task, and with the engine`() async throws {
        let network = MemoryNetwork()
        let device = try Device(network) { () async throws(SluiceError) -> String in throw SluiceError(.connectionFailed, "offline") }
        try await device.running {
            let late = await #expect(throws: SluiceError.self) { try await device.engine.wait(for: .download, milliseconds: 20) }
            #expect(late?.code == .timeout)
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await #expect(throws: CancellationError.self) { try await device.engine.wait(for: .upload) } }
                group.cancelAll()
            }
        }
        let over = await #expect(throws: SluiceError.self) { try await device.engine.wait(for: .download) }
        #expect(over?.code == .shuttingDown)
    }

    @Test func `a user who has to log in again is told so, and a start with a token goes on`() async throws {
        let network = MemoryNetwork()
        let device = try Device(network) { () async throws(SluiceError) -> String in throw SluiceError(.invalidSession, "revoked") }
        try await device.running {
            _ = await device.report { if case .loggedOut = $0 { true } else { false } }
            let ended = await #expect(throws: SluiceError.self) { try await device.engine.wait(for: .download) }
            #expect(ended?.code == .invalidSession)
            device.engine.start(token: "token-0")
            try await device.engine.wait(for: .download)
        }
    }

    @Test func `what the file could not take is not told as downloaded, and a reset begins its step again`() async throws {
        let network = MemoryNetwork()
        await network.commit(1, Item(store: "north", value: "theirs"))
        let steps = Steps()
        let device = try Device(network, failures: 1, onReset: { steps.add($0) })
        _ = try device.subscribe(["north"])
        try await device.replica.commit(isDurable: true) { parts throws(SluiceError) in try parts.server.reset.begin(.discard) }
        try await device.running {
            let report = await device.report { if case .interrupted = $0 { true } else { false } }
            guard case .interrupted(let error, isFault: true) = report else {
                Issue.record("\(report)")
                return
            }
            #expect(error.code == .deviceFull && steps.all == [.before, .failed])
            #expect(!device.all.contains { if case .downloaded = $0 { true } else { false } })
            device.engine.reconnect()
            _ = await device.report { if case .downloaded = $0 { true } else { false } }
        }
        #expect(try device.shown() == [1: Item(store: "north", value: "theirs")])
        #expect(steps.all == [.before, .failed, .before, .after])
    }
}

private final class Steps: Sendable {
    private let steps = Mutex<[ResetStep]>([])
    var all: [ResetStep] { steps.withLock { $0 } }
    func add(_ step: ResetStep) { steps.withLock { $0.append(step) } }
}
