import SluiceCore
import SluicePorts
import SluiceWire
import Synchronization
import TestSupport
import Testing

@testable import SluicePipeline

/// From a replication slot into a log, either of which fails at each step; whoever reads the log is asked what became of it.
@Suite(.timeLimit(.minutes(2))) struct `The publisher` {
    @Test func `appends, then promises, then confirms`() async throws {
        let stage = try await PublishingStage([.rows(20, ["a", "b"]), .rows(30, ["c", "d", "e"]), .nothing(40)])
        try await stage.publish()
        #expect(
            stage.story == [
                "append a b", "progress 20", "confirm 20",
                // A transaction that comes in two pieces is promised with the second.
                "append c d", "append e", "progress 30", "confirm 30",
                "progress 40", "confirm 40",
            ])
        try await stage.expectWhole()
    }

    @Test(arguments: 0..<5) func `opens the source again when a table has changed, and leaves nothing out`(reads: Int) async throws {
        let stage = try await PublishingStage([
            .rows(20, ["a", "b"]), .rows(30, ["c", "d", "e"]), .deletions(40, ["a"]), .rows(50, ["f"]),
        ])
        stage.slot.state.withLock { $0.readsToChange = reads }
        try await stage.publish()
        #expect(stage.slot.state.withLock(\.openings) == 2 && stage.paused == 0)
        try await stage.expectWhole()
    }

    @Test func `says with each promise how late the writes of clients are that the database has`() async throws {
        let stage = try await PublishingStage([.rows(20, ["a"])])
        stage.slot.state.withLock { $0.writeTime = HybridTime(milliseconds: 8) }
        try await stage.publish()
        #expect(try await stage.content().progress.map(\.writeTime) == [HybridTime(milliseconds: 8)])
    }

    /// The slot and the log check at each step that nothing is confirmed which the log does not have.
    @Test(
        arguments: PublishingStage.Step.allCases.flatMap { step in
            [true, false].flatMap { isBefore in
                (1...(step == .remember ? 1 : 4)).map { PublishingStage.Fault(step: step, number: $0, isBefore: isBefore) }
            }
        })
    func `confirms nothing that the log does not have, wherever it fails`(fault: PublishingStage.Fault) async throws {
        let stage = try await PublishingStage(
            [.rows(20, ["a", "b"]), .rows(30, ["c", "d", "e"]), .deletions(40, ["a", "x"]), .nothing(50), .rows(60, ["f", "a"])],
            faults: [fault])
        try await stage.publish()
        #expect(stage.hasFailed, "\(fault)")
        try await stage.expectWhole()
    }

    @Test(arguments: [0, 1, 2, 3, 4, 5, 6, 7]) func `goes on where the one before ended, at whatever step that was`(steps: Int) async throws
    {
        let stage = try await PublishingStage([.rows(20, ["a", "b", "c", "d"]), .rows(30, ["e", "f"])])
        try await stage.publish(steps: steps)
        // Another gateway takes the slot, with more to come.
        stage.slot.write([.rows(40, ["a", "b", "c", "d"]), .rows(50, ["e", "f"])])
        try await stage.publish()
        try await stage.expectWhole()
    }

    @Test func `says that something is missing when the slot was made anew, and only then`() async throws {
        let stage = try await PublishingStage([.rows(20, ["a", "b", "c", "d"]), .rows(30, ["e", "f"])])
        try await stage.publish()
        stage.slot.makeAnew(at: 45)
        stage.slot.write([.rows(40, ["g"]), .rows(50, ["h"])])
        try await stage.publish()
        let log = try await stage.content()
        #expect(log.progress.map(\.lsn.rawValue) == [20, 30, 50])
        #expect(log.progress.map(\.since.rawValue) == [10, 20, 45])
        #expect(log.progress.map(\.completeSince.rawValue) == [10, 10, 45])
        let read = log.read()
        #expect(read.isMissing && read.resync == Set(PublishingStage.partitions))
    }

    /// Records that were promised, and that PostgreSQL was told are there, are gone; a publisher that takes over finds the rest.
    @Test(arguments: [1, 2, 100]) func `says that something is missing when partitions are shorter than promised`(count: Int) async throws {
        let log = CutLog()
        let stage = try await PublishingStage([.rows(20, ["a", "b", "c", "d"]), .rows(30, ["a", "b", "c", "d"])], log: log)
        try await stage.publish()
        let partition = try #require(PublishingStage.partitions.first { log.count(of: $0) > 0 })
        log.cut(partition, by: min(count, log.count(of: partition)))
        stage.slot.lose(20...30)
        stage.slot.write([.rows(40, ["a", "b", "c", "d"]), .rows(50, ["e"])])
        try await stage.publish()
        let content = try await stage.content()
        #expect(content.progress.map(\.lsn.rawValue) == [20, 30, 40, 50])
        #expect(content.progress.map(\.completeSince.rawValue) == [10, 10, 40, 40])
        let read = content.read()
        #expect(read.isMissing && read.resync == Set(PublishingStage.partitions))
        // Nor does the chain hide it from a reader that has yet to hear of that.
        let records = content.records[partition] ?? []
        let headers = records.compactMap { ChangeHeaderReader().read($0.bytes[...]) }
        let first = try #require(headers.firstIndex { $0.position.lsn > LSN(rawValue: 30) })
        #expect(headers[first].previous != (first > 0 ? headers[first - 1].position : nil))
    }

    /// The log refuses records for their size, steps fail, and publishers take over from each other.
    @Test(arguments: seeds(60)) func `leaves out records that the log refuses for good, and appends all others once`(
        seed: UInt64
    ) async throws {
        var random = SplitMix64(seed: seed)
        let refused = Set((0..<3).map { _ in "k\(random.below(12))" })
        let faults = (0..<random.below(4)).map { _ in
            PublishingStage.Fault(
                step: random.pick([.append, .progress, .confirm]), number: 1 + random.below(6), isBefore: random.chance(50))
        }
        var end: UInt64 = 20
        func writes() -> [PublishingStage.Write] {
            (0..<(1 + random.below(5))).map { _ in
                defer { end += 10 }
                return .rows(end, (0..<(1 + random.below(6))).map { _ in "k\(random.below(12))" })
            }
        }
        let stage = try await PublishingStage(writes(), faults: faults, refused: refused)
        for _ in 0..<random.below(3) {
            try await stage.publish(steps: random.below(8))
            stage.slot.write(writes())
        }
        try await stage.publish()
        try await stage.expectAllButRefused(seed: seed)
    }

    @Test func `publishes what follows a refused record, and has readers resynchronise also when nothing follows`() async throws {
        let followed = try await PublishingStage([.rows(20, ["a"]), .rows(30, ["large"]), .rows(40, ["large", "b"])], refused: ["large"])
        try await followed.publish()
        #expect(followed.reported == ["large", "large"])
        try await followed.expectAllButRefused(seed: 0)
        let last = try await PublishingStage([.rows(20, ["large"])], refused: ["large"])
        try await last.publish()
        #expect(last.story == ["append ", "progress 20", "confirm 20"])
        try await last.expectAllButRefused(seed: 0)
    }

    /// The log takes the records and its answer is lost, again and again.
    @Test func `appends a batch once and pauses longer each time, while its progress is not announced`() async throws {
        let faults = (1...8).map { PublishingStage.Fault(step: .progress, number: $0, isBefore: true) }
        let stage = try await PublishingStage([.rows(20, ["a", "b"]), .rows(30, ["c"])], faults: faults)
        try await stage.publish()
        #expect(stage.hasFailed)
        #expect(stage.story.count { $0.hasPrefix("append") } == 2, "\(stage.story)")
        #expect(stage.paused >= 100 + 200 + 400 + 800 + 1_600 + 3_200 + 5_000 + 5_000)
        try await stage.expectWhole()
    }

    @Test func `names every partition in its first progress record`() async throws {
        let stage = try await PublishingStage([.rows(20, ["a", "b", "c", "d", "e", "f"]), .rows(30, ["a"])])
        try await stage.publish()
        stage.slot.write([.rows(40, ["a"])])
        try await stage.publish()
        let content = try await stage.content()
        #expect(content.progress.map(\.grown.count) == [content.records.count, 1, content.records.count])
        try await stage.expectWhole()
    }

    @Test func `has deletions remembered before anybody can see them`() async throws {
        let stage = try await PublishingStage([.deletions(20, ["a", "b"])])
        try await stage.publish()
        #expect(stage.story == ["remember a b", "append a b", "progress 20", "confirm 20"])
        let failing = try await PublishingStage(
            [.deletions(20, ["a"])], faults: [PublishingStage.Fault(step: .remember, number: 1, isBefore: true)])
        try await failing.publish()
        #expect(failing.story == ["remember a", "remember a", "append a", "progress 20", "confirm 20"])
    }

    @Test func `ends when the log has what was never in the database, and writes nothing`() async throws {
        let stage = try await PublishingStage([.rows(20, ["a"])])
        try await stage.publish()
        stage.slot.forget()
        stage.slot.write([.rows(30, ["b"])])
        let error = await #expect(throws: SluiceError.self) { try await stage.publisher().run() }
        #expect(error?.code == .logAhead)
        #expect(stage.story == ["append a", "progress 20", "confirm 20"])
    }
}

