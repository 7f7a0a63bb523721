import SluiceCore
package import SluicePorts

/// The codec of messages: one WebSocket message is a header line and a body.
///
/// Both directions are decoded with the same bounds. Input never traps. Errors are `unknownMessage`, `badSyntax`, `badJSON`,
/// `badChangeset`, `badCompression` and `limitsExceeded`.
package struct RealmCodec<Compression: BodyCompression>: Sendable {
    package let compression: Compression
    package let limits: RealmMessageLimits

    package init(compression: Compression, limits: RealmMessageLimits = RealmMessageLimits()) {
        (self.compression, self.limits) = (compression, limits)
    }

    /// Checks a message's size and returns a reader of it.
    func reader(_ bytes: [UInt8]) throws(SluiceError) -> TokenReader {
        guard bytes.count <= limits.messageBytes else {
            throw SluiceError(
                .limitsExceeded, "A message has \(bytes.count) bytes, and the limit is \(limits.messageBytes).",
                fix: "Split the write into several transactions.")
        }
        return TokenReader(bytes)
    }

    static func unknown(_ name: String) -> SluiceError {
        SluiceError(.unknownMessage, "The message '\(name)' is not known.", fix: "Use a supported SDK.")
    }

    // MARK: Bodies of entries

    /// Reads the sizes and the body of an UPLOAD or DOWNLOAD, whose header has three fields left.
    func entries<Entry>(
        _ reader: inout TokenReader, _ entry: (inout TokenReader) throws(SluiceError) -> Entry,
        header: (inout TokenReader) throws(SluiceError) -> Void = { (_) throws(SluiceError) in }
    ) throws(SluiceError) -> [Entry] {
        let isCompressed = try reader.flag("is_compressed")
        let size = try reader.size("uncompressed_size", atMost: limits.bodyBytes)
        let compressedSize = try reader.size("compressed_size", atMost: limits.messageBytes)
        try header(&reader)
        try reader.endLine()
        var body: [UInt8]
        if isCompressed {
            let compressed = try reader.take(compressedSize, "compressed_size")
            body = try compression.decompress(compressed, count: size)
            guard body.count == size else {
                throw SluiceError(.badCompression, "A body has \(body.count) bytes, and its header names \(size).")
            }
        } else {
            body = try reader.take(size, "uncompressed_size")
        }
        try reader.finish()
        var content = TokenReader(body, isBody: true)
        body = []
        var entries: [Entry] = []
        while content.remaining > 0 { entries.append(try entry(&content)) }
        return entries
    }

    /// Reads an entry's changeset.
    func changeset(_ reader: inout TokenReader) throws(SluiceError) -> [UInt8] {
        let size = try reader.number("changeset_size")
        guard size <= UInt64(reader.remaining) else {
            throw SluiceError(.badChangeset, "A changeset has \(size) bytes, and \(reader.remaining) are left.")
        }
        return try reader.take(Int(size), "changeset_size")
    }

    /// Returns the sizes for the header and the body, compressed if that makes it smaller.
    func packed(_ body: [UInt8]) throws(SluiceError) -> (sizes: [UInt64], body: [UInt8]) {
        guard body.count > limits.plainBytes else { return ([0, UInt64(body.count), 0], body) }
        let compressed = try compression.compress(body)
        guard compressed.count < body.count else { return ([0, UInt64(body.count), 0], body) }
        return ([1, UInt64(body.count), UInt64(compressed.count)], compressed)
    }

    // MARK: Messages that both sides send

    /// Reads the fields after the name of a test command.
    func testCommand(_ reader: inout TokenReader) throws(SluiceError) -> RealmTestCommand {
        let session = try reader.number("session_ident")
        let request = try reader.number("request_ident")
        let size = try reader.size("body_size", atMost: limits.messageBytes)
        try reader.endLine()
        let body = try reader.text(size, "body")
        try reader.finish()
        return RealmTestCommand(session: session, request: request, body: body)
    }

    func encode(_ command: RealmTestCommand) -> [UInt8] {
        let body = Array(command.body.utf8)
        return TokenWriter("test_command", [command.session, command.request, UInt64(body.count)], body: body).bytes
    }
}
