package import Logging
package import SluiceCore
package import SluicePipeline

/// Detects a stalled log: commits no longer reach the gateway, but nothing fails.
///
/// A constant watermark alone is no stall, as an idle database commits nothing. The watch waits for a goal, the end of the WAL at the
/// previous check, if the watermark has neither moved nor reached it. The wait requests a WAL heartbeat, as any wait for a position does.
/// On a healthy system the slot's keepalive suffices, and an idle database stays idle. The watch does not disconnect sessions; they
/// continue by themselves.
package struct WatermarkWatch: Sendable {
    /// The time between two checks, in nanoseconds.
    package static let interval: UInt64 = 2_000_000_000
    /// The longest time that the watermark may stand still during the wait, in nanoseconds.
    static let patience: UInt64 = 10_000_000_000
    private static let part = "watermark"

    private let fanout: Fanout
    private let readiness: Readiness
    private let environment: any Environment
    private let logger: Logger
    private let pieces: @Sendable () -> UInt64
    private let end: @Sendable () async throws -> LSN
    private let cause: @Sendable () -> String?

    /// - Parameters:
    ///   - pieces: A counter that grows while this gateway publishes a transaction that is long only by its size.
    ///   - end: The current end of the WAL.
    ///   - cause: The known obstacle, if there is one.
    package init(
        fanout: Fanout, readiness: Readiness, environment: any Environment, logger: Logger, pieces: @escaping @Sendable () -> UInt64,
        end: @escaping @Sendable () async throws -> LSN, cause: @escaping @Sendable () -> String? = { nil }
    ) {
        self.pieces = pieces
        self.fanout = fanout
        self.readiness = readiness
        self.environment = environment
        self.logger = logger
        self.end = end
        self.cause = cause
    }

    package func run() async throws {
        var seen = await fanout.watermark
        var goal: LSN?
        var stalled: UInt64?
        while true {
            try await environment.sleep(nanoseconds: Self.interval)
            let begin = environment.monotonicNanoseconds()
            if let goal, try await isStalled(at: seen, before: goal), stalled == nil {
                stalled = begin
                tell(seen)
            }
            let now = await fanout.watermark
            if let since = stalled, now != seen {
                stalled = nil
                tellOver(now, seconds: (environment.monotonicNanoseconds() - since) / 1_000_000_000)
            }
            seen = now
            // If PostgreSQL does not answer, there is no goal. The publisher reports that state.
            goal = try? await end()
        }
    }

    /// `true` if the watermark neither reaches `goal` nor moves within `patience`.
    private func isStalled(at seen: LSN, before goal: LSN) async throws -> Bool {
        guard goal > seen, await fanout.watermark == seen else { return false }
        let before = pieces()
        do {
            try await fanout.passed(goal, milliseconds: Int(Self.patience / 1_000_000))
            return false
        } catch let error as SluiceError where error.code == .timeout {
            // A watermark that moves is late, not stalled. A growing `pieces` means that a long transaction makes progress.
            return await fanout.watermark == seen && pieces() == before
        }
    }

    private func tell(_ watermark: LSN) {
        let seconds = Self.patience / 1_000_000_000
        logger.error(
            "Commits do not arrive through the log.",
            metadata: ["code": "\(ErrorCode.timeout.rawValue)", "watermark": "\(watermark)", "seconds": "\(seconds)"])
        readiness.set(
            Self.part,
            SluiceError(
                .timeout, "Commits do not arrive through the log: the watermark has been at \(watermark) for \(seconds) s.",
                fix: "Check that a gateway holds the replication slot and Kafka answers (metrics sluice_publisher, sluice_slot_bytes).",
                cause: cause().map { .text($0) }))
    }

    private func tellOver(_ watermark: LSN, seconds: UInt64) {
        logger.notice(
            "Commits arrive through the log again.", metadata: ["watermark": "\(watermark)", "seconds": "\(seconds)"])
        readiness.set(Self.part, nil)
    }
}