@Suite struct `What a publisher promises` {
    private static func lsn(_ number: UInt64) -> LSN { LSN(rawValue: number) }

    private static func state(start: UInt64, after before: (lsn: UInt64, completeSince: UInt64)?) -> PublisherState {
        var promise = LogPromise()
        if let before {
            promise.add(
                ProgressRecord(
                    lsn: lsn(before.lsn), commitTime: 3, grown: [:], since: .zero, completeSince: lsn(before.completeSince),
                    witness: HistoryAnchor(transaction: 9, commitTime: 3)))
        }
        return PublisherState(last: [:], start: lsn(start), after: promise)
    }

    /// The log is complete from where it was before when the slot begins at or before what was promised last.
    @Test(
        arguments: [
            (50, nil, 50), (40, (50, 10), 10), (50, (50, 10), 10), (51, (50, 10), 51), (40, (50, 0), 40),
        ] as [(UInt64, (UInt64, UInt64)?, UInt64)])
    func `is complete since where nothing is missing`(start: UInt64, before: (UInt64, UInt64)?, since: UInt64) {
        var state = Self.state(start: start, after: before.map { (lsn: $0.0, completeSince: $0.1) })
        state.passed(Self.lsn(60))
        let first = state.takeProgress()
        #expect(first?.since == Self.lsn(start) && first?.completeSince == Self.lsn(since) && first?.lsn == Self.lsn(60))
        // What it knows of the history goes on with the log.
        #expect(first?.witness?.transaction == (before == nil ? nil : 9))
        state.passed(Self.lsn(70), HistoryAnchor(transaction: 11, commitTime: 8))
        let second = state.takeProgress()
        #expect(second?.since == Self.lsn(60) && second?.completeSince == Self.lsn(since) && second?.lsn == Self.lsn(70))
        #expect(second?.witness?.transaction == 11 && second?.commitTime == 8)
    }

