import SluiceCore
import SluicePorts
import Testing

@testable import SluicePipeline

private let flights = LogPartition("app.Flight", 3)
private let other = LogPartition("app.Flight", 4)

private func position(_ lsn: UInt64, _ ordinal: UInt32 = 0) -> Position { Position(lsn: LSN(rawValue: lsn), ordinal: ordinal) }

private func progress(_ lsn: UInt64, _ ends: [LogPartition: Int64] = [:], since: UInt64 = 0) -> ProgressRecord {
    ProgressRecord(lsn: LSN(rawValue: lsn), commitTime: 0, grown: ends, since: LSN(rawValue: since))
}

extension FeedState {
    fileprivate mutating func take(_ offset: Int64, _ at: Position, after previous: Position? = nil, bytes: Int = 10) {
        take(flights, offset, at, after: previous, bytes: bytes)
    }

    fileprivate mutating func take(
        _ partition: LogPartition, _ offset: Int64, _ at: Position, after previous: Position? = nil, bytes: Int = 10
    ) {
        record(partition, offset: offset, position: at, previous: previous, xid: 1, bytes: ArraySlice(repeating: 0, count: bytes))
    }
}

@Suite struct `The feed` {
    @Test func `releases nothing before the progress record's offsets are read`() {
        var feed = FeedState()
        feed.assign(flights, from: 0)
        feed.take(0, position(10))
        feed.progress(progress(20, [flights: 2]))
        #expect(feed.release() == nil)
        feed.take(1, position(20), after: position(10))
        let batch = feed.release()
        #expect(batch?.records.map(\.position) == [position(10), position(20)])
        #expect(feed.watermark == LSN(rawValue: 20))
    }

    @Test func `waits for the first record of a partition whose end is not known yet, and not when it is not read after all`() {
        var feed = FeedState()
        feed.expect([flights, other])
        feed.progress(progress(20, [flights: 1]))
        #expect(feed.release() == nil)
        feed.assign(flights, from: 0)
        feed.unexpect([flights, other])
        #expect(feed.release() == nil)
        feed.take(0, position(20))
        #expect(feed.release()?.records.map(\.position) == [position(20)])
        #expect(feed.recent.records(of: [flights], after: .zero)?.map(\.count) == [1])
        feed.progress(progress(30, [other: 1]))
        #expect(feed.release()?.watermark == LSN(rawValue: 30))
    }

    @Test func `orders records of several partitions by position and drops the twin of a moved row`() {
        var feed = FeedState()
        feed.assign(flights, from: 0)
        feed.assign(other, from: 0)
        feed.take(other, 0, position(10, 1))
        feed.take(other, 1, position(30), after: position(10, 1))
        feed.take(flights, 0, position(10, 0))
        feed.take(flights, 1, position(10, 1), after: position(10, 0))
        feed.progress(progress(30, [flights: 2, other: 2]))
        #expect(feed.release()?.records.map(\.position) == [position(10, 0), position(10, 1), position(30)])
    }

    @Test func `resynchronises everything when the slot skipped commits, and only then`() {
        var feed = FeedState()
        feed.assign(flights, from: 0)
        feed.assign(other, from: 5)
        // Where it begins nothing can be missing; a publisher that took over repeats itself.
        for follows in [progress(20, since: 15), progress(18, since: 10), progress(30, since: 12), progress(31, [flights: 1], since: 30)] {
            let isWhole = feed.progress(follows)
            #expect(isWhole, "\(follows)")
            if follows.lsn == LSN(rawValue: 31) { feed.take(0, position(31)) }
            let resync = feed.release()?.resync ?? []
            #expect(resync.isEmpty, "\(follows)")
        }
        let skips = feed.progress(progress(50, [flights: 2], since: 40))
        #expect(!skips)
        let batch = feed.release()
        #expect(batch?.resync == [flights, other] && batch?.watermark == LSN(rawValue: 50))
        let follows = feed.progress(progress(60, since: 50))
        let resync = feed.release()?.resync
        #expect(follows && resync == [])
    }

    @Test func `drops positions that a new publisher repeats`() {
        var feed = FeedState()
        feed.assign(flights, from: 0)
        feed.take(0, position(10))
        feed.take(1, position(20), after: position(10))
        feed.take(2, position(10), after: position(5))
        feed.take(3, position(20), after: position(10))
        feed.take(4, position(30), after: position(20))
        feed.progress(progress(30, [flights: 5]))
        let batch = feed.release()
        #expect(batch?.records.map(\.position) == [position(10), position(20), position(30)])
        #expect(batch?.resync.isEmpty == true)
    }

    @Test func `resynchronises a partition whose chain is broken`() {
        var feed = FeedState()
        feed.assign(flights, from: 0)
        feed.take(0, position(10))
        feed.take(1, position(30), after: position(20))
        feed.progress(progress(30, [flights: 2]))
        #expect(feed.release()?.resync == [flights])
    }

    @Test func `resynchronises a partition whose promised end goes back, and reads on from there`() {
        var feed = FeedState()
        feed.assign(flights, from: 0)
        for offset in 0..<4 as Range<UInt64> {
            feed.take(Int64(offset), position(10 + offset), after: offset == 0 ? nil : position(9 + offset))
        }
        feed.progress(progress(20, [flights: 4]))
        #expect(feed.release()?.records.count == 4 && feed.takeRewound().isEmpty)
        feed.progress(progress(30, [flights: 3]))
        #expect(feed.release()?.resync == [flights])
        #expect(feed.takeRewound() == [flights: 2] && feed.takeRewound().isEmpty)
        // What has the offset of a record that was read before is waited for.
        feed.progress(progress(40, [flights: 4]))
        #expect(feed.release() == nil)
        feed.take(2, position(30), after: position(13))
        feed.take(3, position(40), after: position(30))
        let batch = feed.release()
        #expect(batch?.records.map(\.position) == [position(40)] && batch?.resync == [])
    }

