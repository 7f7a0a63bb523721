import TestSupport

#if canImport(Glibc)
    import Glibc
#endif

/// A TCP server that sends the same bytes to each connection, once it has received something, and closes it.
struct AnsweringServer {
    private let listener: LocalListener
    var port: Int { listener.port }

    init(_ answer: String) throws {
        listener = try LocalListener()
        listener.serve { connection in
            var request = [UInt8](repeating: 0, count: 4_096)
            guard recv(connection, &request, request.count, 0) > 0 else { return }
            let bytes = Array(answer.utf8)
            _ = send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        }
    }

    func close() { listener.end() }
}
