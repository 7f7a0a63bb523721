import NIOCore
import NIOSSL
package import SluiceCore
import Synchronization

/// The PEM files of a TLS server.
package struct TLSFiles: Hashable, Sendable {
    /// The server's certificate, followed by those that lead to its authority.
    package var certificateChain: String
    package var privateKey: String
    /// The certificates of the authorities of clients; nil to ask for no certificate.
    package var clientAuthorities: String?

    package init(certificateChain: String, privateKey: String, clientAuthorities: String? = nil) {
        self.certificateChain = certificateChain
        self.privateKey = privateKey
        self.clientAuthorities = clientAuthorities
    }

    package var paths: [String] { [certificateChain, privateKey] + (clientAuthorities.map { [$0] } ?? []) }

    /// Reads the files.
    ///
    /// The server speaks TLS 1.2 and 1.3, and offers `http/1.1` (RFC 7301). With authorities, it accepts only clients with a certificate
    /// of one.
    /// - Throws: `configInvalid` naming the file at fault.
    func read() throws(SluiceError) -> (context: NIOSSLContext, end: Int64) {
        let chain = try Self.certificates(certificateChain, "certificate chain")
        let key: NIOSSLPrivateKey
        do { key = try NIOSSLPrivateKey(file: privateKey, format: .pem) } catch {
            throw SluiceError(
                .configInvalid, "The private key \(privateKey) cannot be read.", fix: "Name a PEM file with a key without a passphrase.",
                cause: ErrorCause(error))
        }
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = ["http/1.1"]
        // Closing waits this long for the peer's close_notify, in addition to every other deadline.
        configuration.shutdownTimeout = .seconds(1)
        if let clientAuthorities {
            configuration.trustRoots = .certificates(try Self.certificates(clientAuthorities, "file of client authorities"))
            // The name in a client's certificate is not its address.
            configuration.certificateVerification = .noHostnameVerification
        }
        do {
            return (try NIOSSLContext(configuration: configuration), chain.map { Int64($0.notValidAfter) }.min() ?? 0)
        } catch {
            throw SluiceError(
                .configInvalid, "\(certificateChain) and \(privateKey) are not a pair.", fix: "Name the key of the first certificate.",
                cause: ErrorCause(error))
        }
    }

    /// Reads the files and returns the time at which a certificate of the chain expires first, in seconds since 1970.
    ///
    /// - Throws: `configInvalid` naming the file at fault.
    package func certificateEnd() throws(SluiceError) -> Int64 { try read().end }

    /// Reads the certificates of a PEM file.
    ///
    /// - Throws: `configInvalid` naming the file.
    static func certificates(_ path: String, _ what: String) throws(SluiceError) -> [NIOSSLCertificate] {
        do {
            let certificates = try NIOSSLCertificate.fromPEMFile(path)
            if !certificates.isEmpty { return certificates }
        } catch {
            throw SluiceError(
                .configInvalid, "The \(what) \(path) cannot be read.", fix: "Name a PEM file of certificates.", cause: ErrorCause(error))
        }
        throw SluiceError(.configInvalid, "The \(what) \(path) has no certificate.", fix: "Name a PEM file of certificates.")
    }
}

/// The TLS settings of a server, which can be replaced while it serves. A connection keeps those of its handshake.
final class ServerTLS: Sendable {
    private let files: TLSFiles
    private let state: Mutex<NIOSSLContext>

    /// - Throws: `configInvalid` naming the file at fault.
    init(_ files: TLSFiles) throws(SluiceError) {
        self.files = files
        state = Mutex(try files.read().context)
    }

    var context: NIOSSLContext { state.withLock(\.self) }

    /// Reads the files again. On failure, the settings stay as they are.
    ///
    /// - Returns: The time at which a certificate of the chain expires first, in seconds since 1970.
    /// - Throws: `configInvalid` naming the file at fault.
    func renew() throws(SluiceError) -> Int64 {
        let (context, end) = try files.read()
        state.withLock { $0 = context }
        return end
    }
}