    @Test func `says how late the writes of clients are, those before the slot and of the publisher before too`() {
        func time(_ milliseconds: Int64) -> HybridTime { HybridTime(milliseconds: milliseconds) }
        var promise = LogPromise()
        promise.add(ProgressRecord(lsn: Self.lsn(40), commitTime: 3, grown: [:], since: .zero, writeTime: time(5)))
        for (stored, latest) in [(0, 5), (6, 6)] as [(Int64, Int64)] {
            var state = PublisherState(last: [:], start: Self.lsn(50), after: promise, writeTime: time(stored))
            state.passed(Self.lsn(60))
            #expect(state.takeProgress()?.writeTime == time(latest))
            for (lsn, written) in [(70, 9), (80, 8)] as [(UInt64, Int64)] {
                state.wrote(at: time(written))
                state.passed(Self.lsn(lsn))
                #expect(state.takeProgress()?.writeTime == time(9))
            }
        }
    }

    @Test func `leaves out what is missing of the tables, whatever the log had`() {
        var state = Self.state(start: 40, after: (50, 10))
        state.passed(Self.lsn(60))
        _ = state.takeProgress()
        state.lost(before: Self.lsn(70))
        state.passed(Self.lsn(80))
        let behind = state.takeProgress()
        #expect(behind?.since == Self.lsn(70) && behind?.completeSince == Self.lsn(70) && behind?.lsn == Self.lsn(80))
        // Who publishes next reads the same again, and what was promised stands.
        state.lost(before: Self.lsn(70))
        state.passed(Self.lsn(90))
        let next = state.takeProgress()
        #expect(next?.since == Self.lsn(80) && next?.completeSince == Self.lsn(70))
    }

