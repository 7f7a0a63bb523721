import SluiceCore
import SluiceValues

#if canImport(Glibc)
    import Glibc
#endif

/// The documents of one source that did not become rows: NDJSON, one line each, with the place in the source, the `_id`, the reason and the
/// document as Extended JSON.
///
/// The file is made for the first line. It is cut to the length that the database knows before an import continues, so that no line is in
/// it twice.
final class QuarantineFile {
    let path: String
    private var descriptor: Int32 = -1
    /// The lines of the chunk that is not committed yet.
    private var pending: [UInt8] = []
    /// The length of the file with all committed lines, in bytes.
    private(set) var length: Int64

    /// - Parameter length: The length up to which the lines are committed.
    init(path: String, length: Int64) {
        self.path = path
        self.length = length
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Adds a line to the chunk.
    func add(_ line: JSON) {
        line.write(into: &pending, extended: true)
        pending.append(UInt8(ascii: "\n"))
    }

    /// Writes the lines of the chunk and waits until the disk has them.
    ///
    /// - Throws: `configInvalid` if the file cannot be written.
    func flush() throws(SluiceError) {
        guard !pending.isEmpty else { return }
        try openFile()
        var rest = pending[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count >= 0 { rest = rest.dropFirst(count) } else if errno != EINTR { throw failure() }
        }
        guard fsync(descriptor) == 0 else { throw failure() }
        length += Int64(pending.count)
        pending.removeAll(keepingCapacity: true)
    }

    private func openFile() throws(SluiceError) {
        guard descriptor < 0 else { return }
        descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure() }
        let end = lseek(descriptor, 0, SEEK_END)
        // Lines of a chunk that was rolled back. A shorter file was moved or edited by the operator, and is continued at its end.
        if end > length, ftruncate(descriptor, off_t(length)) != 0 { throw failure() }
        lseek(descriptor, 0, SEEK_END)
    }

    /// Cuts an existing file to the committed length.
    ///
    /// - Returns: `false` if the file, or a part of it, is not there any more.
    func cut() throws(SluiceError) -> Bool {
        guard access(path, F_OK) == 0 else { return length == 0 }
        try openFile()
        return lseek(descriptor, 0, SEEK_END) >= length
    }

    private func failure() -> SluiceError {
        let number = errno
        return SluiceError(
            .configInvalid, "The quarantine file \(path) cannot be written.",
            fix: "Make room or name a folder that can be written with --quarantine, and run the command again.",
            cause: .system(errno: number, text: String(cString: strerror(number))))
    }
}
