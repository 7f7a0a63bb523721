import SluiceCore
import SluicePorts
import Testing

@testable import SluicePipeline

@Suite struct `The wait for a snapshot that sees the log` {
    private static func start(_ begun: Int64, missing commit: Int64?) -> SnapshotStart {
        let snapshot = TransactionSnapshot(xmin: 1, xmax: 1, running: [])
        return SnapshotStart(snapshot: snapshot, lsn: .zero, cluster: "c", begun: begun, missed: commit)
    }

    @Test func `goes on until the commits from before it are seen`() {
        let patience = SnapshotPatience()
        #expect(!patience.accepts(Self.start(100, missing: 90)))
        #expect(!patience.accepts(Self.start(110, missing: 100)))
        #expect(patience.accepts(Self.start(120, missing: nil)))
    }

    /// With a synchronous standby, some commit waits at any time while others write.
    @Test func `ends although each snapshot misses a newer commit`() async throws {
        var time: Int64 = 100
        let taken = try await SnapshotPatience.retry(SystemEnvironment()) { patience in
            let start = Self.start(time, missing: time - 10)
            time += 20
            return patience.accepts(start) ? start : nil
        }
        #expect(taken.begun == 120)
    }
}
