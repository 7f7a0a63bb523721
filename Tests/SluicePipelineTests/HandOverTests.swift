import SluiceCore
import Testing

@testable import SluicePipeline

@Suite struct `The hand-over from snapshot to stream` {
    private func change(_ xid: UInt32, _ key: Int64, row: [UInt8]? = [1]) -> StagedChanges.Change {
        StagedChanges.Change(transaction: .init(xid: xid), type: 0, key: .int(key), row: row)
    }

    private let snapshot = TransactionSnapshot(xmin: 100, xmax: 110, running: [103])

    @Test func `leaves out what the snapshot sees and keeps the last word on each object`() {
        var staged = StagedChanges()
        staged.append(change(99, 1))
        staged.append(change(103, 2))
        staged.append(change(110, 3))
        staged.append(change(111, 2, row: nil))
        let unseen = staged.unseen(by: snapshot)
        #expect(unseen.map(\.key) == [.int(2), .int(3)])
        #expect(unseen.map { $0.row == nil } == [true, false])
    }

    @Test func `tells a snapshot that misses a delivered transaction`() {
        var delivered = DeliveredTransactions()
        for xid in 90..<103 as Range<UInt32> { delivered.insert(xid) }
        #expect(!delivered.contradict(snapshot, at: delivered.mark))
        delivered.insert(103)
        #expect(delivered.contradict(snapshot, at: delivered.mark))
    }

    @Test func `tells a snapshot taken before a delivered transaction was visible at all`() {
        var delivered = DeliveredTransactions()
        delivered.insert(110)
        #expect(delivered.contradict(snapshot, at: delivered.mark))
    }

    @Test func `knows of what was delivered later that it is staged`() {
        var delivered = DeliveredTransactions()
        delivered.insert(99)
        let mark = delivered.mark
        delivered.insert(103)
        delivered.insert(111)
        #expect(!delivered.contradict(snapshot, at: mark) && delivered.contradict(snapshot, at: delivered.mark))
    }

    @Test func `tells the later of two transactions where their numbers begin again`() {
        var delivered = DeliveredTransactions()
        for xid in [UInt32.max, 5, UInt32.max - 1] { delivered.insert(xid) }
        #expect(delivered.contradict(TransactionSnapshot(xmin: 1 << 32, xmax: 1 << 32 + 5, running: []), at: delivered.mark))
        #expect(!delivered.contradict(TransactionSnapshot(xmin: 1 << 32, xmax: 1 << 32 + 6, running: []), at: delivered.mark))
    }

    @Test func `forgets the oldest transactions at its bound`() {
        var delivered = DeliveredTransactions()
        delivered.insert(103)
        let seen = TransactionSnapshot(xmin: 100, xmax: 1_000_000, running: [103])
        for xid in 1_000..<UInt32(1_000 + DeliveredTransactions.capacity) { delivered.insert(xid) }
        #expect(!delivered.contradict(seen, at: delivered.mark))
    }

    @Test func `starts again when too much was staged`() {
        var staged = StagedChanges()
        let big = [UInt8](repeating: 0, count: Limits.stagedBytes / 2)
        staged.append(change(1, 1, row: big))
        #expect(!staged.hasOverflowed)
        staged.append(change(1, 2, row: big))
        #expect(staged.hasOverflowed)
        #expect(staged.changes.isEmpty)
    }

    @Test func `starts again when a table was emptied that the snapshot still saw full`() {
        var staged = StagedChanges()
        staged.truncated(by: 99)
        #expect(!staged.requiresAnother(than: snapshot))
        staged.truncated(by: 103)
        #expect(staged.requiresAnother(than: snapshot))
    }
}
