import Crypto
import JWTKit
package import SluiceCore
package import SluiceValues

/// A secret key that signs tokens by HS256, and verifies its own.
package struct TokenSecret: Sendable {
    private static let algorithmName = TokenAlgorithm.hs256.rawValue

    private let algorithm: any JWTAlgorithm
    /// The first part of its tokens, with the dot.
    private let header: String

    /// - Parameter id: The id that tokens name as `kid`. Tokens of a key with an empty id name none.
    /// - Throws: `configInvalid` for a key of fewer bytes than `IssuerKey.secretBytes`.
    package init(id: String, bytes: [UInt8]) async throws(SluiceError) {
        guard bytes.count >= IssuerKey.secretBytes.lowerBound else {
            throw SluiceError(
                .configInvalid, "The signing key has \(bytes.count) bytes.",
                fix: "Use \(IssuerKey.secretBytes.lowerBound) random bytes or more.")
        }
        do {
            algorithm = try await JWTKeyCollection().add(hmac: HMACKey(key: SymmetricKey(data: bytes)), digestAlgorithm: .sha256)
                .getKey(alg: Self.algorithmName)
        } catch {
            throw SluiceError(.internalError, "The signing key cannot be used.", cause: ErrorCause(error))
        }
        var members: [JSON.Member] = [.init("alg", .string(Self.algorithmName)), .init("typ", "JWT")]
        if !id.isEmpty { members.insert(.init("kid", .string(id)), at: 1) }
        header = Base64.encode(url: JSON.object(members).utf8) + "."
    }

    /// Returns a token in compact form (RFC 7515, section 7.1).
    package func sign(_ claims: JSON) throws(SluiceError) -> String {
        let signed = header + Base64.encode(url: claims.utf8)
        do {
            return signed + "." + Base64.encode(url: Array(try algorithm.sign(Array(signed.utf8))))
        } catch {
            throw SluiceError(.internalError, "A token could not be created.", cause: ErrorCause(error))
        }
    }

    /// Returns `true` if the key made the signature.
    package func verifies(_ token: SignedToken) -> Bool {
        token.algorithm == Self.algorithmName && (try? algorithm.verify(token.signature, signs: token.signed)) == true
    }
}
