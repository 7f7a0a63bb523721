import Crypto
package import SluiceCore
package import SluiceValues

/// A secret key that signs tokens by HS256, and verifies its own.
package struct TokenSecret: Sendable {
    private static let algorithmName = TokenAlgorithm.hs256.rawValue

    private let key: SymmetricKey
    /// The first part of its tokens, with the dot.
    private let header: String

    /// - Parameter id: The id that tokens name as `kid`. Tokens of a key with an empty id name none.
    /// - Throws: `configInvalid` for a key of fewer bytes than `IssuerKey.secretBytes`.
    package init(id: String, bytes: [UInt8]) throws(SluiceError) {
        guard bytes.count >= IssuerKey.secretBytes.lowerBound else {
            throw SluiceError(
                .configInvalid, "The signing key has \(bytes.count) bytes.",
                fix: "Use \(IssuerKey.secretBytes.lowerBound) random bytes or more.")
        }
        key = SymmetricKey(data: bytes)
        var members: [JSON.Member] = [.init("alg", .string(Self.algorithmName)), .init("typ", "JWT")]
        if !id.isEmpty { members.insert(.init("kid", .string(id)), at: 1) }
        header = Base64.encode(url: JSON.object(members).utf8) + "."
    }

    /// Returns a token in compact form (RFC 7515, section 7.1).
    package func sign(_ claims: JSON) -> String {
        let signed = header + Base64.encode(url: claims.utf8)
        let signature = HMAC<SHA256>.authenticationCode(for: Array(signed.utf8), using: key)
        return signed + "." + signature.withUnsafeBytes { Base64.encode(url: Array($0)) }
    }

    /// Returns `true` if the key made the signature.
    package func verifies(_ token: SignedToken) -> Bool {
        token.algorithm == Self.algorithmName
            && HMAC<SHA256>.isValidAuthenticationCode(token.signature, authenticating: token.signed, using: key)
    }
}
