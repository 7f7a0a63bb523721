import CRdKafka

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A pause after a fetch that was answered at once with next to nothing.
///
/// A broker holds a fetch while it has nothing new (`fetch.wait.max.ms`). One that does not, such as the development broker, would be
/// asked thousands of times a second by every reader, idle or not, and take a processor with it. Where records trickle in faster than
/// that, the pause only lets some more of them share an answer.
enum FetchPause {
    /// Microseconds to wait after an answer.
    /// - Parameters:
    ///   - request: the kind that was answered, as the protocol numbers them; 1 is a fetch.
    ///   - bytes: the answer's size; a fetch without records has some dozens for each partition.
    ///   - elapsed: microseconds from the request to the answer; negative when that is not known.
    static func after(request: Int16, bytes: Int, elapsed: Int64) -> UInt32 {
        request == 1 && bytes < 4_096 && (0..<1_000).contains(elapsed) ? 1_000 : 0
    }

    /// Has a client that is made of `configuration` keep to it.
    static func add(to configuration: OpaquePointer?) {
        // The thread that sleeps serves one broker and one reader, which has nothing else to do meanwhile.
        _ = unsafe rd_kafka_conf_interceptor_add_on_new(
            configuration, "pause",
            { client, _, _, _, _ in
                unsafe rd_kafka_interceptor_add_on_response_received(
                    client, "pause",
                    { _, _, _, _, request, _, _, size, elapsed, error, _ in
                        if error == RD_KAFKA_RESP_ERR_NO_ERROR,
                            case let pause = FetchPause.after(request: request, bytes: size, elapsed: elapsed),
                            pause > 0
                        {
                            usleep(pause)
                        }
                        return RD_KAFKA_RESP_ERR_NO_ERROR
                    }, nil)
            }, nil)
    }
}
