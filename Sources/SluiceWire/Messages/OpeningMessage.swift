package import SluiceCore

/// The parts of a session's first message that are read before authentication. Only the token and the version are decoded.
package struct OpeningMessage {
    package enum Kind: Hashable, Sendable {
        case hello
        case refreshToken
        /// Any other message, by its field in `ClientMessage`.
        case other(UInt32)
    }

    package let kind: Kind
    package let token: String
    /// The protocol version. 0 if absent.
    package let version: UInt64
    private let content: Range<Int>

    /// Reads the first message of a session.
    /// - Throws: `badSyntax` for a malformed message, for two messages in one, and for a second token: the decoder might use another of
    ///   the two. `unknownMessage` for an empty one.
    package init(_ bytes: [UInt8]) throws(SluiceError) {
        var parts = (field: UInt32(0), content: 0..<0)
        try Self.fields(of: bytes) { tag, range throws(SluiceError) in
            guard parts.field == 0, let range else { throw .malformed("the first message is not one message") }
            parts = (tag, range)
        }
        guard parts.field > 0 else { throw SluiceError(.unknownMessage, "The first message of \(bytes.count) bytes has no kind.") }
        content = parts.content
        switch parts.field {
        case 1: kind = .hello
        case 6: kind = .refreshToken
        default: kind = .other(parts.field)
        }
        (token, version) = try Self.opening(kind, bytes, parts.content)
    }

    private static func opening(_ kind: Kind, _ bytes: [UInt8], _ content: Range<Int>) throws(SluiceError) -> (String, UInt64) {
        if case .other = kind { return ("", 0) }
        let tokenField: UInt32 = kind == .hello ? 2 : 1
        var token: Range<Int>?
        var version: UInt64 = 0
        try read(bytes, content) { reader throws(SluiceError) in
            let tag = try reader.tag()
            if tag.field == tokenField, tag.type == .lengthDelimited {
                guard token == nil else { throw .malformed("a token is given twice") }
                token = try reader.text()
            } else if kind == .hello, tag.field == 1, tag.type == .varint {
                version = try reader.varint()
            } else {
                try reader.skip(tag.type)
            }
        }
        return (token.map { String(decoding: bytes[$0], as: UTF8.self) } ?? "", version)
    }

    /// Checks the number of classes and properties in a `Hello` before decoding: decoded, each takes many times its bytes.
    /// - Throws: `limitsExceeded`.
    package func checkCounts(of bytes: [UInt8]) throws(SluiceError) {
        guard kind == .hello else { return }
        var (classes, properties) = (0, 0)
        try Self.fields(of: bytes, in: content) { field, range throws(SluiceError) in
            guard let range else { return }
            switch field {
            case 6:
                classes += 1
                try Self.fields(of: bytes, in: range) { field, _ throws(SluiceError) in if field == 4 { properties += 1 } }
            // `types` of `Held` and of `Checkpoint`.
            case 9: try Self.fields(of: bytes, in: range) { field, _ throws(SluiceError) in if field == 3 { classes += 1 } }
            case 12: try Self.fields(of: bytes, in: range) { field, _ throws(SluiceError) in if field == 2 { classes += 1 } }
            default: break
            }
        }
        // Each class may be in the schema, in the client view record and in the resume offer.
        guard classes <= 3 * Limits.helloClasses, properties <= Limits.helloProperties else {
            throw SluiceError(
                .limitsExceeded, "A Hello lists \(classes) classes and \(properties) properties.",
                fix: "Name at most \(Limits.helloClasses) classes and \(Limits.helloProperties) properties.")
        }
    }

    // MARK: Reading

    /// Calls `body` for each field, with the range of its content if it is length-delimited.
    private static func fields(
        of bytes: [UInt8], in range: Range<Int>? = nil, _ body: (UInt32, Range<Int>?) throws(SluiceError) -> Void
    ) throws(SluiceError) {
        try read(bytes, range ?? 0..<bytes.count) { reader throws(SluiceError) in
            let tag = try reader.tag()
            guard tag.type == .lengthDelimited else {
                try reader.skip(tag.type)
                return try body(tag.field, nil)
            }
            try body(tag.field, try reader.content())
        }
    }

    /// Calls `step` until the range is read.
    private static func read(
        _ bytes: [UInt8], _ range: Range<Int>, _ step: (inout WireReader) throws(SluiceError) -> Void
    ) throws(SluiceError) {
        let outcome = bytes.withUnsafeBytes { buffer in
            Result { () throws(SluiceError) in
                var reader = WireReader(buffer, range)
                while !reader.isAtEnd { try step(&reader) }
            }
        }
        try outcome.get()
    }
}
