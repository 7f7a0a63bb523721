package import SluiceCore

#if canImport(Glibc)
    import Glibc
#endif

/// Reads the lines of a file or of standard input, in pieces of 256 KiB. Blocks.
package final class LineReader {
    /// The longest line, in bytes. A line that exceeds it by more than one piece is an error.
    package static let lineBytes = 16 << 20

    private static let pieceBytes = 256 << 10

    private let descriptor: Int32
    private let name: String
    private var buffer: [UInt8] = []
    /// The start of the next line, and the end of the part searched for its end.
    private var start = 0
    private var scanned = 0
    private var isAtEnd = false
    /// The number of the last line read; 0 before the first.
    package private(set) var number = 0

    /// Opens a file.
    ///
    /// - Throws: `configMissing`.
    package init(path: String) throws(SluiceError) {
        name = path
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw LineReader.failure(path) }
    }

    private init(standardInput: Int32) {
        name = "standard input"
        descriptor = standardInput
    }

    deinit { if descriptor > 0 { close(descriptor) } }

    package static var standardInput: LineReader { LineReader(standardInput: 0) }

    /// Returns the next line without its end; nil after the last.
    ///
    /// - Throws: `configMissing` if it cannot be read; `badRequest` for a line that is too long.
    package func next() throws(SluiceError) -> ArraySlice<UInt8>? {
        while true {
            if let end = lineEnd() {
                defer { (start, scanned) = (end + 1, end + 1) }
                number += 1
                return buffer[start..<end]
            }
            guard !isAtEnd else { return last() }
            guard buffer.count - start <= LineReader.lineBytes else {
                throw SluiceError(
                    .badRequest, "\(name):\(number + 1): the line is longer than \(LineReader.lineBytes) bytes.", fix: "Split it.")
            }
            try fill()
        }
    }

    private func last() -> ArraySlice<UInt8>? {
        defer { start = buffer.count }
        guard start < buffer.count else { return nil }
        number += 1
        return buffer[start...]
    }

    private func lineEnd() -> Int? {
        let end = buffer.withUnsafeBytes { bytes -> Int? in
            guard let base = bytes.baseAddress, scanned < bytes.count else { return nil }
            return memchr(base + scanned, Int32(UInt8(ascii: "\n")), bytes.count - scanned).map { UnsafeRawPointer($0) - base }
        }
        // Each byte is searched once, even if a line spans many pieces.
        scanned = buffer.count
        return end
    }

    /// Appends a piece to the buffer and removes the lines already returned.
    private func fill() throws(SluiceError) {
        buffer.removeFirst(start)
        (start, scanned) = (0, buffer.count)
        var status = 0
        buffer += [UInt8](unsafeUninitializedCapacity: LineReader.pieceBytes) { [descriptor] memory, count in
            repeat { status = read(descriptor, memory.baseAddress, memory.count) } while status < 0 && errno == EINTR
            count = max(status, 0)
        }
        if status < 0 { throw LineReader.failure(name) }
        isAtEnd = status == 0
    }

    private static func failure(_ name: String) -> SluiceError {
        let number = errno
        return SluiceError(
            .configMissing, "\(name) cannot be read.", fix: "Check the path and its permissions.",
            cause: .system(errno: number, text: String(cString: strerror(number))))
    }
}
