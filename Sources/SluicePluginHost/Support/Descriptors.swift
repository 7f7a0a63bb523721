import Glibc
import SluiceCore

/// The system calls on descriptors that the host needs, with named errors.
enum Descriptors {
    /// The result of one read.
    enum Read {
        case bytes([UInt8])
        /// No bytes are available now.
        case nothing
        case ended
    }

    /// Creates two connected stream sockets, blocking and closed on exec.
    /// - Throws: `pluginUnavailable` if no descriptor is left.
    static func socketPair() throws(SluiceError) -> (Int32, Int32) {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard unsafe socketpair(AF_UNIX, type, 0, &ends) == 0 else {
            throw SluiceError(
                .pluginUnavailable, "no sockets for a plugin host", fix: "Raise the limit of open files.", cause: cause(errno))
        }
        return (ends[0], ends[1])
    }

    static func makeNonBlocking(_ descriptor: Int32) {
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    }

    static func close(_ descriptors: Int32...) {
        for descriptor in descriptors where descriptor >= 0 { Glibc.close(descriptor) }
    }

    /// Reads up to 64 KiB.
    static func read(_ descriptor: Int32) -> Read {
        var failure: Int32 = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, count in
            var result = unsafe Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            while result < 0, errno == EINTR { result = unsafe Glibc.read(descriptor, buffer.baseAddress, buffer.count) }
            failure = result < 0 ? errno : 0
            count = max(result, 0)
        }
        if !bytes.isEmpty { return .bytes(bytes) }
        return failure == EAGAIN ? .nothing : .ended
    }

    /// Sends as many bytes as the socket accepts. Raises no signal if the other end is closed.
    /// - Returns: the number of bytes sent, 0 if the socket is full; nil if the other end is closed.
    static func send(_ descriptor: Int32, _ bytes: ArraySlice<UInt8>) -> Int? {
        unsafe bytes.withUnsafeBytes { buffer in
            while true {
                let result = unsafe Glibc.send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL))
                if result >= 0 { return result }
                if errno == EINTR { continue }
                return errno == EAGAIN ? 0 : nil
            }
        }
    }

    /// Returns the failure of a system call as a cause.
    static func cause(_ number: Int32) -> ErrorCause { .system(errno: number, text: unsafe String(cString: strerror(number))) }
}
