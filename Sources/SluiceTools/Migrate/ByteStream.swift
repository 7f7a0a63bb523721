import SluiceCompression
import SluiceCore
import SluiceGateway
import SluiceValues

#if canImport(Glibc)
    import Glibc
#endif

/// A file that is read from its start to its end, decompressed if it is gzip. Blocks.
///
/// Memory is the largest piece that a reader asks for, and 1 MiB.
final class ByteStream {
    private static let pieceBytes = 512 << 10

    let path: String
    /// The size of the file as it is, compressed or not.
    let fileBytes: Int64
    let isCompressed: Bool
    private let descriptor: Int32
    private let decompressor: Decompressor?
    private(set) var buffer: [UInt8] = []
    /// The start of the unread bytes in `buffer`.
    private(set) var start = 0
    private var isAtEnd = false
    /// The number of bytes read from the file as it is.
    private(set) var readBytes: Int64 = 0
    /// The place of the unread bytes in the uncompressed stream.
    private(set) var position: Int64 = 0

    /// Opens a file.
    ///
    /// - Throws: `configMissing` if it cannot be read.
    init(path: String) throws(SluiceError) {
        self.path = path
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw ByteStream.unreadable(path) }
        guard let status = FileStatus(of: descriptor), status.kind == .regular else {
            close(descriptor)
            throw SluiceError(.configMissing, "\(path) is no file.", fix: "Name a file or a folder of a dump.")
        }
        fileBytes = status.bytes
        var magic: [UInt8] = [0, 0]
        isCompressed = pread(descriptor, &magic, 2, 0) == 2 && magic == [0x1F, 0x8B]
        do throws(SluiceError) {
            // The operator's own file may be as repetitive as it likes.
            decompressor = isCompressed ? try Decompressor(.gzip, ratio: .max) : nil
        } catch {
            close(descriptor)
            throw error
        }
    }

    deinit { close(descriptor) }

    /// The number of unread bytes in memory.
    var available: Int { buffer.count - start }

    /// Reads until `count` bytes are available.
    ///
    /// - Returns: `false` if the file ends before.
    func require(_ count: Int) throws(SluiceError) -> Bool {
        while available < count, !isAtEnd { try fill() }
        return available >= count
    }

    /// Reads one more piece.
    ///
    /// - Returns: `false` at the end of the file.
    func more() throws(SluiceError) -> Bool { try require(available + 1) }

    func consume(_ count: Int) {
        start += count
        position += Int64(count)
    }

    /// Skips to a place in the uncompressed stream.
    ///
    /// - Precondition: Nothing has been read.
    /// - Throws: `badRequest` if the file ends before.
    func skip(to offset: Int64) throws(SluiceError) {
        if decompressor == nil, offset <= fileBytes {
            lseek(descriptor, off_t(offset), SEEK_SET)
            (position, readBytes) = (offset, offset)
            return
        }
        while position < offset {
            guard try require(1) else { throw damaged("it ends before byte \(offset), up to which it was imported") }
            consume(min(available, Int(offset - position)))
        }
    }

    /// Returns an error for a file that is not what it should be.
    ///
    /// - Parameter problem: Part of a sentence.
    func damaged(_ problem: String) -> SluiceError {
        SluiceError(
            .badRequest, "\(path) is damaged: \(problem).",
            fix:
                "Make or copy the dump again, and run the command again. What was imported before this place stays."
        )
    }

    private func fill() throws(SluiceError) {
        if start > 0 {
            buffer.removeFirst(start)
            start = 0
        }
        let piece = try read()
        guard let decompressor else {
            if piece.isEmpty { isAtEnd = true } else { buffer += piece }
            return
        }
        do throws(SluiceError) {
            if piece.isEmpty {
                isAtEnd = true
                return try decompressor.finish()
            }
            decompressor.feed(piece)
            while let bytes = try decompressor.next() { buffer += bytes }
        } catch  where error.code == .badCompression {
            throw damaged("the gzip stream is malformed or ends in the middle")
        }
    }

    private func read() throws(SluiceError) -> [UInt8] {
        var status = 0
        // A small piece of gzip becomes a large one.
        let size = decompressor == nil ? ByteStream.pieceBytes : 64 << 10
        let piece = [UInt8](unsafeUninitializedCapacity: size) { [descriptor] memory, count in
            repeat { status = Glibc.read(descriptor, memory.baseAddress, size) } while status < 0 && errno == EINTR
            count = max(status, 0)
        }
        if status < 0 { throw ByteStream.unreadable(path) }
        readBytes += Int64(status)
        return piece
    }

    private static func unreadable(_ path: String) -> SluiceError {
        let number = errno
        return SluiceError(
            .configMissing, "\(path) cannot be read.", fix: "Check the path and its permissions.",
            cause: .system(errno: number, text: String(cString: strerror(number))))
    }
}

extension ByteStream {
    /// Identifies a file by its size and the checksums of its ends, wherever it lies.
    ///
    /// - Throws: `configMissing` if it cannot be read.
    static func fingerprint(_ path: String) throws(SluiceError) -> String {
        let stream = try ByteStream(path: path)
        let piece = min(64 << 10, Int(stream.fileBytes))
        var checksum = CRC64()
        for place in [0, stream.fileBytes - Int64(piece)] {
            var status = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: piece) { memory, count in
                status = pread(stream.descriptor, memory.baseAddress, piece, off_t(place))
                count = max(status, 0)
            }
            if status < 0 { throw unreadable(path) }
            bytes.withUnsafeBytes { checksum.update($0) }
        }
        return "\(stream.fileBytes)-\(Hex.encode(withUnsafeBytes(of: checksum.value.bigEndian, Array.init)))"
    }
}
