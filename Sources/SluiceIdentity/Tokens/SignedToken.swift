package import SluiceCore
package import SluiceValues

/// A JWT in compact form (RFC 7515, section 7.1), decoded. Nothing in it is proven until a key has verified the signature.
package struct SignedToken: Sendable {
    /// The longest token, in bytes. A longer one is rejected before it is decoded.
    package static let maximumBytes = 64 << 10

    /// The algorithm that the token names, such as `RS256`.
    package let algorithm: String
    /// The id of the key that the token names.
    package let keyID: String?
    /// The payload, an object.
    package let claims: JSON
    /// The bytes that the signature covers.
    let signed: [UInt8]
    let signature: [UInt8]

    /// Decodes a token.
    ///
    /// - Throws: `loginTokenRejected` for a text that is no signed JWT, and for one with critical extensions (RFC 7515, section 4.1.11).
    package init(_ text: String) throws(SluiceError) {
        guard text.utf8.count <= Self.maximumBytes else {
            throw Self.rejected("it has \(text.utf8.count) bytes, over the limit of \(Self.maximumBytes)")
        }
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3 else { throw Self.rejected("it has \(parts.count) parts, not 3") }
        let header = try Self.object(parts[0], "header")
        guard let algorithm = header["alg"]?.string else { throw Self.rejected("its header names no algorithm") }
        guard header["crit"] == nil else { throw Self.rejected("its header has critical extensions, which are not supported") }
        guard let signature = Base64.decode(url: parts[2]), !signature.isEmpty else { throw Self.rejected("it has no signature") }
        claims = try Self.object(parts[1], "payload")
        self.algorithm = algorithm
        self.signature = signature
        keyID = header["kid"]?.string
        signed = Array(text.utf8.prefix(parts[0].count + 1 + parts[1].count))
    }

    private static func object(_ part: Substring.UTF8View, _ name: String) throws(SluiceError) -> JSON {
        guard let bytes = Base64.decode(url: part) else { throw rejected("its \(name) is not base64url") }
        guard let json = try? JSON.parse(bytes), json.members != nil else { throw rejected("its \(name) is not a JSON object") }
        return json
    }

    /// Returns the error for a token, with the reason for the operator's log only: it would help to forge tokens.
    static func rejected(_ reason: String) -> SluiceError {
        SluiceError(.loginTokenRejected, "The login token is not accepted.", value: reason)
    }
}
