package import Logging
package import SluiceCore
package import SluicePorts
import Synchronization

/// Writes WAL heartbeats while a caller waits for a position.
/// Without a newer commit, an idle database would report its position only with the replication slot's next keepalive.
///
/// All waiters share one heartbeat. The next is written once that one has returned, so the rate is bounded by round trips through the
/// log. If the database refuses heartbeats, waiters rely on the keepalive.
package final class WALHeartbeatWriter: Sendable {
    /// The time after which a missing heartbeat no longer blocks the next, in nanoseconds. No gateway may hold the slot then.
    static let patience: UInt64 = 1_000_000_000
    /// The pause after a refused heartbeat, in nanoseconds.
    static let rest: UInt64 = 60_000_000_000
    /// The time for which the position of a commit is awaited without a heartbeat, in nanoseconds.
    static let delay: UInt64 = 50_000_000

    fileprivate struct State {
        /// The newest awaited position.
        var wanted: LSN = .zero
        /// The newest awaited position when the pending heartbeat was written, and the time of that write in monotonic nanoseconds.
        var underWay: (lsn: LSN, since: UInt64)?
        var restsUntil: UInt64 = 0
        /// The newest awaited position of a commit, and `true` while it is awaited without a heartbeat.
        var committed: LSN = .zero
        var isDelayed = false
        var watermark: LSN = .zero
    }

    private let marker: any WALHeartbeatSender
    private let environment: any Environment
    private let logger: Logger
    private let state = Mutex(State())

    package init(_ marker: any WALHeartbeatSender, environment: any Environment, logger: Logger) {
        self.marker = marker
        self.environment = environment
        self.logger = logger
    }

    /// Requests a heartbeat because a caller waits for the watermark to reach `lsn`.
    package func want(_ lsn: LSN) {
        let now = environment.monotonicNanoseconds()
        let isDue = state.withLock { state in
            state.wanted = max(state.wanted, lsn)
            return state.begin(now)
        }
        if isDue { write() }
    }

    /// Requests a heartbeat unless the watermark reaches `lsn`, the position of a commit, by itself within `delay`.
    ///
    /// The position is read behind the commit. If another write comes between the two, the commit does not reach it.
    package func want(commit lsn: LSN) {
        let isFirst = state.withLock { state in
            state.committed = max(state.committed, lsn)
            defer { state.isDelayed = true }
            return !state.isDelayed
        }
        // The timer is not cancelled: it serves all who come meanwhile.
        if isFirst { _ = environment.after(nanoseconds: Self.delay) { self.endDelay() } }
    }

    private func endDelay() {
        let late = state.withLock { state in
            state.isDelayed = false
            return state.committed > state.watermark ? state.committed : nil
        }
        if let late { want(late) }
    }

    /// Records that the watermark has reached `watermark`, and writes another heartbeat for later positions.
    package func passed(_ watermark: LSN) {
        let now = environment.monotonicNanoseconds()
        let isDue = state.withLock { state in
            state.watermark = max(state.watermark, watermark)
            // The heartbeat has returned, or a commit has overtaken it.
            if let mark = state.underWay, watermark >= mark.lsn { state.underWay = nil }
            return state.wanted > watermark && state.begin(now)
        }
        if isDue { write() }
    }

    private func write() {
        Task {  // Unstructured because: the delivery of commits must not wait for it; it ends with its statement, which has a deadline.
            do {
                try await marker.mark()
            } catch {
                // A database that refuses one refuses the next as well, and the waiters have the keepalive.
                let now = environment.monotonicNanoseconds()
                state.withLock { $0.restsUntil = now + Self.rest }
                logger.info(
                    "A WAL heartbeat could not be written. Barriers wait for the next commit.",
                    metadata: ["error": "\(error)"])
            }
        }
    }
}

extension WALHeartbeatWriter.State {
    /// Returns `true` if a heartbeat is due now, and marks it as pending.
    fileprivate mutating func begin(_ now: UInt64) -> Bool {
        guard now >= restsUntil else { return false }
        // A heartbeat is pending; `passed` writes the next one.
        if let underWay, now < underWay.since + WALHeartbeatWriter.patience { return false }
        underWay = (wanted, now)
        return true
    }
}
