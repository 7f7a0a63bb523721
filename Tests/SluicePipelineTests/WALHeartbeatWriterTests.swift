import Logging
import SluiceCore
import SluicePorts
import Synchronization
import Testing

@testable import SluicePipeline

@Suite struct `Marks in the log` {
    /// Counts what is written; the first so many are refused.
    private final class Marker: WALHeartbeatSender {
        let (written, note) = AsyncStream<Void>.makeStream()
        let count = Atomic<Int>(0)
        let refused: Int

        init(refused: Int = 0) { self.refused = refused }

        func mark() async throws {
            defer { note.yield() }
            if count.add(1, ordering: .relaxed).newValue <= refused { throw SluiceError(.postgresStatement, "Refused.") }
        }

        var number: Int { count.load(ordering: .relaxed) }
    }

    /// Tells when something has been logged.
    private struct Log: LogHandler {
        let note: AsyncStream<Void>.Continuation
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.info
        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        init(_ note: AsyncStream<Void>.Continuation) { self.note = note }

        func log(event: LogEvent) { note.yield() }
    }

    private let time = PassingTime()
    private let logged = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingOldest(8))

    private func writer(_ marker: Marker) -> WALHeartbeatWriter {
        WALHeartbeatWriter(marker, environment: time, logger: Logger(label: "test") { [logged] _ in Log(logged.continuation) })
    }

    private func lsn(_ number: UInt64) -> LSN { LSN(rawValue: number) }

    @Test func `are one for all who wait, and the next comes when that one has passed`() async {
        let marker = Marker()
        let marks = writer(marker)
        var written = marker.written.makeAsyncIterator()
        for number in 1...1_000 { marks.want(lsn(UInt64(number))) }
        await written.next()
        // The first was written for position 1: what came later needs one more, for all of them.
        marks.passed(lsn(1))
        await written.next()
        marks.passed(lsn(999))
        marks.passed(lsn(1_000))
        #expect(marker.number == 2)
        // Nobody waits any more.
        marks.passed(lsn(2_000))
        marks.want(lsn(2_001))
        await written.next()
        #expect(marker.number == 3)
    }

    @Test func `are written for a commit only if the log does not reach its position by itself`() async {
        let marker = Marker()
        let delays = Delays()
        let marks = WALHeartbeatWriter(marker, environment: delays, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        var written = marker.written.makeAsyncIterator()
        for number in 1...100 { marks.want(commit: lsn(UInt64(number))) }
        // One delay is for all of them.
        #expect(delays.count == 1)
        marks.passed(lsn(100))
        delays.end()
        #expect(marker.number == 0)
        marks.want(commit: lsn(200))
        // The commit itself, which ends before the position that was read behind it.
        marks.passed(lsn(199))
        delays.end()
        await written.next()
        #expect(marker.number == 1)
        marks.passed(lsn(201))
        #expect(delays.count == 0)
    }

    /// An environment whose timers end when a test says so.
    private final class Delays: Environment {
        private let calls = Mutex<[@Sendable () -> Void]>([])

        var count: Int { calls.withLock { $0.count } }

        /// Ends the timers that have begun.
        func end() {
            let due = calls.withLock { calls in
                defer { calls = [] }
                return calls
            }
            for call in due { call() }
        }

        func after(nanoseconds: UInt64, _ body: @escaping @Sendable () -> Void) -> EnvironmentTimer {
            calls.withLock { $0.append(body) }
            return EnvironmentTimer {}
        }

        func wallMilliseconds() -> Int64 { 0 }
        func monotonicNanoseconds() -> UInt64 { 0 }
        func random() -> UInt64 { 0 }
        func sleep(nanoseconds: UInt64) async throws { try Task.checkCancellation() }
    }

    @Test func `are written again for who comes when one was lost`() async {
        let marker = Marker()
        let marks = writer(marker)
        var written = marker.written.makeAsyncIterator()
        marks.want(lsn(1))
        await written.next()
        marks.want(lsn(2))
        time.nanoseconds.add(WALHeartbeatWriter.patience, ordering: .relaxed)
        marks.want(lsn(3))
        await written.next()
        #expect(marker.number == 2)
    }

    @Test func `are not tried again for a while where they are refused`() async {
        let marker = Marker(refused: 1)
        let marks = writer(marker)
        var written = marker.written.makeAsyncIterator()
        marks.want(lsn(1))
        await written.next()
        // What is logged has been noted before.
        var lines = logged.stream.makeAsyncIterator()
        await lines.next()
        marks.passed(lsn(1))
        time.nanoseconds.add(WALHeartbeatWriter.rest / 2, ordering: .relaxed)
        marks.want(lsn(2))
        #expect(marker.number == 1)
        time.nanoseconds.add(WALHeartbeatWriter.rest, ordering: .relaxed)
        marks.want(lsn(3))
        await written.next()
        #expect(marker.number == 2)
    }
}
