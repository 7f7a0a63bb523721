package import SluiceCore

/// Taking snapshots until one sees all transactions that the log has brought (docs/decisions/0003-snapshot-handover.md, step 4).
package enum SnapshotPatience {
    /// Milliseconds in all.
    static let limit = 30_000
    /// Milliseconds between two snapshots: they double from the first to the second. A commit becomes visible when its
    /// backend gets to run again, or when a synchronous standby has answered.
    static let pauses = 1...100

    /// What the first attempt gives that gives something.
    /// - Parameter attempt: nil when its snapshot misses a transaction already delivered.
    /// - Throws: `resync` when the time is over.
    package static func retry<R>(_ environment: any Environment, _ attempt: () async throws -> R?) async throws -> R {
        let deadline = environment.monotonicNanoseconds() + UInt64(limit) * 1_000_000
        var pause = pauses.lowerBound
        while environment.monotonicNanoseconds() < deadline {
            if let result = try await attempt() { return result }
            try await environment.sleep(nanoseconds: UInt64(pause) * 1_000_000)
            pause = min(pause * 2, pauses.upperBound)
        }
        throw SluiceError(
            .resync, "For \(limit) ms no snapshot saw all transactions that the log had brought.",
            fix: "Check that synchronous standbys answer: a commit that waits for one is in the log and not yet visible.")
    }
}
