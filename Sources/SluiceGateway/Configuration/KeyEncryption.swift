import Crypto
package import SluiceCore
package import SluicePorts

/// The secret that encrypts the app's keys in the database, from the environment or a file.
package enum KeyEncryption {
    package static let variable = "SLUICE_KEY_ENCRYPTION"
    /// The secret of before, during a change of it.
    package static let previous = "SLUICE_KEY_ENCRYPTION_PREVIOUS"
    /// The shortest secret, in bytes.
    static let secretBytes = 32

    /// Returns the sealers for the keys; none if no secret is set. The first encrypts.
    ///
    /// - Throws: `configInvalid` for a secret that is too short or cannot be read; `configMissing` if only the one of before is set.
    package static func sealers(_ environment: ProcessEnvironment = ProcessEnvironment()) throws(SluiceError) -> [any Sealer] {
        guard let secret = try environment.secret(variable) else {
            guard try environment.secret(previous) == nil else {
                throw SluiceError(.configMissing, "\(previous) is set without \(variable).", fix: "Set \(variable) to the new secret.")
            }
            return []
        }
        var sealers: [any Sealer] = [try sealer(secret, variable)]
        if let before = try environment.secret(previous) { sealers.append(try sealer(before, previous)) }
        return sealers
    }

    private static func sealer(_ secret: String, _ name: String) throws(SluiceError) -> KeySealer {
        let bytes = Array(secret.utf8)
        guard bytes.count >= secretBytes else {
            throw SluiceError(
                .configInvalid, "The secret \(name) has \(bytes.count) bytes.",
                fix: "Use \(secretBytes) or more, such as the output of `openssl rand -hex 32`.")
        }
        // RFC 5869. The secret has enough entropy, so no slow derivation is needed.
        let key = HKDF<SHA256>.deriveKey(
            inputKeyMaterial: SymmetricKey(data: bytes), info: Array("sluice.signing_key".utf8), outputByteCount: 32)
        return KeySealer(key: key.withUnsafeBytes { Array($0) })
    }
}
