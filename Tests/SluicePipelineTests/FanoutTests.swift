import Logging
import SluiceCore
import SluiceWire
import Testing

@testable import SluicePipeline

@Suite struct `A position that a client waits for` {
    private let fanout = Fanout(
        authority: OrderAuthority(), frames: PlainFrames(), environment: SystemEnvironment(),
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    private let channel = KeptMessages()

    private func deliver(_ records: [PendingRecord] = [], upTo lsn: UInt64) async {
        await fanout.deliver(ReleasedBatch(records: records, watermark: LSN(rawValue: lsn), resync: []))
    }

    private var positions: [UInt64] { channel.messages.map(\.commits.lsn) }

    @Test func `is told once, also when none of the commits up to there concern the client`() async {
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

    @Test func `is told after a commit below it that does concern the client`() async {
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

    @Test func `goes over to the view that takes the place of the old one, and is refused after that`() async {
        let old = await fanout.add(channel, view: View(version: 1, types: [], partitions: []), staged: false)
        #expect(await fanout.announce(LSN(rawValue: 300), isCommit: true, to: old))
        let new = await fanout.add(channel, view: OrderAuthority.view, staged: true)
        let snapshot = TransactionSnapshot(xmin: 100, xmax: 100, running: [])
        #expect(await fanout.activate(new, replacing: old, snapshot: snapshot, rows: 0, held: PBHeld()))
        // Whoever asks for it now must ask for the new one: nobody would be told.
        #expect(await !fanout.announce(LSN(rawValue: 400), isCommit: true, to: old))
        await deliver(upTo: 300)
        #expect(channel.messages.count == 2 && channel.messages.last?.commits.lsn == 300)
    }
}
