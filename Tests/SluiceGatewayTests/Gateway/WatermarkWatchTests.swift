import GatewayTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluicePipeline
import SluicePorts
import Synchronization
import Testing

/// Time passes by sleeping alone, so that nobody waits and nothing is late.
@Suite(.timeLimit(.minutes(2))) struct `A watermark` {
    private final class Stage: Sendable {
        private struct Authority: SchemaAuthority {
            func current() -> AppSchema { AppSchema(version: 1, schema: Schema([]), fields: QueryableFields(), isDevelopment: false) }
            func extend(by client: [ObjectType]) async throws -> AppSchema { current() }
            func makeQueryable(_ fields: [String: Set<String>]) async throws -> AppSchema { current() }
        }

        private final class Nothing: FrameMaker {
            func frame(_ message: [UInt8]) -> Frame { Frame(storage: self, byteCount: 0) }
        }

        private final class Marker: WALHeartbeatSender {
            let count = Atomic<Int>(0)
            func mark() async throws { count.add(1, ordering: .relaxed) }
        }

        private final class PassingTime: Environment {
            private let nanoseconds = Atomic<UInt64>(0)
            let meanwhile = Mutex<(@Sendable () async -> Void)?>(nil)
            func wallMilliseconds() -> Int64 { Int64(monotonicNanoseconds() / 1_000_000) }
            func monotonicNanoseconds() -> UInt64 { nanoseconds.load(ordering: .relaxed) }
            func random() -> UInt64 { 4 }
            func sleep(nanoseconds duration: UInt64) async throws {
                try Task.checkCancellation()
                nanoseconds.add(duration, ordering: .relaxed)
                if duration == WatermarkWatch.interval { await meanwhile.withLock(\.self)?() }
                await Task.yield()
            }
        }

        private let time = PassingTime()
        private let marker = Marker()
        private let looks = Atomic<Int>(0)
        private let end = Atomic<UInt64>(0)
        private let pieces = Atomic<UInt64>(0)
        let readiness = Readiness()
        let log = LinesOfLog()
        let fanout: Fanout
        private let logger: Logger

        init() {
            let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            fanout = Fanout(
                authority: Authority(), frames: Nothing(), environment: time, logger: quiet,
                marks: WALHeartbeatWriter(marker, environment: time, logger: quiet))
            logger = Logger(label: "test") { [log] _ in log }
        }

        var problem: SluiceError? { readiness.current["watermark"] }
        var marks: Int { marker.count.load(ordering: .relaxed) }
        var lines: [String] { log.lines.map { "\($0.level) \($0.message)" } }

        /// The write-ahead log ends there from now on; nil: the database does not answer.
        func write(_ lsn: UInt64?) { end.store(lsn ?? .max, ordering: .relaxed) }

        func deliver(_ lsn: UInt64) async {
            await fanout.deliver(ReleasedBatch(records: [], watermark: LSN(rawValue: lsn), resync: []))
        }

        /// Runs the body beside the watch.
        /// - Parameters:
        ///   - moving: between any two looks the watermark makes a step.
        ///   - publishing: between any two looks a piece of a transaction is published.
        ///   - idling: now and then the server writes something of its own, which comes by before the next look.
        func watched(
            moving: Bool = false, publishing: Bool = false, idling: Bool = false, _ body: () async throws -> Void
        ) async throws {
            let watch = WatermarkWatch(
                fanout: fanout, readiness: readiness, environment: time, logger: logger,
                pieces: { [self] in publishing ? pieces.add(1, ordering: .relaxed).newValue : 0 }
            ) { [self] in
                let look = looks.add(1, ordering: .relaxed).newValue
                if idling, look.isMultiple(of: 3) { end.add(1, ordering: .relaxed) }
                if moving { await deliver(await fanout.watermark.rawValue + 1) }
                let end = end.load(ordering: .relaxed)
                guard end < .max else { throw SluiceError(.postgresUnreachable, "Nobody answers.") }
                return LSN(rawValue: end)
            }
            if idling { time.meanwhile.withLock { $0 = { [self] in await deliver(end.load(ordering: .relaxed)) } } }
            let watching = Task { try await watch.run() }  // Unstructured because: it is cancelled and awaited below.
            try await body()
            watching.cancel()
            _ = try? await watching.value
            time.meanwhile.withLock { $0 = nil }
        }

        /// Waits until it has been looked so often again.
        func look(_ count: Int = 20) async {
            let first = looks.load(ordering: .relaxed)
            while looks.load(ordering: .relaxed) < first + count, !Task.isCancelled { await Task.yield() }
        }
    }

    @Test func `that does not come to what is committed is a problem, until it moves`() async throws {
        let stage = Stage()
        await stage.deliver(10)
        try await stage.watched {
            stage.write(50)
            await stage.look()
            while stage.marks == 0, !Task.isCancelled { await Task.yield() }
            #expect(stage.problem?.code == .timeout && stage.problem?.message.contains("0/A") == true)
            // The database goes away meanwhile: that ends nothing.
            stage.write(nil)
            await stage.look()
            #expect(stage.problem != nil)
            stage.write(50)
            await stage.deliver(50)
            await stage.look()
            #expect(stage.problem == nil)
        }
        #expect(
            stage.lines == [
                "error Commits do not arrive through the log.", "notice Commits arrive through the log again.",
            ])
    }

    @Test(arguments: [10, 5]) func `that has everything may stand still`(end: UInt64) async throws {
        let stage = Stage()
        await stage.deliver(10)
        stage.write(end)
        try await stage.watched { await stage.look(100) }
        #expect(stage.problem == nil && stage.lines.isEmpty)
    }

    @Test func `is not hastened while nobody waits for it: an idle database stays idle`() async throws {
        let stage = Stage()
        await stage.deliver(10)
        stage.write(10)
        try await stage.watched(idling: true) { await stage.look(100) }
        #expect(stage.marks == 0 && stage.problem == nil && stage.lines.isEmpty)
    }

    @Test(arguments: [true, false])
    func `that is far behind is late, and no problem, while it moves or waits for a long transaction`(moving: Bool) async throws {
        let stage = Stage()
        stage.write(1_000_000)
        try await stage.watched(moving: moving, publishing: !moving) { await stage.look(100) }
        #expect(stage.problem == nil && stage.lines.isEmpty)
    }

    @Test func `is not asked about where the database does not answer`() async throws {
        let stage = Stage()
        stage.write(nil)
        try await stage.watched { await stage.look(100) }
        #expect(stage.problem == nil && stage.lines.isEmpty)
    }
}
