import Foundation
package import Glibc
import Synchronization

/// A TCP connection within this machine. Its calls block.
package final class LocalSocket: Sendable {
    private let descriptor: Int32

    /// - Parameter patience: seconds that reading waits for something; nil: any time.
    package init(patience: Int? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Self.failure("making a socket") }
        guard let patience else { return }
        var limit = timeval(tv_sec: patience, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    package convenience init(port: Int, patience: Int? = nil) throws {
        try self.init(patience: patience)
        var address = Self.address(port)
        let connected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
        guard connected == 0 else { throw Self.failure("connecting") }
    }

    deinit { close(descriptor) }

    /// A port that is free just now, that the kernel gives to no connection and that no process of tests is given again while this one
    /// runs. So a server which ended can be started on it once more: its port would be free for another while it is away.
    package static func portToComeBackTo() throws -> Int {
        while true {
            let port = Int.random(in: 10_000..<32_000)
            guard given.withLock({ $0.insert(port).inserted }), try claim(port) else { continue }
            do {
                try LocalSocket().take(port)
                return port
            } catch let failure as Failure {
                guard failure.number == EADDRINUSE else { throw failure }
            }
        }
    }

    private static let given = Mutex<Set<Int>>([])
    /// A file that all processes of tests share. A lock of its byte claims a port, and goes with the process.
    private static let claims = open("/tmp/sluice-test-ports-\(getuid())", O_RDWR | O_CREAT | O_CLOEXEC, 0o666)

    /// - Returns: `false` if another process of tests has the port.
    private static func claim(_ port: Int) throws -> Bool {
        var lock = flock()
        (lock.l_type, lock.l_whence, lock.l_start, lock.l_len) = (Int16(F_WRLCK), Int16(SEEK_SET), off_t(port), 1)
        if fcntl(claims, F_SETLK, &lock) == 0 { return true }
        guard errno == EAGAIN || errno == EACCES else { throw failure("claiming a port") }
        return false
    }

    /// Takes a port until this ends.
    private func take(_ port: Int) throws {
        var address = Self.address(port)
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
        guard bound == 0 else { throw Self.failure("binding") }
    }

    package func write(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { throw Self.failure("sending") }
            sent += count
        }
    }

    /// So many bytes.
    package func read(_ count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let got = bytes[filled...].withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
            guard got > 0 else { throw Self.failure(got == 0 ? "the connection ended" : "reading") }
            filled += got
        }
        return bytes
    }

    /// Everything until the other end closes.
    package func readAll() throws -> [UInt8] {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &piece, piece.count, 0)
            guard count >= 0 else { throw Self.failure("reading") }
            if count == 0 { return bytes }
            bytes += piece[..<count]
        }
    }

    /// Runs blocking calls on a thread of their own. A gateway of the tests runs on the threads of this process, and two tests that block
    /// them both would wait for it until their deadline.
    package static func onThread<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result(catching: body)) }
        }
    }

    /// A port of 127.0.0.1; 0 for one that is free.
    package static func address(_ port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(clamping: port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    /// What was being done when a call failed, and the number of its error.
    package struct Failure: Error {
        package var what: String
        package var number: Int32
    }

    private static func failure(_ what: String) -> Failure { Failure(what: what, number: errno) }
}
