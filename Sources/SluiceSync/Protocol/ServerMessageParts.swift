import SluiceCore
import SluiceWire

/// The number of the parts of one message of the gateway: rows, keys, changes, classes, properties, rejected writes and values.
///
/// In memory, a part takes many times its bytes. An empty rejected write has two bytes in a message, and hundreds once it is decoded.
struct ServerMessageParts {
    private var count = 0

    /// Counts a part.
    /// - Throws: `limitsExceeded` beyond `Limits.serverParts`.
    mutating func add() throws(SluiceError) {
        count += 1
        guard count <= Limits.serverParts else {
            throw SluiceError(
                .limitsExceeded, "A message of the gateway has more than \(Limits.serverParts) parts.",
                fix: "Check that the address is the gateway's own.")
        }
    }

    /// Checks the size of decoded rows.
    /// - Throws: `limitsExceeded` beyond `Limits.decodedBytes`.
    static func check(decoded bytes: Int) throws(SluiceError) {
        guard bytes <= Limits.decodedBytes else {
            throw SluiceError(
                .limitsExceeded, "The rows of one message of the gateway take more than \(Limits.decodedBytes) bytes in memory.",
                fix: "Check that the address is the gateway's own.")
        }
    }

    /// Counts the parts of a whole message before it is decoded. For rows and commits, `RowsReader` counts while it decodes.
    /// - Throws: `limitsExceeded`; `badSyntax` for a message that cannot be read.
    static func check(_ bytes: [UInt8]) throws(SluiceError) {
        try bytes.withUnsafeBufferPointer { buffer throws(SluiceError) in
            var parts = ServerMessageParts()
            try parts.count(WireReader(UnsafeRawBufferPointer(buffer)), .server, depth: 0)
        }
    }

    /// The kinds of messages that contain others, or texts, any number of times.
    private enum Kind {
        case server, welcome, objectSchema, bootstrapBegin, checkpoint, checkpointType, bootstrapEnd, held, uploadAck, futileWrite
        case rejections, rejectedWrite, value, list, dictionary, entry, link

        /// Returns the kind of the message in a field; nil for a field whose content is not looked at.
        func kind(of field: UInt32) -> Kind? {
            switch (self, field) {
            case (.server, 1): .welcome
            case (.server, 2): .bootstrapBegin
            case (.server, 4): .bootstrapEnd
            case (.server, 6): .uploadAck
            case (.server, 7), (.server, 8): .rejections
            case (.welcome, 4): .objectSchema
            case (.bootstrapBegin, 3): .checkpoint
            case (.checkpoint, 2): .checkpointType
            case (.bootstrapEnd, 5): .held
            case (.uploadAck, 3): .futileWrite
            case (.rejections, 2): .rejectedWrite
            case (.checkpointType, 4), (.futileWrite, 3), (.rejectedWrite, 3): .value
            case (.value, 12): .list
            case (.value, 13): .dictionary
            case (.value, 14): .link
            case (.dictionary, 1): .entry
            case (.list, 1), (.entry, 2), (.link, 2): .value
            default: nil
            }
        }
    }

    private mutating func count(_ reader: WireReader, _ kind: Kind, depth: Int) throws(SluiceError) {
        // One level of nested values takes three levels of messages, below the few around them.
        guard depth <= 3 * Limits.nestingDepth + 16 else { throw .malformed("its values are nested too deeply") }
        var reader = reader
        while !reader.isAtEnd {
            let tag = try reader.tag()
            try add()
            if tag.type == .lengthDelimited, let inner = kind.kind(of: tag.field) {
                try count(reader.nested(try reader.content()), inner, depth: depth + 1)
            } else {
                try reader.skip(tag.type)
            }
        }
    }
}
