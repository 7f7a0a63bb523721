import Crypto
import CryptoExtras
import Foundation
package import SluiceValues

/// An issuer of login tokens with a key of each algorithm. It signs whatever it is given.
package struct TestIssuer: Sendable {
    package enum Algorithm: String, CaseIterable, Sendable {
        case hs256 = "HS256"
        case rs256 = "RS256"
        case es256 = "ES256"
        case edDSA = "EdDSA"
    }

    /// The secret of HS256.
    package let secret: String
    /// The name of the issuer, as `iss`.
    package let name: String
    /// The prefix of the key ids.
    package let generation: String
    private let rsa: _RSA.Signing.PrivateKey
    private let p256 = P256.Signing.PrivateKey()
    private let ed25519 = Curve25519.Signing.PrivateKey()

    package init(
        name: String = "https://issuer.example", secret: String = "0123456789abcdef0123456789abcdef", generation: String = "a"
    ) throws {
        self.name = name
        self.secret = secret
        self.generation = generation
        rsa = try _RSA.Signing.PrivateKey(keySize: .bits2048)
    }

    package func keyID(_ algorithm: Algorithm) -> String { "\(generation)-\(algorithm.rawValue)" }

    /// The public RSA key in PEM form.
    package var rsaPEM: String { rsa.publicKey.pemRepresentation }
    package var p256PEM: String { p256.publicKey.pemRepresentation }

    /// The public keys as a JSON Web Key Set.
    package func keySet() throws -> JSON {
        let primitives = try rsa.publicKey.getKeyPrimitives()
        let point = p256.publicKey.x963Representation
        return [
            "keys": [
                [
                    "kty": "RSA", "use": "sig", "alg": "RS256", "kid": .string(keyID(.rs256)),
                    "n": .string(Self.base64URL(primitives.modulus)),
                    "e": .string(Self.base64URL(primitives.publicExponent)),
                ],
                [
                    "kty": "EC", "crv": "P-256", "kid": .string(keyID(.es256)), "x": .string(Self.base64URL(point.dropFirst().prefix(32))),
                    "y": .string(Self.base64URL(point.suffix(32))),
                ],
                [
                    "kty": "OKP", "crv": "Ed25519", "kid": .string(keyID(.edDSA)),
                    "x": .string(Self.base64URL(ed25519.publicKey.rawRepresentation)),
                ],
            ]
        ]
    }

    /// Returns a token with these claims, signed by the key of the algorithm.
    ///
    /// - Parameter header: The header; nil for one that names the algorithm and its key.
    package func token(_ claims: JSON, _ algorithm: Algorithm, header: JSON? = nil) throws -> String {
        let header = header ?? ["alg": .string(algorithm.rawValue), "kid": .string(keyID(algorithm)), "typ": "JWT"]
        let signed = Self.base64URL(Data(header.utf8)) + "." + Self.base64URL(Data(claims.utf8))
        return signed + "." + Self.base64URL(try signature(Data(signed.utf8), algorithm))
    }

    private func signature(_ message: Data, _ algorithm: Algorithm) throws -> Data {
        switch algorithm {
        case .hs256: Self.hmac(message, secret: Data(secret.utf8))
        case .rs256: try rsa.signature(for: SHA256.hash(data: message), padding: .insecurePKCS1v1_5).rawRepresentation
        case .es256: try p256.signature(for: message).rawRepresentation
        case .edDSA: try ed25519.signature(for: message)
        }
    }

    /// Returns a token of HS256 with any secret, such as another's public key.
    package static func forged(_ claims: JSON, header: JSON = ["alg": "HS256"], secret: String) -> String {
        let signed = base64URL(Data(header.utf8)) + "." + base64URL(Data(claims.utf8))
        return signed + "." + base64URL(hmac(Data(signed.utf8), secret: Data(secret.utf8)))
    }

    private static func hmac(_ message: Data, secret: Data) -> Data {
        Data(HMAC<SHA256>.authenticationCode(for: message, using: SymmetricKey(data: secret)))
    }

    /// Returns the SHA-256 of a text in hexadecimal digits.
    package static func digest(_ text: String) -> String { Hex.encode(SHA256.hash(data: Data(text.utf8))) }

    package static func base64URL(_ data: some Sequence<UInt8>) -> String {
        Data(data).base64EncodedString().replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
            .replacingOccurrences(of: "=", with: "")
    }
}
