import CRdKafka
import Logging
import SluiceCore

/// A librdkafka object: a client, a topic or a queue.
@safe struct KafkaPointer: @unchecked Sendable {  // Sendable because: librdkafka's clients, topics and queues may be used on any thread.
    let raw: OpaquePointer

    init(_ raw: OpaquePointer) { unsafe self.raw = unsafe raw }
}

/// Runs a call that writes the reason of its failure into a buffer.
///
/// - Returns: The reason; nil on success.
func withErrorText(_ call: (UnsafeMutablePointer<CChar>, Int) -> Bool) -> String? {
    unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer in
        unsafe buffer.initialize(repeating: 0)
        guard let base = buffer.baseAddress, unsafe !call(base, buffer.count) else { return nil }
        return unsafe String(cString: base)
    }
}

/// Returns the library's description of an error, such as `Broker: Unknown topic or partition`.
func text(of error: rd_kafka_resp_err_t) -> String {
    unsafe rd_kafka_err2str(error).map { unsafe String(cString: $0) } ?? "error \(error.rawValue)"
}

/// Returns an error as a cause.
///
/// - Parameter words: The description; nil for the library's own.
func cause(of error: rd_kafka_resp_err_t, _ words: String? = nil) -> ErrorCause {
    .kafka(code: error.rawValue, text: words ?? text(of: error))
}

/// Returns `true` if an error means that a topic or partition does not exist.
func isMissingTopic(_ error: rd_kafka_resp_err_t) -> Bool {
    error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || error == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC
        || error == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION
}

/// Returns `true` if an error means that no broker can be reached now.
func isUnreachable(_ error: rd_kafka_resp_err_t) -> Bool {
    error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || error == RD_KAFKA_RESP_ERR__TRANSPORT
        || error == RD_KAFKA_RESP_ERR__RESOLVE || error == RD_KAFKA_RESP_ERR__TIMED_OUT
        || error == RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE || error == RD_KAFKA_RESP_ERR__WAIT_COORD
}

/// Forwards a log event at debug level, with the library's text as metadata.
func forward(logEvent event: OpaquePointer, to logger: Logger) {
    guard logger.logLevel <= .debug else { return }
    var facility: UnsafePointer<CChar>?
    var message: UnsafePointer<CChar>?
    var level: Int32 = 0
    guard unsafe rd_kafka_event_log(event, &facility, &message, &level) == 0, let message = unsafe message else { return }
    let facilityText = unsafe facility.map { unsafe String(cString: $0) } ?? ""
    let messageText = unsafe String(cString: message)
    logger.debug("kafka client", metadata: ["facility": "\(facilityText)", "text": "\(messageText)"])
}
