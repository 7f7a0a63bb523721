import Logging
import SluiceCore
import Synchronization

/// Logs the clients that ask for partition-based sync, so that an operator knows which apps still use it.
///
/// There is one line per SDK and app within an hour. Clients choose the text, so at most `most` texts are remembered. Beyond, all others
/// share one line.
final class PartitionRefusals: Sendable {
    static let most = 1_000
    private static let interval: UInt64 = 3_600_000_000_000

    private let logger: Logger
    private let environment: any Environment
    /// The time of the last line by text, in monotonic nanoseconds.
    private let logged = Mutex<[String: UInt64]>([:])

    init(logger: Logger, environment: any Environment) {
        self.logger = logger
        self.environment = environment
    }

    func note(_ agent: RealmAgent, _ error: SluiceError) {
        guard isDue(agent.text) else { return }
        logger.warning(
            "A client was refused: it asks for partition-based sync.",
            metadata: ["client": "\(agent.text)", "sdk": "\(agent.sdk.rawValue)", "error": "\(error)"])
    }

    private func isDue(_ text: String) -> Bool {
        let now = environment.monotonicNanoseconds()
        return logged.withLock { logged in
            let key = logged.count < Self.most || logged[text] != nil ? text : ""
            if let last = logged[key], now - min(now, last) < Self.interval { return false }
            logged[key] = now
            return true
        }
    }
}
