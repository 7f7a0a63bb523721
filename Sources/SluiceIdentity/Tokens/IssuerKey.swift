import Crypto
import JWTKit
package import SluiceCore
import SluiceValues

/// The signature algorithms of login tokens (RFC 7518, RFC 8037).
package enum TokenAlgorithm: String, CaseIterable, Sendable {
    case hs256 = "HS256"
    case rs256 = "RS256"
    case es256 = "ES256"
    case edDSA = "EdDSA"
}

/// A key that verifies the signatures of one algorithm.
///
/// A key has its algorithm from its own kind, never from a token. A public RSA key can therefore not serve as the secret of an HMAC.
package struct IssuerKey: Sendable {
    /// The id that tokens name as `kid`; nil for a key without one.
    package let id: String?
    package let algorithm: TokenAlgorithm
    private let verifier: any JWTAlgorithm

    /// The length of an HMAC secret, in bytes.
    package static let secretBytes = 32...512

    /// Makes a key of a shared secret for HS256.
    ///
    /// - Throws: `configInvalid` for a secret of another length than `secretBytes`. RFC 7518, section 3.2, requires 256 bits.
    package init(secret: String) async throws(SluiceError) {
        let bytes = Array(secret.utf8)
        guard Self.secretBytes.contains(bytes.count) else {
            throw SluiceError(
                .configInvalid, "A signing key of HS256 has \(bytes.count) bytes.",
                fix: "Use \(Self.secretBytes.lowerBound) to \(Self.secretBytes.upperBound) bytes.")
        }
        let keys = await JWTKeyCollection().add(hmac: HMACKey(key: SymmetricKey(data: bytes)), digestAlgorithm: .sha256)
        try await self.init(id: nil, .hs256, keys)
    }

    /// Makes a key of a public key or certificate in PEM form.
    ///
    /// - Throws: `configInvalid` if it is none of the algorithm, or an RSA key of less than 2,048 bits.
    package init(pem: String, _ algorithm: TokenAlgorithm) async throws(SluiceError) {
        let keys = JWTKeyCollection()
        do {
            let isCertificate = pem.contains("BEGIN CERTIFICATE")
            switch algorithm {
            case .rs256:
                let key = try isCertificate ? Insecure.RSA.PublicKey(certificatePEM: pem) : Insecure.RSA.PublicKey(pem: pem)
                await keys.add(rsa: key, digestAlgorithm: .sha256)
            case .es256: await keys.add(ecdsa: try isCertificate ? ES256PublicKey(certificate: pem) : ES256PublicKey(pem: pem))
            case .edDSA: await keys.add(eddsa: try EdDSA.PublicKey(pem: pem))
            case .hs256: throw SluiceError(.configInvalid, "HS256 has no public key.")
            }
        } catch {
            throw SluiceError(
                .configInvalid, "A signing key is no public key of \(algorithm.rawValue) in PEM form.",
                fix: "Give the text from -----BEGIN PUBLIC KEY----- to its end.", cause: ErrorCause(error))
        }
        try await self.init(id: nil, algorithm, keys)
    }

    /// Makes a key of a member of a key set (RFC 7517).
    ///
    /// - Returns: nil for a key of another use, kind or algorithm, and for one that is malformed.
    init?(member: JSON) async {
        let use = member["use"]?.string ?? "sig"
        let operations = member["key_ops"]?.array?.compactMap(\.string) ?? ["verify"]
        guard use == "sig", operations.contains("verify"), let algorithm = Self.algorithm(of: member),
            (member["alg"]?.string ?? algorithm.rawValue) == algorithm.rawValue
        else { return nil }
        let id = member["kid"]?.string
        do {
            // Only public members: a private one would make the library expect a private key.
            let names = ["kty", "n", "e", "x", "y", "crv"]
            let members = (member.members ?? []).filter { names.contains($0.key) }
            var key = try JWK(json: JSON.object(members).text)
            key.keyIdentifier = JWKIdentifier(string: id ?? "")
            key.algorithm = JWK.Algorithm(rawValue: algorithm.rawValue)
            try await self.init(id: id, algorithm, JWTKeyCollection().add(jwk: key))
        } catch {
            return nil
        }
    }

    private static func algorithm(of member: JSON) -> TokenAlgorithm? {
        switch (member["kty"]?.string, member["crv"]?.string) {
        case ("RSA", _): .rs256
        case ("EC", "P-256"): .es256
        case ("OKP", "Ed25519"): .edDSA
        default: nil
        }
    }

    private init(id: String?, _ algorithm: TokenAlgorithm, _ keys: JWTKeyCollection) async throws(SluiceError) {
        self.id = id
        self.algorithm = algorithm
        do {
            // The collection holds one key. It would take another for a token with an unknown `kid`, so `TokenVerifier` chooses the key.
            verifier = try await keys.getKey(alg: algorithm.rawValue)
        } catch {
            throw SluiceError(.configInvalid, "A signing key is no key of \(algorithm.rawValue).", cause: ErrorCause(error))
        }
    }

    /// Returns `true` if the key made the signature.
    func verifies(_ token: SignedToken) -> Bool { (try? verifier.verify(token.signature, signs: token.signed)) ?? false }
}

/// The keys of an issuer.
package struct IssuerKeySet: Sendable {
    /// The maximum number of keys.
    package static let maximumKeys = 100

    package let keys: [IssuerKey]

    package init(_ keys: [IssuerKey]) { self.keys = keys }

    /// Reads a JSON Web Key Set (RFC 7517, section 5). Keys that cannot verify login tokens are left out.
    ///
    /// - Throws: `outboundFailed` if it is no key set, has more than `maximumKeys`, or no key is usable.
    package init(jwks body: [UInt8]) async throws(SluiceError) {
        guard let members = (try? JSON.parse(body))?["keys"]?.array else {
            throw SluiceError(.outboundFailed, "The answer of the issuer is no JSON Web Key Set.")
        }
        guard members.count <= Self.maximumKeys else {
            throw SluiceError(
                .outboundFailed, "The key set of the issuer has \(members.count) keys, over the limit of \(Self.maximumKeys).")
        }
        var keys: [IssuerKey] = []
        for member in members { if let key = await IssuerKey(member: member) { keys.append(key) } }
        guard !keys.isEmpty else {
            let names = TokenAlgorithm.allCases.dropFirst().map(\.rawValue).joined(separator: ", ")
            throw SluiceError(.outboundFailed, "The key set of the issuer has no key of \(names).")
        }
        self.keys = keys
    }

    /// Returns the keys that may have signed a token: those with its key id, or all of its algorithm if it names none.
    ///
    /// Keys without an id match any. A configured key has none, and an issuer with one key may omit it.
    func candidates(for token: SignedToken) -> [IssuerKey] {
        keys.filter { $0.algorithm.rawValue == token.algorithm && (token.keyID == nil || $0.id == nil || $0.id == token.keyID) }
    }
}
