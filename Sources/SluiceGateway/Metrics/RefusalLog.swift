import Logging
import SluiceCore
import SluiceNet
import Synchronization

/// Logs rejections of the client port that clients do not see: connections closed before their first request.
///
/// A line covers all rejections since the line before. There is at most one line per minute, so that an attack cannot fill the log.
final class RefusalLog: Sendable {
    private struct State {
        var counts: [NetRefusal: Int] = [:]
        /// The time of the last line, in monotonic nanoseconds; nil before the first.
        var logged: UInt64?
    }

    private static let interval: UInt64 = 60_000_000_000

    private let logger: Logger
    private let environment: any Environment
    private let state = Mutex(State())

    init(logger: Logger, environment: any Environment) {
        self.logger = logger
        self.environment = environment
    }

    /// Counts a rejection, and logs all counts if the interval has passed.
    func note(_ reason: NetRefusal) {
        let now = environment.monotonicNanoseconds()
        let counts = state.withLock { state -> [NetRefusal: Int]? in
            state.counts[reason, default: 0] += 1
            if let logged = state.logged, now - min(now, logged) < Self.interval { return nil }
            state.logged = now
            defer { state.counts = [:] }
            return state.counts
        }
        guard let counts else { return }
        let total = counts.values.reduce(0, +)
        let reasons = counts.map { "\($0.key.rawValue) \($0.value)" }.sorted().joined(separator: ", ")
        let error = SluiceError(
            .tooManyConnections, "The client port refused \(total) connections or requests since the last such line (\(reasons)).",
            fix: "See \"Limits of the client port\" in docs/operations.md for the reasons. Raise a limit only for clients of your own.")
        logger.warning("The client port refused connections.", metadata: ["error": "\(error)"])
    }
}

extension Metrics {
    /// Returns an observer that counts and logs the connections and requests that the client port rejects.
    func refusals(loggedBy log: RefusalLog) -> @Sendable (NetRefusal) -> Void {
        let numbers = Dictionary(uniqueKeysWithValues: NetRefusal.allCases.map { ($0, number(.netRefusals, label: $0.rawValue)) })
        return { reason in
            numbers[reason]?.add()
            log.note(reason)
        }
    }
}
