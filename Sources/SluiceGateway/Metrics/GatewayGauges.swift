import SluiceCore
import SluiceNet
import SluicePipeline
import SluicePostgres

/// What is asked for at each scrape in place of being kept.
struct GatewayGauges: Sendable {
    let metrics: Metrics
    let services: SessionServices
    let sessions: SessionService
    let clients: NetServer
    let pool: PostgresPool
    let slot: String

    func refresh() async {
        await refreshOwn()
        await refreshSlot()
    }

    /// Those that nobody else has to be asked for.
    func refreshOwn() async {
        metrics.number(.sessions).set(Double(sessions.count))
        metrics.number(.outboxBytes).set(Double(sessions.outboxBytes))
        metrics.number(.connections).set(Double(clients.connectionCount))
        metrics.number(.feedBytes).set(Double(await services.feed.bytes))
        let last = await services.fanout.lastCommitTime
        let lag = last == 0 ? 0 : Double(services.environment.wallMilliseconds() * 1_000 - last) / 1e6
        metrics.number(.watermarkLag).set(max(lag, 0))
    }

    /// Nil when there is no slot.
    func slotState() async throws -> SlotState? {
        try await pool.withConnection(within: .seconds(1)) { try await ReplicationSlot.state($0, name: slot) }
    }

    /// Not a number while PostgreSQL does not answer, or there is no slot: an alert on either is better than one on an old value.
    private func refreshSlot() async {
        let state = try? await slotState()
        metrics.number(.slotBytes).set(state.map { Double($0.bytesKept) } ?? .nan)
        metrics.number(.slotBudget).set(
            state.map { SlotBudget.ratio(kept: $0.bytesKept, left: $0.bytesLeft, isLost: $0.isLost) } ?? .nan)
    }
}

/// How much of `max_slot_wal_keep_size` is used.
package enum SlotBudget {
    /// - Parameter left: bytes that may still be written before the slot can be lost; nil when there is no such bound.
    /// - Returns: 1 when the slot is lost or about to be, 0 when there is no bound.
    package static func ratio(kept: Int64, left: Int64?, isLost: Bool) -> Double {
        if isLost { return 1 }
        guard let left else { return 0 }
        let whole = Double(kept) + Double(max(left, 0))
        return whole > 0 ? Double(kept) / whole : 0
    }
}