    @Test func `counts nothing as known that is older than a loss`() {
        var feed = FeedState()
        feed.assign(flights, from: 2)
        feed.cut(flights)
        feed.progress(progress(30))
        #expect(feed.release()?.resync == [flights])
        // The record before the end comes late.
        feed.take(1, position(10))
        #expect(feed.recent.records(of: [flights], after: LSN(rawValue: 20)) == nil)
        #expect(feed.recent.records(of: [flights], after: LSN(rawValue: 30)) == [[]])
    }

    @Test func `waits after a gap for records at offsets that it has seen`() {
        var feed = FeedState()
        feed.assign(flights, from: 0)
        feed.take(0, position(10))
        feed.take(1, position(20), after: position(10))
        feed.progress(progress(20, [flights: 2]))
        #expect(feed.release()?.records.count == 2)
        feed.gap(flights)
        feed.progress(progress(25))
        #expect(feed.release()?.resync == [flights])
        feed.progress(progress(30, [flights: 1]))
        #expect(feed.awaited == nil && feed.release()?.resync == [flights])
        feed.progress(progress(40, [flights: 2]))
        #expect(feed.awaited?.lsn == LSN(rawValue: 40) && feed.awaited?.ends == [flights: 2] && feed.release() == nil)
        feed.cut(flights)
        #expect(feed.awaited == nil && feed.release()?.resync == [flights])
    }

    @Test func `takes whatever comes first in a partition assigned in the middle`() {
        var feed = FeedState()
        feed.assign(flights, from: 7)
        feed.take(7, position(30), after: position(20))
        feed.progress(progress(30, [flights: 8]))
        #expect(feed.release()?.resync.isEmpty == true)
    }

    @Test func `does not wait for offsets before the place where a partition was assigned`() {
        var feed = FeedState()
        feed.assign(flights, from: 7)
        feed.progress(progress(30, [flights: 5]))
        #expect(feed.release()?.watermark == LSN(rawValue: 30))
    }

    @Test func `throws away what is over the bound and resynchronises once the watermark has passed it`() {
        var feed = FeedState(bound: 100)
        feed.assign(flights, from: 0)
        for offset in 0..<5 as Range<UInt64> {
            let before = offset == 0 ? nil : position(offset + 9)
            feed.take(flights, Int64(offset), position(offset + 10), after: before, bytes: 30)
        }
        feed.progress(progress(12, [flights: 3]))
        #expect(feed.release()?.resync == [])
        feed.progress(progress(14, [flights: 5]))
        let batch = feed.release()
        #expect(batch?.resync == [flights])
        #expect(batch?.records.isEmpty == true)
        feed.take(flights, 5, position(20), after: position(14), bytes: 30)
        feed.progress(progress(20, [flights: 6]))
        #expect(feed.release()?.records.count == 1)
    }

    @Test func `forgets what waited in a partition that nobody needs any more`() {
        var feed = FeedState(bound: 100)
        feed.assign(flights, from: 0)
        feed.take(0, position(10), bytes: 90)
        feed.unassign(flights)
        feed.assign(other, from: 0)
        feed.take(other, 0, position(11), bytes: 90)
        feed.progress(progress(11, [flights: 1, other: 1]))
        #expect(feed.release()?.records.map(\.position) == [position(11)])
    }

    @Test func `keeps few steps of the watermark, however long a partition is not read, and loses nothing of them`() {
        var feed = FeedState()
        feed.assign(flights, from: 0)
        feed.assign(other, from: 0)
        let steps = UInt64(FeedState.mostProgress) + 1_000
        for step in 1...steps { feed.progress(progress(10 * step, [flights: 1, other: Int64(step)])) }
        feed.take(flights, 0, position(10))
        for step in 1...steps {
            feed.take(other, Int64(step) - 1, position(10 * step, 1), after: step == 1 ? nil : position(10 * (step - 1), 1))
            // Steps beyond the bound became one.
            let reached = step < UInt64(FeedState.mostProgress) || step == steps
            #expect((feed.release()?.watermark == LSN(rawValue: 10 * step)) == reached, "step \(step)")
        }
        #expect(feed.watermark == LSN(rawValue: 10 * steps))
    }

    @Test func `releases with the latest time of the writes up to the watermark, also of steps that became one`() {
        func time(_ milliseconds: Int64) -> HybridTime { HybridTime(milliseconds: milliseconds) }
        var feed = FeedState()
        for (lsn, written) in [(10, 3), (20, 9), (30, 4)] as [(UInt64, Int64)] {
            var record = progress(lsn)
            record.writeTime = time(written)
            feed.progress(record)
        }
        #expect(feed.release()?.writeTime == time(9))
        feed.assign(flights, from: 0)
        let steps = UInt64(FeedState.mostProgress) + 2
        for step in 1...steps {
            var record = progress(30 + step, [flights: 1])
            record.writeTime = time(step == steps - 1 ? 50 : 10)
            feed.progress(record)
        }
        feed.take(0, position(31))
        #expect(feed.release()?.writeTime == time(50))
    }

    @Test func `passes over progress that goes back`() {
        var feed = FeedState()
        feed.progress(progress(30))
        #expect(feed.release()?.watermark == LSN(rawValue: 30))
        feed.progress(progress(20))
        #expect(feed.release() == nil)
    }
}
