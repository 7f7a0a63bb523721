package import SluiceCore
package import SluicePorts
import Synchronization

/// Retries snapshots until one sees every transaction that the log has delivered: docs/decisions/0003-snapshot-handover.md, step 4.
package final class SnapshotPatience: Sendable {
    /// The total time, in milliseconds.
    static let limit = 30_000
    /// The pause between two snapshots, in milliseconds; it doubles from the lower to the upper bound.
    /// A commit becomes visible once its backend is scheduled again, or once a synchronous standby has answered.
    static let pauses = 1...100

    /// The beginning of the first snapshot, in microseconds since 1970.
    private let first = Mutex<Int64?>(nil)

    package init() {}

    /// Returns `true` if a snapshot sees all commits that were in the WAL when the first one was taken.
    ///
    /// Later commits do not matter, as the log brings them after the rows. While others write, with a synchronous standby, each snapshot
    /// misses some.
    package func accepts(_ start: SnapshotStart) -> Bool {
        first.withLock { first in
            let since = first ?? start.begun
            first = since
            return start.missed.map { $0 > since } ?? true
        }
    }

    /// Returns the result of the first successful attempt.
    /// - Parameter attempt: Returns nil if its snapshot misses a delivered transaction, or is not accepted.
    /// - Throws: `resync` after `limit`.
    package static func retry<R>(_ environment: any Environment, _ attempt: (SnapshotPatience) async throws -> R?) async throws -> R {
        let patience = SnapshotPatience()
        let deadline = environment.monotonicNanoseconds() + UInt64(limit) * 1_000_000
        var pause = pauses.lowerBound
        while environment.monotonicNanoseconds() < deadline {
            if let result = try await attempt(patience) { return result }
            try await environment.sleep(nanoseconds: UInt64(pause) * 1_000_000)
            pause = min(pause * 2, pauses.upperBound)
        }
        throw SluiceError(
            .resync, "For \(limit) ms no snapshot saw all transactions that the log had delivered.",
            fix: "Check that synchronous standbys answer: a commit that waits for one is in the log and not yet visible.")
    }
}
