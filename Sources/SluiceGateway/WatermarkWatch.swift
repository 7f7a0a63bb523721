package import Logging
package import SluiceCore
package import SluicePipeline

/// Tells when what is committed does not come through the log: nothing fails then, everybody only waits (G7).
///
/// A watermark that stands still is no stall by itself, as an idle database has nothing to tell. So when it has not moved between two
/// looks, nor come to where the write-ahead log ended at the first, it is waited for as by anybody who waits for a position, which has
/// a mark written; a healthy one is there by the slot's sign of life, so that an idle database stays idle. Sessions are left
/// alone: they go on by themselves.
package struct WatermarkWatch: Sendable {
    /// From one look to the next.
    package static let interval: UInt64 = 2_000_000_000
    /// How long the watermark may stand still while it is waited for.
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
    ///   - pieces: grows while this gateway publishes a transaction that takes long by its length alone.
    ///   - end: the end of the write-ahead log now.
    ///   - cause: what is known to stand in the way.
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
            // A database that does not answer is not asked what is missing; the publisher says that it does not.
            goal = try? await end()
        }
    }

    /// Whether the watermark is still where it was, and does not come to `goal` or move at all when it is waited for.
    private func isStalled(at seen: LSN, before goal: LSN) async throws -> Bool {
        guard goal > seen, await fanout.watermark == seen else { return false }
        let before = pieces()
        do {
            try await fanout.passed(goal, milliseconds: Int(Self.patience / 1_000_000))
            return false
        } catch let error as SluiceError where error.code == .timeout {
            // One that is behind and moves is late, not stuck.
            return await fanout.watermark == seen && pieces() == before
        }
    }

    private func tell(_ watermark: LSN) {
        let seconds = Self.patience / 1_000_000_000
        logger.error(
            "What is committed does not come through the log.",
            metadata: ["code": "\(ErrorCode.timeout.rawValue)", "watermark": "\(watermark)", "seconds": "\(seconds)"])
        readiness.set(
            Self.part,
            SluiceError(
                .timeout, "What is committed does not come through the log: the watermark has stood at \(watermark) for \(seconds) s.",
                fix: "Check that a gateway holds the replication slot and Kafka answers (metrics sluice_publisher, sluice_slot_bytes)."),
            cause: cause())
    }

    private func tellOver(_ watermark: LSN, seconds: UInt64) {
        logger.notice(
            "What is committed comes through the log again.", metadata: ["watermark": "\(watermark)", "seconds": "\(seconds)"])
        readiness.set(Self.part, nil)
    }
}
