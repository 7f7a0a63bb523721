import Logging
import SluiceCore
import SluicePorts
import SluiceWire
import Synchronization
import Testing

@testable import SluicePipeline

@Suite(.timeLimit(.minutes(1))) struct `What the feed reads` {
    private static let first = LogPartition("app.Order", 1)
    private static let second = LogPartition("app.Order", 2)

    /// What happened, in its order, and who waits for leave to go on.
    private actor Stage {
        private(set) var story: [String] = []
        private var held: [CheckedContinuation<Void, Never>] = []
        private var watchers: [(line: String, continuation: CheckedContinuation<Void, Never>)] = []

        func note(_ line: String) {
            story.append(line)
            for watcher in watchers where watcher.line == line { watcher.continuation.resume() }
            watchers.removeAll { $0.line == line }
        }

        /// Notes what begins, and waits until it may end.
        func pass(_ name: String) async {
            note("\(name)…")
            await withCheckedContinuation { held.append($0) }
            note(name)
        }

        func letGo() { held.removeFirst().resume() }

        func until(_ line: String) async {
            if story.contains(line) { return }
            await withCheckedContinuation { watchers.append((line, $0)) }
        }
    }

    /// A log whose reader takes as long as the test likes to change what it reads.
    private final class SlowLog: MessageLog, LogReader {
        let stage = Stage()
        let assigned = Mutex<Set<LogPartition>>([])
        let failures = Atomic<Int>(0)
        /// Whether it takes long to say what it has.
        let isSlow = Atomic<Bool>(false)
        private let fetches = AsyncStream<LogFetch>.makeStream()

        func give(_ fetch: LogFetch) { fetches.continuation.yield(fetch) }

        func prepare(_ topics: [TopicSpec]) async throws -> [Int32] { topics.map(\.partitions) }
        func append(_ batch: LogBatch) async throws -> [LogPartition: Int64] { [:] }
        func place(_ batch: LogBatch) async throws -> [Int64] { [] }
        func ends(of partitions: [LogPartition]) async throws -> [LogPartition: Int64] {
            Dictionary(uniqueKeysWithValues: partitions.map { ($0, 7) })
        }
        func ranges(of partitions: [LogPartition]) async throws -> [LogPartition: Range<Int64>] {
            if isSlow.load(ordering: .relaxed) { await stage.pass("ranges") }
            return [:]
        }
        func makeReader() async throws -> any LogReader { self }

        func assign(_ partitions: [LogPartition: Int64]) async throws {
            let rows = partitions.keys.filter { $0.topic == first.topic }
            guard !rows.isEmpty else { return await stage.note("ready") }
            await stage.pass("assign")
            if failures.load(ordering: .relaxed) > 0 {
                failures.subtract(1, ordering: .relaxed)
                throw SluiceError(.logUnreachable, "The broker is away.")
            }
            assigned.withLock { $0.formUnion(rows) }
        }

        func unassign(_ partitions: [LogPartition]) async throws {
            await stage.pass("unassign")
            assigned.withLock { $0.subtract(partitions) }
        }

        func next(_ fetch: consuming LogFetch, milliseconds: Int) async throws -> LogFetch {
            for await given in fetches.stream { return given }
            try Task.checkCancellation()
            return fetch
        }

        func close() async {}
    }

    private func with(
        linger: UInt64 = 0, _ body: (Feed, SlowLog, Stage) async throws -> Void
    ) async throws {
        try await with(linger: linger) { feed, log, stage, _ in try await body(feed, log, stage) }
    }

    private func with(linger: UInt64 = 0, _ body: (Feed, SlowLog, Stage, Fanout) async throws -> Void) async throws {
        let log = SlowLog()
        let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let environment = SystemEnvironment()
        let fanout = Fanout(authority: OrderAuthority(), frames: PlainFrames(), environment: environment, logger: quiet)
        let feed = Feed(log: log, topics: Topics(app: "app"), fanout: fanout, environment: environment, logger: quiet, linger: linger)
        let running = Task { try await feed.run() }  // Unstructured because: it is cancelled below, whatever the body does.
        defer { running.cancel() }
        // The second is the reader's whole assignment: from here on the feed has it.
        await log.stage.until("ready")
        try await body(feed, log, log.stage, fanout)
    }

    /// Lets everything run that does not wait for anybody.
    private func settle() async { for _ in 0..<200 { await Task.yield() } }

    @Test func `is read when the second who needs a partition goes on, too`() async throws {
        try await with { feed, log, stage in
            async let one: Void = feed.require([Self.first])
            await stage.until("assign…")
            let two = Task {  // Unstructured because: it is awaited below.
                try await feed.require([Self.first])
                await stage.note("two")
            }
            await settle()
            await stage.letGo()
            try await one
            try await two.value
            #expect(await stage.story.suffix(3) == ["assign…", "assign", "two"])
            // The second needs it still.
            await feed.release([Self.first])
            #expect(log.assigned.withLock { $0 } == [Self.first])
        }
    }

    @Test func `is taken away before it is asked for anew, however long that takes`() async throws {
        try await with { feed, log, stage in
            async let one: Void = feed.require([Self.first])
            await stage.until("assign…")
            await stage.letGo()
            try await one
            async let gone: Void = feed.release([Self.first])
            await stage.until("unassign…")
            async let again: Void = feed.require([Self.first])
            await settle()
            await stage.letGo()
            await gone
            // The second assignment waits now, or has not come this far.
            while await stage.story.filter({ $0 == "assign…" }).count < 2 { await Task.yield() }
            await stage.letGo()
            try await again
            #expect(await stage.story.suffix(4) == ["unassign…", "unassign", "assign…", "assign"])
            #expect(log.assigned.withLock { $0 } == [Self.first])
        }
    }

    @Test func `is read a while longer than it is needed, so that who comes back finds what was handed on`() async throws {
        try await with(linger: 3_600) { feed, log, stage in
            async let one: Void = feed.require([Self.first])
            await stage.until("assign…")
            await stage.letGo()
            try await one
            await feed.release([Self.first])
            #expect(log.assigned.withLock { $0 } == [Self.first])
            // The log of this test is empty: nothing is missing since its beginning.
            #expect(await feed.recent([Self.first], after: .zero) == [[]])
            #expect(await feed.recent([Self.first, Self.second], after: .zero) == nil)
            try await feed.require([Self.first])
            #expect(await stage.story.count { $0 == "assign…" } == 1)
        }
    }

    @Test func `is not passed by the watermark before it is known where reading begins`() async throws {
        try await with { feed, log, stage, fanout in
            func promise(_ lsn: UInt64, _ grown: [LogPartition: Int64]) async {
                let record = ProgressRecord(
                    lsn: LSN(rawValue: lsn), commitTime: 0, grown: grown, since: .zero, completeSince: LSN(rawValue: lsn))
                var fetch = LogFetch()
                fetch.arena = ProgressCodec.encode(record)
                fetch.entries = [
                    LogFetch.Entry(partition: LogPartition("app.progress", 0), offset: Int64(lsn), value: 0..<fetch.arena.count)
                ]
                log.give(fetch)
                while await feed.completeSince != LSN(rawValue: lsn) { await Task.yield() }
                await settle()
            }
            await promise(10, [:])
            #expect(await fanout.watermark == LSN(rawValue: 10))
            log.isSlow.store(true, ordering: .relaxed)
            async let one: Void = feed.require([Self.first])
            await stage.until("ranges…")
            // The first record that the partition ever had, and what says that it is there.
            await promise(20, [Self.first: 1])
            #expect(await fanout.watermark == LSN(rawValue: 10))
            await stage.letGo()
            await stage.until("assign…")
            await stage.letGo()
            try await one
            // Nor before that has been read.
            await promise(30, [:])
            #expect(await fanout.watermark == LSN(rawValue: 10))
        }
    }

    /// Each would wait for the log's deadline otherwise, one after another.
    @Test func `fails at once for all who waited while the log was away, and is tried again by the next one`() async throws {
        try await with { feed, log, stage in
            log.failures.store(1, ordering: .relaxed)
            let one = Task { try await feed.require([Self.first]) }  // Unstructured because: they are awaited below.
            await stage.until("assign…")
            let two = Task { try await feed.require([Self.first, Self.second]) }
            await settle()
            await stage.letGo()
            await stage.until("unassign…")
            await stage.letGo()
            for waiting in [one, two] {
                let error = await #expect(throws: SluiceError.self) { try await waiting.value }
                #expect(error?.code == .logUnreachable)
            }
            #expect(await stage.story.count { $0 == "assign…" } == 1)
            async let again: Void = feed.require([Self.first, Self.second])
            while await stage.story.filter({ $0 == "assign…" }).count < 2 { await Task.yield() }
            await stage.letGo()
            try await again
            #expect(log.assigned.withLock { $0 } == [Self.first, Self.second])
        }
    }
}
