import SluiceCore
import SluicePorts
import SluiceWire
import TestSupport
import Testing

@testable import SluicePipeline

/// What the feed has in memory for clients that come back, against a table that is simply changed.
@Suite struct `What was handed on last` {
    /// The feed's state machine, and what has been read into it of the table's records.
    private struct Play {
        var table = LoggedTable()
        var feed: FeedState
        /// Of each partition: where its records lie among the table's, and how many were read.
        var places: [[Int]] = Array(repeating: [], count: Int(LoggedTable.partitions))
        var read: [Int?] = Array(repeating: nil, count: Int(LoggedTable.partitions))
        private var sorted = 0
        private let headers = ChangeHeaderReader()

        init(recent: Int) { feed = FeedState(recent: recent) }

        mutating func write(_ random: inout SplitMix64) {
            table.write(&random)
            while sorted < table.records.count {
                places[Int(table.records[sorted].partition)].append(sorted)
                sorted += 1
            }
        }

        mutating func assign(_ partition: Int, withRecordBefore: Bool) {
            let end = places[partition].count
            feed.assign(LoggedTable.all[partition], from: Int64(end))
            read[partition] = withRecordBefore ? max(0, end - 1) : end
        }

        mutating func unassign(_ partition: Int) {
            feed.unassign(LoggedTable.all[partition])
            read[partition] = nil
        }

        /// Reads all that there is; the watermark follows.
        mutating func catchUp(losing lost: Int? = nil) throws {
            for partition in read.indices {
                while let offset = read[partition], offset < places[partition].count {
                    read[partition] = offset + 1
                    if partition == lost, offset + 1 < places[partition].count { continue }
                    let bytes = table.records[places[partition][offset]].bytes[...]
                    let header = try #require(headers.read(bytes))
                    feed.record(
                        LoggedTable.all[partition], offset: Int64(offset), position: header.position, previous: header.previous,
                        xid: header.xid, bytes: bytes)
                }
            }
            let grown = Dictionary(uniqueKeysWithValues: zip(LoggedTable.all, places.map { Int64($0.count) }))
            feed.progress(ProgressRecord(lsn: LSN(rawValue: table.lsn), commitTime: 0, grown: grown, since: feed.watermark))
            while feed.release() != nil {}
        }
    }

