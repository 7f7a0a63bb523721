package import Logging
package import SluiceCore
import Synchronization

/// Has the log's position move on while somebody waits for it: without a newer commit the position of an idle database would
/// be known only with the replication slot's next sign of life.
///
/// All who wait share one mark, and the next is written when that one has come back, so the marks are never more than the
/// round trips through the log. Where the database refuses them, those who wait get the sign of life.
package final class MarkWriter: Sendable {
    /// After this time a mark that has not come back keeps no other from being written: nobody may hold the slot now.
    static let patience: UInt64 = 1_000_000_000
    /// How long none is written after one was refused.
    static let rest: UInt64 = 60_000_000_000

    fileprivate struct State {
        /// The newest position that somebody waits for.
        var wanted: LSN = .zero
        /// The newest position that was waited for when the mark under way was written, and when that was.
        var underWay: (lsn: LSN, since: UInt64)?
        var restsUntil: UInt64 = 0
    }

    private let marker: any LogMarker
    private let environment: any Environment
    private let logger: Logger
    private let state = Mutex(State())

    package init(_ marker: any LogMarker, environment: any Environment, logger: Logger) {
        self.marker = marker
        self.environment = environment
        self.logger = logger
    }

    /// Somebody waits for the watermark to reach `lsn`, and it has not.
    package func want(_ lsn: LSN) {
        let now = environment.monotonicNanoseconds()
        let isDue = state.withLock { state in
            state.wanted = max(state.wanted, lsn)
            return state.begin(now)
        }
        if isDue { write() }
    }

    /// The watermark has reached `watermark`.
    package func passed(_ watermark: LSN) {
        let now = environment.monotonicNanoseconds()
        let isDue = state.withLock { state in
            if let mark = state.underWay, watermark >= mark.lsn { state.underWay = nil }
            return state.wanted > watermark && state.begin(now)
        }
        if isDue { write() }
    }

    private func write() {
        // Unstructured because: whoever delivers commits does not wait for it; it ends with its statement, which has a deadline.
        Task {
            do {
                try await marker.mark()
            } catch {
                let now = environment.monotonicNanoseconds()
                state.withLock { $0.restsUntil = now + Self.rest }
                logger.info(
                    "A mark could not be written into the log; waits end with the slot's next sign of life.",
                    metadata: ["error": "\(error)"])
            }
        }
    }
}

extension MarkWriter.State {
    /// Whether a mark is to be written now; it is under way then.
    fileprivate mutating func begin(_ now: UInt64) -> Bool {
        guard now >= restsUntil else { return false }
        if let underWay, now < underWay.since + MarkWriter.patience { return false }
        underWay = (wanted, now)
        return true
    }
}
