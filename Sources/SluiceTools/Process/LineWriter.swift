import SluiceCore
package import SluiceValues

#if canImport(Glibc)
    import Glibc
#endif

/// Writes lines to standard output.
package struct LineWriter {
    /// The reader has closed the pipe. A type of its own, because the command then ends without an error.
    package struct Closed: Error {}

    private var buffer: [UInt8] = []
    private let holdsBack: Bool

    /// - Parameter holdsBack: `true` to buffer up to 64 KiB. `false` writes each line at once, for interactive readers.
    package init(holdsBack: Bool) {
        self.holdsBack = holdsBack
        // A closed pipe is then an error of `write` instead of the end of the process.
        signal(SIGPIPE, SIG_IGN)
    }

    /// - Throws: `Closed`.
    package mutating func write(_ line: String) throws {
        buffer += line.utf8
        buffer.append(UInt8(ascii: "\n"))
        if !holdsBack || buffer.count > 64 << 10 { try flush() }
    }

    package mutating func write(_ line: JSON) throws { try write(line.text) }

    /// - Throws: `Closed`; `internalError` if standard output cannot be written.
    package mutating func flush() throws {
        var rest = buffer[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(1, $0.baseAddress, $0.count) }
            if count >= 0 { rest = rest.dropFirst(count) } else if errno != EINTR { try refuse() }
        }
        buffer = []
    }

    private func refuse() throws -> Never {
        let number = errno
        if number == EPIPE { throw Closed() }
        throw SluiceError(
            .internalError, "Standard output cannot be written.",
            cause: .system(errno: number, text: String(cString: strerror(number))))
    }
}

/// Writes text for people.
package enum StandardError {
    /// Writes a text behind what the process has printed so far.
    package static func write(_ text: String) {
        // A pipe or a file receives printed text only once the buffer is full.
        fflush(nil)
        text.withCString { _ = Glibc.write(2, $0, strlen($0)) }
    }
}

/// Writes single lines of JSON, such as the ready line.
package enum StandardOutput {
    /// Writes one line of JSON with a single call of `write`.
    package static func line(_ json: JSON) {
        let text = json.text + "\n"
        text.withCString { _ = Glibc.write(1, $0, strlen($0)) }
    }
}
