import Logging
import SluiceCore
import SluicePorts
import SluiceQuery
import SluiceWire
import Synchronization
import Testing

@testable import SluicePipeline

@Suite struct `A bootstrap` {
    private static func fanout(_ time: PassingTime) -> Fanout {
        Fanout(
            authority: OrderAuthority(), frames: PlainFrames(), environment: time,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    private func run(blind: Int) async throws -> (id: Fanout.Handle, taken: Int, milliseconds: Int64) {
        let (time, frames, channel) = (PassingTime(), PlainFrames(), KeptMessages())
        let fanout = Self.fanout(time)
        let record = PendingRecord(position: .zero, xid: 110, bytes: [])
        await fanout.deliver(ReleasedBatch(records: [record], watermark: .zero, resync: []))
        let snapshots = EmptyTables(blind: blind)
        let runner = BootstrapRunner(
            authority: OrderAuthority(), snapshots: snapshots, fanout: fanout, frames: frames, environment: time, channel: channel,
            sealer: NoSealer(),
            client: BootstrapRunner.Client(
                id: .server, user: "ann", progress: BootstrapProgress(), pending: PendingObjects(), taken: { 0 }))
        let (id, held, _) = try await runner.run(OrderAuthority.view, replacing: nil, held: nil)
        #expect(held.point == SnapshotPoint(cluster: "c", transaction: 100))
        #expect(channel.messages.count == 2)
        return (id, snapshots.taken.load(ordering: .relaxed), time.wallMilliseconds())
    }

    /// A number above may have belonged to a transaction that failed.
    @Test(arguments: [(UInt32(99), 100), (98, 99), (97, 98), (5_000, 100), (nil, 100), (.max - 1, 100)] as [(UInt32?, UInt64)])
    func `has no number of its point that a restored database may give out again`(last: UInt32?, number: UInt64) {
        let epoch: UInt64 = last == .max - 1 ? 1 << 32 : 0
        let start = SnapshotStart(
            snapshot: TransactionSnapshot(xmin: epoch + 100, xmax: epoch + 100, running: []), lsn: .zero, cluster: "c",
            witness: last.map { HistoryAnchor(transaction: $0, commitTime: 1) })
        #expect(start.point.transaction == (epoch > 0 ? UInt64(UInt32.max) : number))
        #expect(start.point.witness == start.witness)
    }

    @Test func `takes one snapshot when it sees all that was delivered`() async throws {
        let (_, taken, milliseconds) = try await run(blind: 0)
        #expect(taken == 1 && milliseconds == 0)
    }

    @Test func `waits longer and longer for a commit to become visible`() async throws {
        let (_, taken, milliseconds) = try await run(blind: 20)
        #expect(taken == 21)
        #expect(milliseconds == 1 + 2 + 4 + 8 + 16 + 32 + 64 + 13 * 100)
    }

    @Test func `gives up by name after thirty seconds of snapshots that miss a transaction`() async throws {
        let error = await #expect(throws: SluiceError.self) { try await run(blind: .max) }
        #expect(error?.code == .resync && error?.message.contains("30000 ms") == true, "\(String(describing: error))")
    }

    @Test func `a subscriber that has gone takes nobody with it who has its number now`() async throws {
        let fanout = Self.fanout(PassingTime())
        let view = View(version: 1, types: [], partitions: [])
        let snapshot = TransactionSnapshot(xmin: 100, xmax: 100, running: [])
        func activate(_ handle: Fanout.Handle, replacing old: Fanout.Handle?) async -> Bool {
            await fanout.activate(handle, replacing: old, after: [], snapshot: snapshot, rows: 0, held: PBHeld(), taken: 0)
        }
        let gone = await fanout.add(KeptMessages(), view: view, staged: false)
        await fanout.remove(gone)
        // The one number that is free.
        let later = await fanout.add(KeptMessages(), view: view, staged: true)
        await fanout.remove(gone)
        let other = await fanout.add(KeptMessages(), view: view, staged: true)
        #expect(await activate(other, replacing: gone))
        #expect(await activate(later, replacing: nil))
        #expect(await !activate(gone, replacing: nil))
    }
}
