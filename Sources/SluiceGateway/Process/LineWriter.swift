package import SluiceCore

#if canImport(Glibc)
    import Glibc
#endif

/// Standard output, line by line.
package struct LineWriter {
    /// The reader has closed the pipe: there is nobody left to write for.
    package struct Closed: Error {}

    private var buffer: [UInt8] = []
    private let holdsBack: Bool

    /// - Parameter holdsBack: whether lines may wait for one another; otherwise each is written at once, for readers that ask on.
    package init(holdsBack: Bool) {
        self.holdsBack = holdsBack
        // A closed pipe is an error of `write` then, not the end of the process.
        signal(SIGPIPE, SIG_IGN)
    }

    /// - Throws: `Closed`.
    package mutating func write(_ line: String) throws {
        buffer += line.utf8
        buffer.append(UInt8(ascii: "\n"))
        if !holdsBack || buffer.count > 64 << 10 { try flush() }
    }

    package mutating func write(_ line: JSON) throws { try write(line.text) }

    /// - Throws: `Closed`, and `internalError` when it cannot be written.
    package mutating func flush() throws {
        var rest = buffer[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(1, $0.baseAddress, $0.count) }
            if count >= 0 { rest = rest.dropFirst(count) } else if errno != EINTR { try refuse() }
        }
        buffer = []
    }

    private func refuse() throws -> Never {
        if errno == EPIPE { throw Closed() }
        throw SluiceError(.internalError, "Standard output cannot be written: \(String(cString: strerror(errno))).")
    }
}
