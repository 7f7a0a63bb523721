import Logging
import SluiceCore
import Synchronization
import Testing

@testable import SluicePipeline

@Suite struct `Marks in the log` {
    private final class Time: Environment {
        let nanoseconds = Atomic<UInt64>(0)
        func wallMilliseconds() -> Int64 { Int64(monotonicNanoseconds() / 1_000_000) }
        func monotonicNanoseconds() -> UInt64 { nanoseconds.load(ordering: .relaxed) }
        func random() -> UInt64 { 4 }
        func sleep(nanoseconds duration: UInt64) async throws { nanoseconds.add(duration, ordering: .relaxed) }
    }

    /// Counts what is written; the first so many are refused.
    private final class Marker: LogMarker {
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

    private let time = Time()

    private func writer(_ marker: Marker) -> MarkWriter {
        MarkWriter(marker, environment: time, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
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

    @Test func `are written again for who comes when one was lost`() async {
        let marker = Marker()
        let marks = writer(marker)
        var written = marker.written.makeAsyncIterator()
        marks.want(lsn(1))
        await written.next()
        marks.want(lsn(2))
        time.nanoseconds.add(MarkWriter.patience, ordering: .relaxed)
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
        // The refusal is noted behind the event.
        while !marks.isResting { await Task.yield() }
        marks.passed(lsn(1))
        time.nanoseconds.add(MarkWriter.rest / 2, ordering: .relaxed)
        marks.want(lsn(2))
        #expect(marker.number == 1)
        time.nanoseconds.add(MarkWriter.rest, ordering: .relaxed)
        marks.want(lsn(3))
        await written.next()
        #expect(marker.number == 2)
    }
}
