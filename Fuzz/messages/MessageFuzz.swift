// Messages of Realm's protocol under test by any bytes: they are decoded, encoded and decoded again. Nothing may crash or disagree with
// itself. The queries of a client are parsed as well. `make fuzz` runs it.

import SluiceCore
import SluicePorts
import SluiceQuery
import SluiceRealm

private let codec = RealmCodec(compression: RunLengthCompression(), limits: RealmMessageLimits())

/// The errors of the decoder. Each ends the connection or its session with a code of the protocol.
private let errors: Set<ErrorCode> = [.unknownMessage, .badSyntax, .badChangeset, .badCompression, .limitsExceeded, .badJSON]

/// Decodes a message of each side. A valid one must decode equally from the bytes that it is encoded as.
func run(_ bytes: [UInt8]) {
    if let message = decoded(bytes, codec.decodeClient) {
        for (type, text) in queries(message) { parse(type, text) }
        if decoded(encoded(message, codec.encode), codec.decodeClient) != message { fatalError("of the client: \(message)") }
    }
    if let message = decoded(bytes, codec.decodeServer) {
        // Fractions are rounded once.
        let bytes = encoded(message, codec.encode)
        guard let again = decoded(bytes, codec.decodeServer), encoded(again, codec.encode) == bytes else {
            fatalError("of the server: \(message)")
        }
    }
}

private func decoded<Message>(_ bytes: [UInt8], _ decode: ([UInt8]) throws(SluiceError) -> Message) -> Message? {
    do throws(SluiceError) { return try decode(bytes) } catch {
        if !errors.contains(error.code) || error.message.isEmpty { fatalError("an error of the decoder: \(error)") }
        return nil
    }
}

private func encoded<Message>(_ message: Message, _ encode: (Message) throws(SluiceError) -> [UInt8]) -> [UInt8] {
    do throws(SluiceError) { return try encode(message) } catch { fatalError("a valid message is not encoded: \(error)") }
}

private func queries(_ message: RealmClientMessage) -> [String: String] {
    switch message {
    case .ident(let ident): ident.query.queries
    case .query(_, let query): query.queries
    default: [:]
    }
}

/// Parses the query of a class. An error must make the text by which SDKs recognise a query error.
private func parse(_ type: String, _ text: String) {
    do throws(SluiceError) { _ = try RealmQueryBody.Text(type, text).query() } catch {
        if !RealmQueryBody.queryErrorText(error).hasPrefix("Invalid query: ") { fatalError("an error of the query: \(error)") }
    }
}

/// The name of the inputs in the last line of the output.
let tested = "messages"
