import SluiceCore
import SluiceWire

/// The first message of a session.
extension Session {
    /// Verifies the token of a first message before decoding anything else in it.
    /// - Returns: `false` if the message was a token only.
    /// - Throws: `wrongProtocolVersion`, `badMessageOrder`, `unknownMessage`, `limitsExceeded`, and the errors of the authenticator.
    func prove(_ bytes: [UInt8]) async throws -> Bool {
        let opening = try OpeningMessage(bytes)
        switch opening.kind {
        case .hello:
            guard opening.version == UInt64(WireProtocol.version) else {
                throw SluiceError(
                    .wrongProtocolVersion, "The client speaks version \(opening.version); this gateway speaks \(WireProtocol.version).")
            }
            try await open(token: opening.token)
            // A decoded class takes many times its encoded size, so bound the counts before decoding.
            try opening.checkCounts(of: bytes)
            return true
        case .refreshToken:
            perform(machine.handle(.received(.refreshToken)))
            guard !machine.isClosed else { return false }
            try await open(token: opening.token)
            return false
        case .other(let field): throw Self.misplaced(field)
        }
    }

    private static func misplaced(_ field: UInt32) -> SluiceError {
        // Maps field numbers of ClientMessage.
        let names: [UInt32: ClientMessageKind] = [2: .subscribe, 3: .upload, 4: .ingest, 5: .mark, 7: .reportError]
        guard let name = names[field] else {
            return SluiceError(.unknownMessage, "The first message is of a kind that this gateway does not know.")
        }
        return SluiceError(.badMessageOrder, "The first message was \(name.rawValue), not hello.")
    }
}
