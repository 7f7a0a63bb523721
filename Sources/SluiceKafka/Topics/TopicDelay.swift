import CRdKafka
import SluiceCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A broker's answer about a topic that another answer may follow soon.
///
/// Brokers acknowledge the creation of a topic before all of them know it and its partitions have leaders. After a move, the old
/// leader rejects requests, and so do clients that do not know the new one.
///
/// A type beside `SluiceError`, because it never leaves this module: `waitOut` repeats the request, and at last throws `error`.
struct TopicDelay: Error {
    enum Reason {
        /// The topic or the partition is unknown. It may not exist.
        case unknown
        /// The topic is known, but a partition has no leader yet.
        case notReady
    }

    var reason: Reason
    /// The error to report if no other answer follows.
    var error: SluiceError

    /// Repeats a request until it has an answer, with a back-off from 20 to 500 ms. Blocks; call it on a dedicated thread.
    ///
    /// After `requestTimeout` no further request begins; the last one may take as long again.
    /// - Parameter isExpected: `false` if an unknown topic counts as missing.
    static func waitOut<Answer>(
        isExpected: Bool, _ configuration: KafkaConfiguration, _ question: () throws -> Answer
    ) throws -> Answer {
        let clock = SystemEnvironment()
        let deadline = clock.monotonicNanoseconds() + configuration.requestTimeout.nanoseconds
        var pause: UInt64 = 20_000_000
        while true {
            do {
                return try question()
            } catch let delay as TopicDelay {
                let now = clock.monotonicNanoseconds()
                guard isExpected || delay.reason == .notReady, now < deadline else { throw delay.error }
                // The protocol has no event for this, and the thread may block.
                usleep(UInt32(min(pause, deadline - now) / 1_000))
                pause = min(pause * 2, 500_000_000)
            }
        }
    }
}

/// Returns `true` if an error passes on its own: a leader is being elected, has moved, or is not known to this client.
func isPassing(_ error: rd_kafka_resp_err_t) -> Bool {
    switch error {
    case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE,
        RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION, RD_KAFKA_RESP_ERR_NOT_CONTROLLER,
        RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH,
        RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH, RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_PREFERRED_LEADER_NOT_AVAILABLE,
        RD_KAFKA_RESP_ERR__TRANSPORT:
        true
    default: false
    }
}
