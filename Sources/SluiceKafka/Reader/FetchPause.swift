import CRdKafka

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A pause after a fetch that was answered at once with almost no data.
///
/// A broker holds a fetch while it has no new records (`fetch.wait.max.ms`). One that does not, such as the development broker,
/// would receive thousands of fetches a second from every reader and occupy a processor. If records arrive faster than that, the
/// pause only lets more of them share an answer.
enum FetchPause {
    /// Returns the pause after an answer, in microseconds.
    ///
    /// - Parameters:
    ///   - request: The protocol's number of the answered request; 1 is a fetch.
    ///   - bytes: The size of the answer. A fetch without records has some dozens of bytes for each partition.
    ///   - elapsed: The microseconds from the request to the answer; negative if unknown.
    static func after(request: Int16, bytes: Int, elapsed: Int64) -> UInt32 {
        request == 1 && bytes < 4_096 && (0..<1_000).contains(elapsed) ? 1_000 : 0
    }

    /// Adds the pause to every client that is created from `configuration`.
    static func add(to configuration: OpaquePointer?) {
        // The sleeping thread serves one broker of one reader and has no other work.
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
