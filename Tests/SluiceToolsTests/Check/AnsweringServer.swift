import Foundation
import TestSupport

#if canImport(Glibc)
    import Glibc
#endif

/// A TCP server that sends the same bytes to each connection, once it has received something, and closes it.
final class AnsweringServer: Sendable {
    let port: Int
    private let listener: Int32

    init(_ answer: String) throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = LocalSocket.address(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let socket = listener
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, size) == 0 && listen(socket, 8) == 0 && getsockname(socket, $0, &size) == 0
            }
        }
        guard listener >= 0, isBound else { throw POSIXError(.EADDRNOTAVAIL) }
        port = Int(UInt16(bigEndian: address.sin_port))
        // Its own thread because: it waits for connections until the listener is shut down.
        Thread.detachNewThread {
            while true {
                let connection = accept(socket, nil, nil)
                guard connection >= 0 else { break }
                var request = [UInt8](repeating: 0, count: 4_096)
                if recv(connection, &request, request.count, 0) > 0 {
                    let bytes = Array(answer.utf8)
                    _ = send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
                }
                Glibc.close(connection)
            }
            Glibc.close(socket)
        }
    }

    func close() { shutdown(listener, Int32(SHUT_RDWR)) }
}
