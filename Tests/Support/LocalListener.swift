import Foundation
import Glibc

/// A listening TCP socket on a free port of this machine.
package struct LocalListener: Sendable {
    package let port: Int
    private let descriptor: Int32

    package init() throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = LocalSocket.address(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) == 0 && listen(descriptor, 64) == 0 && getsockname(descriptor, $0, &size) == 0
            }
        }
        guard descriptor >= 0, isBound else { throw POSIXError(.EADDRNOTAVAIL) }
        self.descriptor = descriptor
        port = Int(UInt16(bigEndian: address.sin_port))
    }

    /// Serves each connection on a thread of its own, until `end`. The body gets the connection's descriptor, which is closed after it.
    package func serve(_ body: @escaping @Sendable (Int32) -> Void) {
        // Threads of their own because: they wait for clients.
        Thread.detachNewThread { [descriptor] in
            while true {
                let connection = accept(descriptor, nil, nil)
                guard connection >= 0 else { break }
                Thread.detachNewThread {
                    body(connection)
                    close(connection)
                }
            }
            close(descriptor)
        }
    }

    package func end() { shutdown(descriptor, Int32(SHUT_RDWR)) }
}
