import SluiceCore
import SluiceNet
import SluicePipeline
import SluicePostgres

/// The gauges that are measured at each scrape instead of being maintained.
struct GatewayGauges: Sendable {
    let metrics: Metrics
    let services: SessionServices
    let sessions: SessionService
    let realm: RealmSessionService
    let clients: NetServer
    let pool: PostgresPool
    let slot: String

    func refresh() async {
        await refreshOwn()
        await refreshSlot()
    }

    /// Refreshes the gauges of the gateway itself, without PostgreSQL.
    func refreshOwn() async {
        metrics.number(.sessions).set(Double(sessions.count))
        metrics.number(.outboxBytes).set(Double(sessions.outboxBytes + realm.outboxBytes))
        metrics.number(.connections).set(Double(clients.connectionCount))
        metrics.number(.feedBytes).set(Double(await services.feed.bytes))
        let last = await services.fanout.lastCommitTime
        let lag = last == 0 ? 0 : Double(services.environment.wallMilliseconds() * 1_000 - last) / 1e6
        metrics.number(.watermarkLag).set(max(lag, 0))
    }

    /// Returns the state of the slot; nil if there is no slot. Waits at most 1 s for a connection.
    func slotState() async throws -> SlotState? {
        try await pool.withConnection(within: .seconds(1)) { try await ReplicationSlot.state($0, name: slot) }
    }

    /// Sets NaN if PostgreSQL does not answer or has no slot. An alert on NaN is better than one on an outdated value.
    private func refreshSlot() async {
        let state = try? await slotState()
        metrics.number(.slotBytes).set(state.map { Double($0.bytesKept) } ?? .nan)
        metrics.number(.slotBudget).set(
            state.map { SlotBudget.ratio(kept: $0.bytesKept, left: $0.bytesLeft, isLost: $0.isLost) } ?? .nan)
    }
}

/// The used part of `max_slot_wal_keep_size`.
package enum SlotBudget {
    /// - Parameter left: The bytes that may still be written before the slot can be lost; nil if there is no bound.
    /// - Returns: 1 if the slot is lost or about to be; 0 if there is no bound.
    package static func ratio(kept: Int64, left: Int64?, isLost: Bool) -> Double {
        if isLost { return 1 }
        guard let left else { return 0 }
        let whole = Double(kept) + Double(max(left, 0))
        return whole > 0 ? Double(kept) / whole : 0
    }
}
