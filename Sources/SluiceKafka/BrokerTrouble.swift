import CRdKafka
package import Logging
import SluiceCore
import Synchronization

/// What keeps the clients of one configuration from their brokers, in librdkafka's words.
///
/// The library tells the cause of a lost connection by an event, and of what fails for it only that it took too long. It does not
/// repeat a cause for half a minute, so the last one is kept until something is answered again.
package final class BrokerTrouble: Sendable {
    private let last = Mutex<String?>(nil)
    private let logger: Logger?

    package init(logger: Logger? = nil) { self.logger = logger }

    /// The last cause; nil when something was answered since.
    package var words: String? { last.withLock(\.self) }

    func clear() { last.withLock { $0 = nil } }

    /// Keeps what an error event says. An operator hears of what does not pass by itself.
    func note(errorEvent event: OpaquePointer) {
        let error = unsafe rd_kafka_event_error(event)
        guard error != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, error != RD_KAFKA_RESP_ERR__FATAL else { return }
        let words = unsafe rd_kafka_event_error_string(event).map { unsafe String(cString: $0) } ?? text(of: error)
        note(words, isRefusal: error == RD_KAFKA_RESP_ERR__SSL || error == RD_KAFKA_RESP_ERR__AUTHENTICATION)
    }

    func note(_ words: String, isRefusal: Bool) {
        // The end tells after how many milliseconds it failed, which differs each time.
        let cause = words.firstRange(of: " (after ").map { String(words[..<$0.lowerBound]) } ?? words
        let isNew = last.withLock { last in
            defer { last = cause }
            return last != cause
        }
        // The library guesses so when a broker hangs up at the first question.
        guard isNew, isRefusal || cause.contains("security.protocol") else { return }
        logger?.warning("A connection to Kafka failed.", metadata: ["error": "\(cause)"])
    }

    /// The error with the cause in it.
    func explain(_ error: SluiceError) -> SluiceError {
        guard let words else { return error }
        var error = error
        error.message += " The connection: \(words)."
        return error
    }
}
