import SluiceCore
import SluiceGateway
import SluiceValues

#if canImport(Glibc)
    import Glibc
#endif

/// The new credentials of migrated users: NDJSON with the mode 0600, one line for each token and key.
///
/// The lines of a chunk are on the disk before the database knows their hashes. A later run uses the secrets of the file again, so that
/// no line becomes invalid by an interruption.
final class CredentialFile {
    let path: String
    private var descriptor: Int32 = -1
    private var pending: [UInt8] = []
    /// The lines by kind and subject. Of several, the last one is valid.
    private var known: [String: JSON] = [:]

    /// Opens the file if it exists, and reads its lines.
    ///
    /// - Throws: `configInvalid` if other users can read it, or a line is none of this file.
    init(path: String) throws(SluiceError) {
        self.path = path
        guard access(path, F_OK) == 0 else { return }
        try open()
        try read()
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Returns the last line of a kind for a user or key.
    func line(_ kind: String, _ subject: String) -> JSON? { known["\(kind) \(subject)"] }

    /// Adds a line to the chunk.
    func add(_ kind: String, _ subject: String, _ members: [JSON.Member]) {
        let line = JSON.object([.init("kind", .string(kind)), .init("subject", .string(subject))] + members)
        known["\(kind) \(subject)"] = line
        pending += line.utf8 + [UInt8(ascii: "\n")]
    }

    /// Writes the lines of the chunk and waits until the disk has them.
    func flush() throws(SluiceError) {
        guard !pending.isEmpty else { return }
        if descriptor < 0 { try open() }
        var rest = pending[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count >= 0 { rest = rest.dropFirst(count) } else if errno != EINTR { throw failure("cannot be written") }
        }
        guard fsync(descriptor) == 0 else { throw failure("cannot be written") }
        pending.removeAll()
    }

    private func open() throws(SluiceError) {
        descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw failure("cannot be opened") }
        guard let status = FileStatus(of: descriptor), status.kind == .regular else { throw failure("is no file") }
        guard status.mode & 0o077 == 0 else {
            throw SluiceError(
                .configInvalid, "\(path) is readable for others, and passwords and keys would be in it.",
                fix: "Run chmod 600 on it, or name another file with --credentials.")
        }
    }

    private func read() throws(SluiceError) {
        let stream = try ByteStream(path: path)
        while try stream.more() {}
        let bytes = stream.buffer[stream.start...]
        // A line without an end was cut by a crash. The database does not know its secret.
        let end = bytes.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? bytes.startIndex
        if end < bytes.endIndex, ftruncate(descriptor, off_t(end - bytes.startIndex)) != 0 { throw failure("cannot be written") }
        for (index, line) in bytes[..<end].split(separator: UInt8(ascii: "\n")).enumerated() {
            guard let json = try? JSON.parse(Array(line)), let kind = json["kind"]?.string, let subject = json["subject"]?.string else {
                throw SluiceError(
                    .configInvalid, "Line \(index + 1) of \(path) is no credential of sluice migrate users.",
                    fix: "Name another file with --credentials.")
            }
            known["\(kind) \(subject)"] = json
        }
    }

    private func failure(_ problem: String) -> SluiceError {
        let number = errno
        return SluiceError(
            .configInvalid, "The file \(path) for new credentials \(problem).", fix: "Name another file with --credentials.",
            cause: .system(errno: number, text: String(cString: strerror(number))))
    }
}
