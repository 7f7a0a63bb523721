import NIOSSL
package import SluiceCore
import SluiceValues

#if canImport(CryptoKit)
    import CryptoKit
#else
    import Crypto
#endif

/// The keys that an app expects of its server: each pin is the SHA-256 of a SubjectPublicKeyInfo in DER, in base64 (RFC 7469, 2.4).
///
/// One of the pins must be that of the key in the server's own certificate. A pin is an addition to the check of the certificate's
/// chain, and never replaces it. Without pins every trusted certificate is accepted.
package struct KeyPins: Hashable, Sendable {
    private let texts: [String]

    package init(_ texts: [String]) { self.texts = texts }

    package var isEmpty: Bool { texts.isEmpty }

    /// Checks the address and the pins themselves, before a connection.
    /// - Throws: `configInvalid` for a pin that is no SHA-256, `serverKeyMismatch` for an address without TLS.
    package func check(_ url: String, isSecure: Bool) throws(SluiceError) {
        guard !isEmpty else { return }
        _ = try digests()
        guard isSecure else {
            throw SluiceError(
                .serverKeyMismatch, "\(url) has no TLS, so the server shows no key, and the app expects one of \(texts.count).",
                fix: "Use an address with https, or remove the pins.")
        }
    }

    /// Checks a server's own certificate, whose chain has been verified.
    /// - Throws: `serverKeyMismatch` if none of the pins is that of its key.
    func check(_ certificate: NIOSSLCertificate, of host: String) throws(SluiceError) {
        guard !isEmpty else { return }
        let expected = try digests()
        let key: [UInt8]
        do { key = try certificate.extractPublicKey().toSPKIBytes() } catch {
            throw SluiceError(.serverKeyMismatch, "The certificate of \(host) has no key that can be read.", cause: ErrorCause(error))
        }
        let digest = Array(SHA256.hash(data: key))
        guard expected.contains(digest) else {
            throw SluiceError(
                .serverKeyMismatch,
                "The key of \(host) has the pin \(Base64.encode(digest)), which is none of the \(texts.count) that the app expects.",
                fix: "Check the network, as another server may pose as yours. If the server has a new key, release the app with its pin.")
        }
    }

    /// Checks a server's own certificate, in DER, for a platform that verifies the chain itself.
    /// - Throws: `serverKeyMismatch`.
    package func check(certificate bytes: [UInt8], of host: String) throws(SluiceError) {
        let certificate: NIOSSLCertificate
        do { certificate = try NIOSSLCertificate(bytes: bytes, format: .der) } catch {
            throw SluiceError(.serverKeyMismatch, "The certificate of \(host) cannot be read.", cause: ErrorCause(error))
        }
        try check(certificate, of: host)
    }

    /// The pins as hashes of 32 bytes.
    private func digests() throws(SluiceError) -> [[UInt8]] {
        try texts.map { text throws(SluiceError) in
            guard let digest = Base64.decode(text), digest.count == 32 else {
                throw SluiceError(
                    .configInvalid, "The pin '\(text.prefix(64))' is not a SHA-256 in base64, which has 44 characters.",
                    fix: "Write the base64 of the SHA-256 of the key's SubjectPublicKeyInfo.")
            }
            return digest
        }
    }
}
