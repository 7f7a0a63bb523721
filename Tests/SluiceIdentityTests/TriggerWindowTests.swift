import SluiceCore
import SluiceIdentity
import SluicePorts
import SluiceValues
import TestSupport
import Testing

@Suite struct `The window of a database trigger` {
    private static func position(_ number: Int64) -> Position { Position(lsn: LSN(rawValue: UInt64(number) * 10), ordinal: 0) }
    private static let cursor = TriggerCursor(position: position(0), offset: 0, turn: 1)
    private static func call(_ offset: Int64) -> FunctionCall { FunctionCall("f", arguments: [.int(offset)], caller: .system) }

    /// The record at an offset, which follows the one before.
    private static func place(_ offset: Int64) -> TriggerWindow.Place {
        TriggerWindow.Place(offset: offset, position: position(offset + 1), previous: offset == 0 ? nil : position(offset))
    }

    private static func window(_ keys: [String], isUnordered: Bool = false) -> TriggerWindow {
        var window = TriggerWindow(cursor, isUnordered: isUnordered)
        for (offset, key) in keys.enumerated() {
            window.add(place(Int64(offset)), key: key, call: call(Int64(offset)), byteCount: 100)
        }
        return window
    }

    @Test func `calls for one object after another, and for several objects at a time`() {
        var window = Self.window(["a", "b", "a", "c", "b"])
        #expect(window.start(2, now: 0).map(\.offset) == [0, 1])
        #expect(window.start(9, now: 0).map(\.offset) == [3])
        window.finish(1)
        #expect(window.start(9, now: 0).map(\.offset) == [4] && window.isCalling)
        #expect(window.cursor.offset == 0)
        window.finish(0)
        #expect(window.cursor.offset == 2 && window.cursor.position == Self.position(2))
        var free = Self.window(["a", "a", "a"], isUnordered: true)
        #expect(free.start(2, now: 0).map(\.offset) == [0, 1] && free.start(2, now: 0).map(\.offset) == [2])
    }

    @Test func `lets a failed call wait, and later ones of its object`() {
        var window = Self.window(["a", "a", "b"])
        _ = window.start(9, now: 0)
        window.postpone(0, failed: 1, until: 50)
        window.finish(2)
        #expect(window.start(9, now: 49).isEmpty && window.cursor.offset == 0 && !window.isCalling)
        let again = window.start(9, now: 50)
        #expect(again.map(\.offset) == [0] && again.first?.failed == 1)
        window.finish(0)
        #expect(window.start(9, now: 50).map(\.offset) == [1])
    }

    @Test func `moves at once over records without a call`() {
        var window = TriggerWindow(Self.cursor)
        for offset in 0..<5 as Range<Int64> { window.add(Self.place(offset), key: "a", call: nil, byteCount: 100) }
        #expect(window.cursor.offset == 5 && window.cursor.position == Self.position(5) && !window.isFull)
    }

    @Test func `is full at its bounds, and takes one large record`() {
        var window = TriggerWindow(Self.cursor)
        window.add(Self.place(0), key: "a", call: Self.call(0), byteCount: 2 << 20)
        #expect(window.isFull && !window.hasRoom)
        _ = window.start(1, now: 0)
        window.finish(0)
        #expect(!window.isFull && window.hasRoom && window.nextOffset == 1)
        for offset in 1...Int64(TriggerWindow.bound.records) {
            #expect(!window.isFull)
            window.add(Self.place(offset), key: "a", call: Self.call(offset), byteCount: 1)
        }
        #expect(window.isFull && window.nextOffset == Int64(TriggerWindow.bound.records) + 1)
    }

    @Test func `knows repeated records, and sees missing ones`() {
        var window = TriggerWindow(TriggerCursor(position: Self.position(3), offset: 3, turn: 1))
        #expect(window.verdict(on: Self.place(1)) == .known && window.verdict(on: Self.place(2)) == .known)
        #expect(window.verdict(on: Self.place(3)) == .next)
        #expect(window.verdict(on: Self.place(4)) == .gap(after: Self.position(3)))
        window.add(Self.place(3), key: "a", call: Self.call(3), byteCount: 1)
        #expect(window.verdict(on: Self.place(3)) == .known && window.verdict(on: Self.place(4)) == .next)
        // The first record since there is a replication slot.
        #expect(window.verdict(on: .init(offset: 9, position: Self.position(9), previous: nil)) == .next)
    }

    @Test func `takes the second record of a row that moves within its partition`() {
        var window = TriggerWindow(Self.cursor)
        let moved = Self.position(1)
        window.add(.init(offset: 0, position: moved, previous: nil), key: "a", call: nil, byteCount: 1)
        let second = TriggerWindow.Place(offset: 1, position: moved, previous: moved, isArrival: true)
        #expect(window.verdict(on: second) == .next)
        // After a restart between the two.
        #expect(TriggerWindow(window.cursor).verdict(on: second) == .next)
    }

    @Test(arguments: seeds(50))
    func `never passes an unfinished call, nor swaps two of an object`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var window = TriggerWindow(Self.cursor)
        var (read, now): (Int64, UInt64) = (0, 0)
        var keys: [Int64: String] = [:]
        var running: [TriggerWindow.Job] = []
        var done: Set<Int64> = []
        var started: [String: Int64] = [:]
        while done.count < 300 {
            now += 1
            if read < 300, !window.isFull {
                let key = "\(random.below(7))"
                keys[read] = key
                let isCalled = !random.chance(30)
                if !isCalled { done.insert(read) }
                window.add(Self.place(read), key: key, call: isCalled ? Self.call(read) : nil, byteCount: 10)
                read += 1
            }
            for job in window.start(Int(random.below(4)), now: now) {
                let key = keys[job.offset] ?? ""
                #expect(!running.contains { keys[$0.offset] == key })
                #expect(started[key] ?? -1 <= job.offset)
                started[key] = job.offset
                running.append(job)
            }
            if let job = running.indices.randomElement(using: &random).map({ running.remove(at: $0) }) {
                if random.chance(25) {
                    window.postpone(job.offset, failed: job.failed + 1, until: now + 3)
                } else {
                    window.finish(job.offset)
                    done.insert(job.offset)
                }
            }
            #expect((0..<window.cursor.offset).allSatisfy(done.contains))
        }
        #expect(window.cursor.offset == 300 && !window.isCalling)
    }
}
