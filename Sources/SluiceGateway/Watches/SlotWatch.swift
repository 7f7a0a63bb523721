package import Logging
import SluiceCore
package import SluicePostgres

/// Warns before PostgreSQL drops the replication slot because it is read too slowly.
///
/// It logs at half of `max_slot_wal_keep_size` and at each further tenth. Every gateway checks once a minute, including those that do not
/// publish.
package struct SlotWatch: Sendable {
    private static let interval: UInt64 = 60_000_000_000

    private let pool: PostgresPool
    private let slot: String
    private let logger: Logger

    package init(pool: PostgresPool, slot: String, logger: Logger) {
        self.pool = pool
        self.slot = slot
        self.logger = logger
    }

    func run(_ environment: any Environment) async throws {
        var alarm = SlotAlarm()
        while !Task.isCancelled {
            await look(&alarm)
            try await environment.sleep(nanoseconds: Self.interval)
        }
    }

    package func look(_ alarm: inout SlotAlarm) async {
        // The publisher reports an unreachable server or a missing slot.
        guard let state = try? await pool.withConnection({ try await ReplicationSlot.state($0, name: slot) }) else { return }
        let ratio = SlotBudget.ratio(kept: state.bytesKept, left: state.bytesLeft, isLost: state.isLost)
        let metadata: Logger.Metadata = [
            "slot": "\(slot)", "percent": "\(Int(ratio * 100))", "kept_bytes": "\(state.bytesKept)",
            "left_bytes": "\(max(state.bytesLeft ?? 0, 0))", "active": "\(state.isActive)",
        ]
        switch alarm.take(ratio) {
        case .warn: logger.warning("The replication slot retains most of the WAL that it may retain.", metadata: metadata)
        case .over: logger.notice("The replication slot retains little WAL again.", metadata: metadata)
        case nil: break
        }
    }
}

/// Decides which ratios are logged. Pure.
package struct SlotAlarm: Sendable {
    package enum Line: Sendable { case warn, over }

    /// The thresholds, in tenths: the warning starts at `half` and ends below `calm`. The gap avoids a line each minute around one half.
    private static let (half, calm) = (5, 4)
    /// The highest tenth that was logged; nil if there is no warning.
    private var told: Int?

    package init() {}

    package mutating func take(_ ratio: Double) -> Line? {
        // Guards against rounding: a ratio of exactly one tenth may be slightly less in binary.
        let tenths = Int(ratio * 10 + 1e-9)
        if tenths >= Self.half, tenths > told ?? 0 {
            told = tenths
            return .warn
        }
        guard told != nil, tenths < Self.calm else { return nil }
        told = nil
        return .over
    }
}
