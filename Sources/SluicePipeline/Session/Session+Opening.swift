import SluiceCore
import SluiceWire

/// A session's first message.
extension Session {
    /// Verifies the token of a first message before anything else in it is decoded.
    /// - Returns: `false` if the message was a token alone.
    func prove(_ bytes: [UInt8]) async throws -> Bool {
        let opening = try OpeningMessage(bytes)
        switch opening.kind {
        case .hello:
            guard opening.version == UInt64(WireProtocol.version) else {
                throw SluiceError(
                    .wrongProtocolVersion, "The client speaks version \(opening.version); this gateway speaks \(WireProtocol.version).")
            }
            try await open(token: opening.token)
            try opening.checkCounts(of: bytes)
            return true
        case .refreshToken:
            try state.receive(.refreshToken)
            try await open(token: opening.token)
            return false
        case .other(let field): throw Self.misplaced(field)
        }
    }

    private static func misplaced(_ field: UInt32) -> SluiceError {
        // By their fields in ClientMessage.
        let names: [UInt32: SessionState.Message] = [2: .subscribe, 3: .upload, 4: .ingest, 5: .mark, 7: .reportError]
        guard let name = names[field] else {
            return SluiceError(.unknownMessage, "The first message is of a kind that this gateway does not know.")
        }
        return SluiceError(.badMessageOrder, "The first message was \(name.rawValue), not hello.")
    }
}
