import CRdKafka
package import Logging
import SluiceCore
import Synchronization

/// The cause that keeps the clients of one configuration from their brokers, as librdkafka words it.
///
/// The library reports the cause of a lost connection by an event, and the failure of a request only as a timeout. It does not
/// repeat a cause for 30 s, so the last one is kept until a broker answers again.
package final class BrokerTrouble: Sendable {
    private let last = Mutex<String?>(nil)
    private let logger: Logger?

    package init(logger: Logger? = nil) { self.logger = logger }

    /// The last cause; nil if a broker has answered since.
    package var words: String? { last.withLock(\.self) }

    func clear() { last.withLock { $0 = nil } }

    /// Records the cause of an error event. Causes that do not pass on their own are logged as warnings.
    func note(errorEvent event: OpaquePointer) {
        let error = unsafe rd_kafka_event_error(event)
        guard error != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, error != RD_KAFKA_RESP_ERR__FATAL else { return }
        let words = unsafe rd_kafka_event_error_string(event).map { unsafe String(cString: $0) } ?? text(of: error)
        note(words, isRefusal: error == RD_KAFKA_RESP_ERR__SSL || error == RD_KAFKA_RESP_ERR__AUTHENTICATION)
    }

    func note(_ words: String, isRefusal: Bool) {
        // The text ends with the milliseconds until the failure, which differ each time.
        let cause = words.firstRange(of: " (after ").map { String(words[..<$0.lowerBound]) } ?? words
        let isNew = last.withLock { last in
            defer { last = cause }
            return last != cause
        }
        // librdkafka guesses this setting if a broker disconnects at the first request.
        guard isNew, isRefusal || cause.contains("security.protocol") else { return }
        logger?.warning("A connection to Kafka failed.", metadata: ["error": "\(cause)"])
    }

    /// Returns the error with the connection's error as its cause, which says more than the timeout of a request.
    func explain(_ error: SluiceError) -> SluiceError {
        guard let words else { return error }
        var error = error
        error.cause = .text("Kafka connection: \(words)")
        return error
    }
}
