import SluiceCore
import SluicePorts
import TestSupport
import Testing

@Suite struct `What passes between the gateway and its ports` {
    @Test func `keeps messages unencoded in frames of this process`() {
        let frame = MessageFrames().frame([1, 2, 3])
        #expect(frame.byteCount == 3 && MessageFrames.message(of: frame) == [1, 2, 3])
        #expect(MessageFrames.message(of: Frame(storage: Watched(0), byteCount: 3)) == nil)
    }

    @Test func `has no secrets without a sealer`() {
        #expect(NoSealer().seal([1], context: []).isEmpty && NoSealer().open([1], context: []) == nil)
    }

    /// A client is told of an ingest number only once nothing at or before it may have been missed.
    @Test(arguments: [(nil, 9, 9), (4, 9, 3), (9, 9, 8), (12, 9, 9), (1, 9, 0)] as [(UInt64?, UInt64, UInt64)])
    func `acknowledges ingest up to the first refusal`(refused: UInt64?, ingest: UInt64, told: UInt64) {
        let file = ClientFile(
            id: .server, secret: [], changeset: 0, ingest: ingest, refusedIngest: refused, session: 1, proven: ProvenHistory())
        #expect(file.toldIngest == told)
    }

    @Test func `is counted by its bytes in the stream of a file`() {
        let plain = RealmStreamEntry(serverVersion: 1, clientVersion: 1, timestamp: 0, origin: 0, changeset: [1, 2, 3], created: 0)
        #expect(plain.cost == 64 + 3)
        var compensating = plain
        compensating.compensation = RealmCompensation(
            serverVersion: 1, clientVersion: 1, rejected: [RealmRejectedUpdate(reason: "né", table: "T", key: [1, 2])])
        let (reason, table, key) = (3, 1, 2)
        #expect(compensating.cost == plain.cost + reason + table + key)
    }

    @Test func `is empty after a batch of changes is removed`() {
        var batch = CaptureBatch()
        #expect(batch.isEmpty)
        batch.schemas = ["v2"]
        batch.gap = LSN(rawValue: 5)
        #expect(!batch.isEmpty)
        batch.removeAll()
        #expect(batch.isEmpty && batch.gap == .zero)
    }
}
