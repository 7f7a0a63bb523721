package import SluiceCore
package import SwiftProtobuf

/// What a peer may send and how it is read: every message of the protocol goes through here.
package enum WireProtocol {
    /// The WebSocket subprotocol, and the number in Hello and Welcome.
    package static let name = "sluice.v1"
    package static let version: UInt32 = 1

    /// Where an app's sync sessions are.
    package static func path(app: String) -> String { "/v1/app/\(app)/sync" }

    private static var options: BinaryDecodingOptions {
        var options = BinaryDecodingOptions()
        // A level of nested values is three levels of messages: Value, DictionaryValue, its entry.
        options.messageDepthLimit = 3 * Limits.nestingDepth + 16
        return options
    }

    /// - Throws: `badSyntax` for bytes that are not such a message, `limitsExceeded` beyond `Limits.messageBytes`.
    package static func decode<M: Message>(_: M.Type = M.self, from bytes: [UInt8]) throws(SluiceError) -> M {
        guard bytes.count <= Limits.messageBytes else {
            throw SluiceError(.limitsExceeded, "A message has \(bytes.count) bytes, more than \(Limits.messageBytes).")
        }
        do {
            return try M(serializedBytes: bytes, options: options)
        } catch {
            throw .malformed("it is no \(M.protoMessageName)")
        }
    }

    /// - Throws: `internalError` when a message cannot be written, which only one of more than 2 GiB cannot.
    package static func encode(_ message: some Message) throws(SluiceError) -> [UInt8] {
        do {
            return try message.serializedBytes()
        } catch {
            throw SluiceError(.internalError, "A message could not be written: \(error).")
        }
    }
}

extension PBServerMessage {
    package init(_ kind: OneOf_Kind) {
        self.init()
        self.kind = kind
    }
}

extension PBClientMessage {
    package init(_ kind: OneOf_Kind) {
        self.init()
        self.kind = kind
    }
}
