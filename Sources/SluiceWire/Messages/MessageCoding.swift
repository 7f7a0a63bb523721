package import SluiceCore
package import SwiftProtobuf

/// The protocol's name, version and path, and the codec that all its messages pass through.
package enum WireProtocol {
    /// The WebSocket subprotocol, and the version in `Hello` and `Welcome`.
    package static let name = "sluice.v1"
    package static let version: UInt32 = 1

    /// Returns the path of an app's sync sessions.
    package static func path(app: String) -> String { "/v1/app/\(app)/sync" }

    private static var options: BinaryDecodingOptions {
        var options = BinaryDecodingOptions()
        // One level of nested values takes three levels of messages: `Value`, `DictionaryValue` and its entry.
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

    /// - Throws: `internalError` if the message cannot be encoded, such as one over 2 GiB.
    package static func encode(_ message: some Message) throws(SluiceError) -> [UInt8] {
        do {
            return try message.serializedBytes()
        } catch {
            throw SluiceError(.internalError, "A message could not be written.", cause: ErrorCause(error))
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