    @Test(arguments: seeds(100)) func `brings a client from a position to the watermark, or is not all there`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var play = Play(recent: random.pick([1 << 12, 1 << 14, 1 << 20]))
        let isLossy = random.chance(20)
        for _ in 0...random.below(60) { play.write(&random) }
        var told = 0
        for _ in 0..<120 {
            switch random.below(8) {
            case 0:
                let partition = random.below(play.read.count)
                if play.read[partition] == nil { play.assign(partition, withRecordBefore: random.chance(80)) }
            case 1: if random.chance(20) { play.unassign(random.below(play.read.count)) }
            case 2: try play.catchUp(losing: isLossy && random.chance(30) ? random.below(play.read.count) : nil)
            default: play.write(&random)
            }
            try play.catchUp()
            let partitions = random.chance(30) ? LoggedTable.all : Array(LoggedTable.all.shuffled(using: &random).prefix(1))
            let view = try LoggedTable.view("size != 3", partitions)
            // A view of some partitions is of their stores.
            let stores = Set(partitions.map { Int64($0.partition) })
            func shown(_ rows: LoggedTable.Rows) -> LoggedTable.Rows {
                LoggedTable.shown(rows, view).filter { stores.contains($0.value[0] % Int64(LoggedTable.partitions)) }
            }
            let state = random.pick(play.table.states.suffix(40))
            guard let recent = play.feed.recent.records(of: partitions, after: state.lsn) else { continue }
            let reader = LogTailReader(view: view, schema: LoggedTable.schema, client: .server, after: state.lsn)
            let tail = try #require(reader.read(recent))
            // What left the partitions is not the view's: its condition would say so.
            let rows = try LoggedTable.told(tail, shown(state.rows)).filter { stores.contains($0.value[0] % Int64(LoggedTable.partitions)) }
            #expect(rows == shown(play.table.rows), "seed \(seed) after \(state.lsn)")
            told += 1
        }
        #expect(told > 0 || isLossy || play.read.allSatisfy { $0 == nil }, "seed \(seed)")
    }

    @Test func `takes no more memory than it may, and lets go of what is not read any more`() {
        var recent = RecentRecords(bound: 1_000)
        let (one, two) = (LoggedTable.all[0], LoggedTable.all[1])
        func record(_ lsn: UInt64) -> PendingRecord {
            PendingRecord(
                position: Position(lsn: LSN(rawValue: lsn), ordinal: 0), xid: 1, bytes: ArraySlice(repeating: 0, count: 100))
        }
        func lsns(_ partitions: [LogPartition], after lsn: UInt64) -> [[UInt64]]? {
            recent.records(of: partitions, after: LSN(rawValue: lsn))?.map { $0.map(\.position.lsn.rawValue) }
        }
        recent.begin(one, at: .zero)
        recent.begin(two, at: LSN(rawValue: 5))
        for lsn in 1...8 as ClosedRange<UInt64> { recent.add(one, [record(lsn)]) }
        recent.add(two, [record(9), record(10)])
        #expect(lsns([one, two], after: 5) == [[6, 7, 8], [9, 10]] && lsns([two], after: 4) == nil)
        recent.add(two, [record(11), record(12)])
        #expect(lsns([one], after: 1) == nil && lsns([one], after: 2) == [[3, 4, 5, 6, 7, 8]])
        #expect(lsns([two], after: 11) == [[12]])
        recent.end(one)
        #expect(lsns([one], after: 8) == nil && lsns([one, two], after: 8) == nil)
        // The room is the other's now.
        for lsn in 13...18 as ClosedRange<UInt64> { recent.add(two, [record(lsn)]) }
        #expect(lsns([two], after: 5)?.joined().count == 10)
        recent.add(two, [record(19)])
        #expect(lsns([two], after: 9) == nil && lsns([two], after: 10)?.joined().count == 9)
    }

    /// With a window or a backlog of 100,000 records, what copies it for each step takes minutes.
    @Test(.timeLimit(.minutes(1))) func `cost what comes and goes, not what is there`() {
        let bytes = ArraySlice<UInt8>(repeating: 0, count: 100)
        let (partition, progress) = (LoggedTable.all[0], LoggedTable.all[1])
        func position(_ number: Int) -> Position { Position(lsn: LSN(rawValue: UInt64(number + 1)), ordinal: 0) }
        var feed = FeedState(recent: 100_000 * 100)
        feed.assign(partition, from: 0)
        feed.assign(progress, from: 0)
        for number in 0..<100_000 {
            let previous = number > 0 ? position(number - 1) : nil
            feed.record(partition, offset: Int64(number), position: position(number), previous: previous, xid: 1, bytes: bytes)
        }
        for number in 0..<200_000 {
            if number >= 100_000 {
                feed.record(
                    partition, offset: Int64(number), position: position(number), previous: position(number - 1), xid: 1, bytes: bytes)
            }
            let before = number > 0 ? position(number - 1).lsn : .zero
            feed.progress(ProgressRecord(lsn: position(number).lsn, commitTime: 0, grown: [partition: Int64(number + 1)], since: before))
            #expect(feed.release()?.records.count == 1)
        }
        #expect(feed.waitingBytes == 0 && feed.recent.steps == 100_000)
    }

    /// Its room would be allocated anew for each fetch of which a record is kept, and grow by what the allocator rounds up to.
    @Test func `take no more room than what was fetched with them`() {
        var fetch = LogFetch()
        var kept: [ArraySlice<UInt8>] = []
        for bytes in [200_000] + Array(repeating: 300, count: 1_000) {
            fetch.removeAll()
            fetch.arena.append(contentsOf: repeatElement(1, count: bytes))
            #expect(fetch.arena.capacity <= 2 * bytes + 64)
            kept.append(fetch.arena[0..<bytes])
        }
        #expect(kept.count == 1_001)
    }

    @Test func `are as if they had never been when their partitions come and go`() {
        var recent = RecentRecords(bound: 1 << 20)
        for number in UInt64(1)...10_000 {
            let partition = LogPartition("app.Order", Int32(number % 3))
            recent.begin(partition, at: .zero)
            let record = PendingRecord(position: Position(lsn: LSN(rawValue: number), ordinal: 0), xid: 1, bytes: [1, 2, 3])
            recent.add(partition, [record])
            #expect(recent.steps <= 3)
            if number % 2 == 0 { recent.end(partition) }
        }
    }
}
