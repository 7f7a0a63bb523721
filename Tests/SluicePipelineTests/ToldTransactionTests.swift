import SluiceCore
import SluicePorts
import SluiceWire
import SwiftProtobuf
import Testing

@testable import SluicePipeline

/// A client tells which transaction its file's last bootstrap had seen, and may tell anything.
@Suite struct `A transaction that a client tells` {
    private static func start(_ transaction: UInt64) -> SnapshotStart {
        SnapshotStart(snapshot: TransactionSnapshot(xmin: transaction, xmax: transaction, running: []), lsn: .zero, cluster: "c")
    }

    @Test(
        arguments: [
            (5, 5, true), (5, 4, true), (5, 5 + 1 << 30, false), (5, 4 + 1 << 30, true), (.max, 5, true), (.max - 1, .max, true),
            (0, .max, false),
        ] as [(UInt64, UInt64, Bool)])
    func `is compared with one that is near, wherever it lies`(told: UInt64, now: UInt64, isNear: Bool) {
        #expect(SnapshotPoint(cluster: "c", transaction: told).isComparable(at: Self.start(now)) == isNear)
    }

    @Test func `of a row that came round says nothing`() {
        var seen = ClientViewHistory()
        seen.add(SnapshotPoint(cluster: "c", transaction: .max), at: LSN(rawValue: 1))
        seen.add(SnapshotPoint(cluster: "c", transaction: 5), at: LSN(rawValue: 2))
        #expect(seen.includes(.max - 5, at: LSN(rawValue: 1)))
        #expect(!seen.includes(7, at: LSN(rawValue: 2)))
    }

    /// No database gives out such a number.
    @Test func `beyond 63 bits counts as nothing told`() {
        let held = PBHeld.with {
            $0.cluster = "c"
            $0.lsn = 7
            $0.transaction = 1 << 63
        }
        var seen = ClientViewHistory(held)
        seen.add(SnapshotPoint(cluster: "c", transaction: 1 << 63), at: LSN(rawValue: 9))
        #expect(!seen.includes(7, at: LSN(rawValue: 8)))
        #expect(ClientViewRecord(held, user: "ann", NoSealer(), Schema([])) == nil)
    }

    @Test func `of any size opens a session`() async throws {
        for number in [UInt64(1) << 63 - 1, 1 << 63, .max] {
            let channel = KeptMessages()
            let session = Session(services: SessionFixture.services(), channel: channel)
            let hello = PBHello.with {
                $0.protocol = WireProtocol.version
                $0.accessToken = "ann"
                $0.client = 7
                $0.schema = [.with { $0.name = "Order" }]
                $0.held = .with {
                    $0.cluster = "c"
                    $0.lsn = 7
                    $0.transaction = number
                }
                $0.checkpoint = .with {
                    $0.cluster = "c"
                    $0.types = [
                        .with {
                            $0.name = "Order"
                            $0.transaction = number
                        }
                    ]
                }
            }
            await session.handle(try WireProtocol.encode(PBClientMessage(.hello(hello))))
            #expect(channel.messages.count == 1)
        }
    }
}
