import Logging
import Foundation
import SluiceCore
import SluiceMerge
import SluicePorts
import SluiceQuery
import SluiceWire
import Synchronization
import Testing

@testable import SluicePipeline

@Suite struct `What a client is told beside rows` {
    private let fanout = Fanout(
        authority: OrderAuthority(), frames: PlainFrames(), environment: SystemEnvironment(),
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    private let channel = KeptMessages()

    private func deliver(_ records: [PendingRecord] = [], upTo lsn: UInt64) async {
        await fanout.deliver(ReleasedBatch(records: records, watermark: LSN(rawValue: lsn), resync: []))
    }

    private var positions: [UInt64] { channel.messages.map(\.commits.lsn) }

    @Test func `a position that it waits for once, also when none of the commits up to there concern the client`() async {
        let subscriber = await fanout.add(channel, view: View(version: 1, types: [], partitions: []), staged: false)
        #expect(await fanout.announce(LSN(rawValue: 300), isCommit: true, to: subscriber))
        await deliver(upTo: 200)
        #expect(positions == [])
        await deliver(upTo: 300)
        await deliver(upTo: 400)
        #expect(positions == [300])
        #expect(await fanout.announce(LSN(rawValue: 350), isCommit: true, to: subscriber))
        #expect(positions == [300, 400])
    }

    @Test func `a position that it waits for after a commit below it that does concern the client`() async {
        let subscriber = await fanout.add(channel, view: OrderAuthority.view, staged: false)
        #expect(await fanout.announce(LSN(rawValue: 300), isCommit: true, to: subscriber))
        await deliver([OrderAuthority.inserted("a", at: LSN(rawValue: 200))], upTo: 200)
        #expect(positions == [200] && channel.messages.map(\.commits.commits.count) == [1])
        await deliver(upTo: 300)
        #expect(positions == [200, 300])
        // A commit at it, or behind it, says so itself.
        #expect(await fanout.announce(LSN(rawValue: 400), isCommit: true, to: subscriber))
        await deliver([OrderAuthority.inserted("b", at: LSN(rawValue: 400))], upTo: 400)
        await deliver(upTo: 500)
        #expect(positions == [200, 300, 400])
    }

    @Test func `a later position that it still waits for when one that was asked for before it is passed already`() async {
        let subscriber = await fanout.add(channel, view: View(version: 1, types: [], partitions: []), staged: false)
        await deliver(upTo: 200)
        #expect(await fanout.announce(LSN(rawValue: 300), isCommit: false, to: subscriber))
        // Read from the database earlier, and announced later.
        #expect(await fanout.announce(LSN(rawValue: 150), isCommit: false, to: subscriber))
        #expect(positions == [200])
        await deliver(upTo: 300)
        await deliver(upTo: 400)
        #expect(positions == [200, 300])
    }

    @Test func `a position through the view that takes the place of the one it was asked of, which refuses from then on`() async {
        let old = await fanout.add(channel, view: View(version: 1, types: [], partitions: []), staged: false)
        #expect(await fanout.announce(LSN(rawValue: 300), isCommit: true, to: old))
        let new = await fanout.add(channel, view: OrderAuthority.view, staged: true)
        let snapshot = TransactionSnapshot(xmin: 100, xmax: 100, running: [])
        #expect(await fanout.activate(new, replacing: old, after: [], snapshot: snapshot, rows: 0, held: PBHeld(), taken: 0))
        // Whoever asks for it now must ask for the new one: nobody would be told.
        #expect(await !fanout.announce(LSN(rawValue: 400), isCommit: true, to: old))
        await deliver(upTo: 300)
        #expect(channel.messages.count == 2 && channel.messages.last?.commits.lsn == 300)
    }

    @Test func `nothing more when it does not read what it was told`() async {
        let (slow, quick) = (KeptMessages(bufferedBytes: Limits.outboxBytes + 1), KeptMessages(bufferedBytes: Limits.outboxBytes))
        for channel in [slow, quick] { _ = await fanout.add(channel, view: OrderAuthority.view, staged: false) }
        for lsn in [200, 300] as [UInt64] { await deliver([OrderAuthority.inserted("a", at: LSN(rawValue: lsn))], upTo: lsn) }
        #expect(slow.goodbye?.code == .slowClient && slow.messages.count == 1)
        #expect(quick.goodbye == nil && quick.messages.count == 2)
    }

    private let me = ClientID(rawValue: 4)

    @Test func `which commits are its own changesets, and of those of others nothing`() async {
        let other = KeptMessages()
        _ = await fanout.add(channel, view: OrderAuthority.view, staged: false, client: me)
        _ = await fanout.add(other, view: OrderAuthority.view, staged: false, client: ClientID(rawValue: 5))
        let records = [
            OrderAuthority.inserted("a", at: LSN(rawValue: 100)),
            OrderAuthority.inserted("b", at: LSN(rawValue: 200), by: Origin(client: me, changeset: 17)),
            OrderAuthority.inserted("c", at: LSN(rawValue: 300), by: Origin(client: ClientID(rawValue: 6), changeset: 3)),
        ]
        await deliver(records, upTo: 300)
        #expect(channel.messages.flatMap(\.commits.commits).map(\.changeset) == [0, 17, 0])
        #expect(other.messages.flatMap(\.commits.commits).map(\.changeset) == [0, 0, 0])
        await deliver([OrderAuthority.inserted("d", at: LSN(rawValue: 400))], upTo: 400)
        #expect(channel.messages.last?.commits == other.messages.last?.commits)
    }

    @Test(arguments: [(taken: 3, end: 18), (taken: 20, end: 20)]) func `which of its changesets a bootstrap has`(
        taken: UInt64, end: UInt64
    ) async {
        let staged = await fanout.add(channel, view: OrderAuthority.view, staged: true, client: me)
        for (number, client) in [(17, me), (18, me), (30, ClientID(rawValue: 5))] {
            let lsn = LSN(rawValue: UInt64(number))
            await deliver(
                [OrderAuthority.inserted("k", at: lsn, by: Origin(client: client, changeset: UInt64(number)))], upTo: lsn.rawValue)
        }
        let snapshot = TransactionSnapshot(xmin: 100, xmax: 100, running: [])
        #expect(await fanout.activate(staged, replacing: nil, after: [], snapshot: snapshot, rows: 0, held: PBHeld(), taken: taken))
        #expect(channel.messages.last?.bootstrapEnd.changeset == end)
    }

    @Test func `how late the writes are that a bootstrap may have`() async {
        let staged = await fanout.add(channel, view: OrderAuthority.view, staged: true, client: me)
        for (lsn, written) in [(200, 9), (300, 7)] as [(UInt64, Int64)] {
            let time = HybridTime(milliseconds: written)
            await fanout.deliver(ReleasedBatch(records: [], watermark: LSN(rawValue: lsn), resync: [], writeTime: time))
        }
        let snapshot = TransactionSnapshot(xmin: 100, xmax: 100, running: [])
        #expect(await fanout.activate(staged, replacing: nil, after: [], snapshot: snapshot, rows: 0, held: PBHeld(), taken: 0))
        #expect(channel.messages.last?.bootstrapEnd.writeTime == HybridTime(milliseconds: 9).rawValue)
    }

    @Test func `how late the writes can be of a row that comes into its view, and not of new rows or those that it has`() async throws {
        let predicate = try Query.parse("size > 2").predicate(on: OrderAuthority.type, in: Schema([OrderAuthority.type]))
        let view = View(version: 1, types: [TypeView(type: 0, predicate: predicate, mask: nil)], partitions: [])
        _ = await fanout.add(channel, view: view, staged: false)
        let latest = HybridTime(milliseconds: 9)
        for (lsn, before, size) in [(200, nil, 3), (300, 1, 3), (400, 3, 4)] as [(UInt64, Int64?, Int64)] {
            let lsn = LSN(rawValue: lsn)
            let record = OrderAuthority.inserted("\(lsn)", size: size, from: before, at: lsn)
            await fanout.deliver(ReleasedBatch(records: [record], watermark: lsn, resync: [], writeTime: latest))
        }
        #expect(channel.messages.flatMap(\.commits.commits).map(\.writeTime) == [0, latest.rawValue, 0])
    }

    @Test func `which properties changed, if it is in the gateway's process, and nothing of those that it may not read`() async throws {
        let (local, masked) = (LocalMessages(), LocalMessages())
        _ = await fanout.add(channel, view: OrderAuthority.view, staged: false)
        _ = await fanout.add(local, view: OrderAuthority.view, staged: false)
        let type = TypeView(type: 0, predicate: .true(OrderAuthority.type), mask: [true, false])
        _ = await fanout.add(masked, view: View(version: 1, types: [type], partitions: []), staged: false)
        let records = [
            OrderAuthority.inserted("a", at: LSN(rawValue: 100)), OrderAuthority.inserted("b", size: 3, from: 1, at: LSN(rawValue: 200)),
            OrderAuthority.inserted("c", size: 3, from: 3, at: LSN(rawValue: 300)),
        ]
        await deliver(records, upTo: 300)
        #expect(local.changed == [[], [2], []])
        #expect(masked.changed == [[], [], []])
        // The frames of other channels have no such field.
        #expect(channel.messages.flatMap(\.commits.commits).flatMap(\.changes).map(\.changed) == [[], [], []])
    }

    /// The times of both properties but the key, at a millisecond.
    private func times(_ millisecond: Int64, _ numbers: [UInt32] = [1, 2]) -> WriteTimes {
        let clock = PropertyClock(stamp: WriteStamp(time: HybridTime(milliseconds: millisecond), client: ClientID(rawValue: 6)))
        return WriteTimes(properties: Dictionary(uniqueKeysWithValues: numbers.map { ($0, clock) }))
    }

    private func origin(_ millisecond: Int64) -> Origin {
        Origin(client: ClientID(rawValue: 6), changeset: 3, time: HybridTime(milliseconds: millisecond))
    }

    @Test func `when others wrote what it is sent, and nothing of what it may not read`() async throws {
        _ = await fanout.add(channel, view: OrderAuthority.view, staged: false)
        let masked = KeptMessages()
        let type = TypeView(type: 0, predicate: .true(OrderAuthority.type), mask: [true, false])
        _ = await fanout.add(masked, view: View(version: 1, types: [type], partitions: []), staged: false)
        let records = [
            OrderAuthority.inserted("a", at: LSN(rawValue: 100)),
            OrderAuthority.inserted("b", at: LSN(rawValue: 200), by: origin(9), times: times(9)),
            OrderAuthority.inserted("c", at: LSN(rawValue: 300), by: origin(9), times: times(9, [2])),
        ]
        await deliver(records, upTo: 300)
        let commits = channel.messages.flatMap(\.commits.commits)
        #expect(commits.map(\.writeTime) == [0, HybridTime(milliseconds: 9).rawValue, HybridTime(milliseconds: 9).rawValue])
        let sent = try commits.flatMap(\.changes).map { try $0.times.isEmpty ? nil : WriteTimes(encoded: Array($0.times)) }
        #expect(sent == [nil, times(9), times(9, [2])])
        let visible = try masked.messages.flatMap(\.commits.commits).flatMap(\.changes).map {
            try $0.times.isEmpty ? nil : WriteTimes(encoded: Array($0.times))
        }
        #expect(visible == [nil, times(9, [1]), nil])
    }

    @Test func `when others wrote what came during a bootstrap, of the objects that it has named`() async throws {
        let staged = await fanout.add(channel, view: OrderAuthority.view, staged: true, client: me)
        let records = [
            OrderAuthority.inserted("named", at: LSN(rawValue: 100), by: origin(8), times: times(8, [1, 2])),
            OrderAuthority.inserted("named", at: LSN(rawValue: 200), by: origin(9), times: times(9, [2])),
            OrderAuthority.inserted("other", at: LSN(rawValue: 300), by: origin(9), times: times(9)),
        ]
        await deliver(records, upTo: 300)
        var set = PBSubscribe()
        var named = PBPendingObjects()
        (named.type, named.keys) = ("Order", [PBValue(.string("named"))])
        set.pending = [named]
        let pending = try PendingObjects(set)
        let snapshot = TransactionSnapshot(xmin: 1, xmax: 1, running: [])
        #expect(
            await fanout.activate(
                staged, replacing: nil, after: [], snapshot: snapshot, rows: 0, held: PBHeld(), taken: 0, pending: pending))
        let told = channel.messages.flatMap(\.bootstrapRows.times)
        #expect(told.count == 1 && told.first?.primaryKey == PBValue(.string("named")) && told.first?.commitTime == 5_001)
        let sent = try WriteTimes(encoded: Array(told.first?.times ?? Data()))
        #expect(sent == times(8, [1]).followed(by: times(9, [2])))
    }

    @Test func `that it has named too many objects`() {
        var set = PBSubscribe()
        var named = PBPendingObjects()
        named.keys = (0...Limits.pendingObjects).map { PBValue(.int(Int64($0))) }
        set.pending = [named]
        let error = #expect(throws: SluiceError.self) { try PendingObjects(set) }
        #expect(error?.code == .limitsExceeded)
    }
}

/// The end of a reader in the gateway's process.
private final class LocalMessages: SessionChannel {
    private let kept = Mutex<[PBServerMessage]>([])

    var isLocal: Bool { true }
    var bufferedBytes: Int { 0 }
    var isClosed: Bool { false }
    /// The changed properties of each change.
    var changed: [[UInt32]] { kept.withLock { $0.flatMap(\.commits.commits).flatMap(\.changes).map(\.changed) } }

    func send(_ frames: [Frame]) {
        let messages = frames.compactMap { MessageFrames.message(of: $0) }.compactMap {
            try? WireProtocol.decode(PBServerMessage.self, from: $0)
        }
        #expect(messages.count == frames.count)
        kept.withLock { $0 += messages }
    }

    func drained(below bytes: Int) async {}
    func close(_ error: SluiceError?) {}
}