    @Test func `is nothing when nothing has been reached, and never goes back`() {
        var state = Self.state(start: 10, after: nil)
        #expect(state.takeProgress() == nil)
        state.passed(Self.lsn(20))
        #expect(state.takeProgress()?.lsn == Self.lsn(20))
        state.passed(Self.lsn(15))
        #expect(state.takeProgress() == nil && state.reached == Self.lsn(20))
    }

    @Test func `is what each partition has grown to since the promise before`() {
        var state = Self.state(start: 10, after: nil)
        let (one, two) = (LogPartition("app.Order", 1), LogPartition("app.Order", 2))
        state.appended([one: 5])
        state.appended([one: 4, two: 1])
        state.passed(Self.lsn(20))
        #expect(state.takeProgress()?.grown == [one: 5, two: 1])
        state.appended([two: 2])
        state.passed(Self.lsn(30))
        #expect(state.takeProgress()?.grown == [two: 2])
    }

    @Test func `is complete from the next promise on when an acknowledged record is not behind those before`() {
        var state = Self.state(start: 10, after: nil)
        let one = LogPartition("app.Order", 1)
        #expect(state.appended([one: 5]) == [])
        state.passed(Self.lsn(20))
        #expect(state.takeProgress()?.completeSince == Self.lsn(10))
        #expect(state.appended([one: 5]) == [one])
        state.passed(Self.lsn(30))
        let after = state.takeProgress()
        #expect(after?.since == Self.lsn(30) && after?.completeSince == Self.lsn(30) && after?.grown == [one: 5])
        state.passed(Self.lsn(40))
        #expect(state.takeProgress()?.completeSince == Self.lsn(30))
    }

    @Test func `is broken for its readers also when it says the same again after a loss`() {
        var promise = LogPromise()
        let one = LogPartition("app.Order", 1)
        promise.add(
            ProgressRecord(
                lsn: Self.lsn(50), commitTime: 3, grown: [one: 9], since: Self.lsn(40),
                completeSince: Self.lsn(10)))
        #expect(promise.lost(in: [one: 9]) == [] && promise.lost(in: [one: 8]) == [one])
        var state = PublisherState(
            last: [one: Position(lsn: Self.lsn(45), ordinal: 0)], start: Self.lsn(40), after: promise, ends: [one: 8])
        // No reader has seen this position.
        let slot = state.slot(of: one)
        #expect(state.link(slot, Position(lsn: Self.lsn(47), ordinal: 0)) == Position(lsn: Self.lsn(50), ordinal: .max))
        var reader = FeedState()
        reader.assign(one, from: 9)
        reader.progress(promise.last ?? ProgressRecord(lsn: .zero, commitTime: 0, grown: [:], since: .zero))
        _ = reader.release()
        for (lsn, follows) in [(45, true), (60, false), (70, true)] as [(UInt64, Bool)] {
            state.passed(Self.lsn(lsn))
            let record = state.takeProgress()
            let answer = record.map { reader.progress($0) }
            #expect(answer == follows && record?.completeSince == Self.lsn(51), "\(lsn)")
        }
        #expect(reader.release()?.resync == [one])
    }

    @Test func `links each record of a partition to the one before, from what was there already`() {
        let (one, two) = (LogPartition("app.Order", 1), LogPartition("app.Order", 2))
        func position(_ number: UInt64) -> Position { Position(lsn: Self.lsn(number), ordinal: 0) }
        var state = PublisherState(last: [one: position(7)], start: Self.lsn(10))
        let (first, second) = (state.slot(of: one), state.slot(of: two))
        #expect(state.slot(of: one) == first && first != second)
        #expect(state.link(first, position(11)) == position(7) && state.link(first, position(12)) == position(11))
        #expect(state.link(second, position(13)) == nil && state.link(second, position(14)) == position(13))
    }
}
