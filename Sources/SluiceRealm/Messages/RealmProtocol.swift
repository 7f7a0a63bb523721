package import SluiceCore

/// The accepted subprotocol of a connection.
package struct RealmSubprotocol: Hashable, Sendable {
    package var version: Int
    /// The offered text, for the header of the answer. Any other text crashes the client.
    package var name: String
    /// `true` if the client acts on the close codes from 4001 on. Others receive the status of the error at the next upgrade.
    package var knowsCloseCodes: Bool { version >= 8 && name.hasPrefix(RealmProtocol.prefix) }

    package init(version: Int, name: String) {
        (self.version, self.name) = (version, name)
    }
}

/// The refusal of an upgrade. The client acts on the status alone.
package struct RealmUpgradeRefusal: Error, Hashable, Sendable {
    package var status: Int
    package var error: SluiceError

    /// The refusal for an error that comes before the upgrade.
    ///
    /// With 401 the client refreshes its token, with 403 it logs its user out, and with 503 it retries. Any other status is reported to
    /// the app as fatal.
    package init(_ error: SluiceError) {
        self.error = error
        status =
            switch error.code {
            case .tokenExpired, .badAuthentication: 401
            case .userDisabled, .userNotFound, .permissionDenied: 403
            case .wrongProtocolVersion, .badRequest: 400
            default: 503
            }
    }
}

/// The names and versions of the protocol.
package enum RealmProtocol {
    /// All of them have the message shapes of version 14.
    package static let versions = 2...14
    package static let prefix = "com.mongodb.realm-query-sync#"
    /// The form of clients before realm-core 13.10. It is accepted from version 5 on: older clients take a compensating write for fatal.
    package static let olderPrefix = "com.mongodb.realm-query-sync/"
    private static let oldestOlder = 5
    /// The prefix of partition-based sync.
    package static let partitionPrefix = "com.mongodb.realm-sync#"
    package static let olderPartitionPrefix = "com.mongodb.realm-sync/"
    /// The file ident of the server as the origin of a changeset.
    package static let serverFile: UInt64 = 1
    /// Milliseconds from 1970 to 2015, where the protocol's timestamps begin.
    package static let epoch: Int64 = 1_420_070_400_000

    /// Returns the newest common version.
    ///
    /// - Parameter offered: The values of Sec-WebSocket-Protocol.
    /// - Throws: A refusal with status 400. A 101 without one of the offered texts crashes the client.
    package static func negotiate(_ offered: [String]) throws(RealmUpgradeRefusal) -> RealmSubprotocol {
        let common = offered.compactMap { name -> RealmSubprotocol? in
            let older = version(name, prefix: olderPrefix).flatMap { $0 < oldestOlder ? nil : $0 }
            guard let version = version(name, prefix: prefix) ?? older, versions.contains(version) else { return nil }
            return RealmSubprotocol(version: version, name: name)
        }
        if let newest = common.max(by: { $0.version < $1.version }) { return newest }
        let value = String(offered.joined(separator: ", ").prefix(200))
        if asksForPartitions(offered) {
            throw RealmUpgradeRefusal(
                SluiceError(
                    .wrongProtocolVersion, "The client asks for partition-based sync, which is not served.", value: value,
                    fix: "Open the Realm with a flexible sync configuration."))
        }
        throw RealmUpgradeRefusal(
            SluiceError(
                .wrongProtocolVersion, "The client offers no subprotocol from \(prefix)2 to \(prefix)14.", value: value,
                fix: "Use an SDK with Flexible Sync."))
    }

    /// Returns `true` if a client offers partition-based sync, in its newer form or its older one.
    package static func asksForPartitions(_ offered: [String]) -> Bool {
        offered.contains { $0.hasPrefix(partitionPrefix) || $0.hasPrefix(olderPartitionPrefix) }
    }

    /// Returns the number after the prefix, if it is in its shortest form.
    private static func version(_ name: String, prefix: String) -> Int? {
        guard name.hasPrefix(prefix) else { return nil }
        let digits = name.dropFirst(prefix.count)
        guard digits.utf8.count <= 4, let version = Int(digits), String(version) == digits else { return nil }
        return version
    }
}

/// The codes that close a connection. Those after which a client would stay closed or report a broken protocol are missing.
package enum RealmCloseCode: UInt16, CaseIterable, Sendable {
    /// The client is reset: a message of it can never be accepted.
    case tooLarge = 1009
    /// The client retries with back-off.
    case internalError = 1011
    /// The client refreshes its token and reconnects.
    case unauthorized = 4001
    /// The client logs its user out.
    case forbidden = 4002
    /// The client asks for the location again and reconnects.
    case moved = 4003
}

/// A reason for which the gateway closes a connection.
package enum RealmCloseReason: Hashable, CaseIterable, Sendable {
    /// A message is over the bound.
    case tooLarge
    /// A message cannot be decoded, or is out of order.
    case protocolError
    /// The client has more messages, sessions or uploads under way than a connection may have.
    case overload
    case internalError
    case shutDown
    /// The client reads nothing.
    case slowClient
    /// The access token is not valid, or has expired.
    case unauthorized
    /// The user is disabled or deleted.
    case forbidden

    package var code: RealmCloseCode {
        switch self {
        case .tooLarge: .tooLarge
        case .protocolError, .overload, .internalError, .shutDown, .slowClient: .internalError
        case .unauthorized: .unauthorized
        case .forbidden: .forbidden
        }
    }

    /// The reason for a message that could not be decoded or kept, or an answer that could not be encoded.
    init(_ error: SluiceError) {
        self =
            switch error.code {
            case .limitsExceeded: .tooLarge
            case .tooManyRequests: .overload
            case .internalError: .internalError
            default: .protocolError
            }
    }
}

/// The bounds of messages, in bytes.
package struct RealmMessageLimits: Hashable, Sendable {
    /// One message on the wire.
    package var messageBytes: Int
    /// One body after decompression.
    package var bodyBytes: Int
    /// A body with more bytes is compressed if that makes it smaller.
    package var plainBytes: Int

    package init(messageBytes: Int = Limits.messageBytes, bodyBytes: Int = 2 * Limits.messageBytes, plainBytes: Int = 1_024) {
        (self.messageBytes, self.bodyBytes, self.plainBytes) = (messageBytes, bodyBytes, plainBytes)
    }
}
