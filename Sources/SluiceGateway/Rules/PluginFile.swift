import Crypto
import FoundationEssentials
package import SluiceCore
import SluicePluginHost
package import SluiceValues

/// The bytes of a plugin's file, with the check that the app's owner listed exactly these bytes.
package struct PluginFile: Sendable {
    let path: String
    private let bytes: [UInt8]
    package let sha256: String

    /// Reads the file. Blocks.
    ///
    /// - Throws: `pluginMissing`.
    package init(_ path: String) throws(SluiceError) {
        self.path = path
        bytes = try PluginImage.read(path)
        sha256 = Hex.encode(Array(SHA256.hash(data: bytes)))
    }

    /// Compares the bytes with their entry in the list.
    ///
    /// - Parameter keys: The public keys that may sign plugins. If there are any, a listed plugin needs the signature of one. A plugin
    ///   that ships with the gateway may go without.
    /// - Throws: `pluginAltered`.
    func check(_ listed: AppConfiguration.ListedPlugin, keys: [PluginKey]) throws(SluiceError) {
        if let expected = listed.sha256, expected != sha256 {
            throw SluiceError(.pluginAltered, "\(path) has the SHA-256 \(sha256), and the list has \(expected).")
        }
        guard !keys.isEmpty, !listed.isShipped || listed.signature != nil else { return }
        guard let signature = listed.signature else {
            throw SluiceError(
                .pluginAltered, "\(path) is listed without a signature, and this gateway loads only signed plugins.",
                fix: "Sign it with `sluice plugin add --sign`.")
        }
        guard PluginSignature(listed, sha256: sha256).isSigned(signature, by: keys) else {
            throw SluiceError(
                .pluginAltered,
                "The signature of \(path) was made by none of the keys that this gateway trusts, or for other settings in plugins.json.",
                fix: "Compare the settings, and sign them with `sluice plugin add --sign`.")
        }
    }

    /// Returns an image of the checked bytes. The file itself may have changed since.
    func image() throws(SluiceError) -> PluginImage { try PluginImage(bytes, path: path) }

    /// Signs the file with its entry in the list.
    ///
    /// - Parameters:
    ///   - entry: The entry, with its settings and without the signature.
    ///   - key: An Ed25519 key as `openssl genpkey -algorithm ed25519` writes it, or its 32 bytes in base64.
    /// - Throws: `configInvalid` if the key is invalid, and the first problem of the entry.
    package func signature(of entry: JSON, by key: String) throws(SluiceError) -> [UInt8] {
        try PluginSignature(of: entry, sha256: sha256).sign(by: key)
    }
}

/// A public Ed25519 key that signs plugins.
package struct PluginKey: Hashable, Sendable {
    private let bytes: [UInt8]

    // The DER bytes before the 32 bytes of a key, as OpenSSL writes them.
    static let privateHeader: [UInt8] = [48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32]
    private static let publicHeader: [UInt8] = [48, 42, 48, 5, 6, 3, 43, 101, 112, 3, 33, 0]

    /// - Parameter text: The key as `openssl pkey -pubout` writes it, or its 32 bytes in base64.
    /// - Throws: `configInvalid`.
    package init(_ text: String) throws(SluiceError) {
        guard let bytes = Self.bytes(of: text, der: Self.publicHeader) else {
            throw SluiceError(
                .configInvalid, "The text is not a public Ed25519 key.",
                fix: "Give the file that `openssl pkey -pubout` writes, or 32 bytes in base64.")
        }
        self.bytes = bytes
    }

    func verifies(_ signature: [UInt8], of content: [UInt8]) -> Bool {
        guard let key = try? Curve25519.Signing.PublicKey(rawRepresentation: bytes) else { return false }
        return key.isValidSignature(signature, for: content)
    }

    static func bytes(of text: String, der header: [UInt8]) -> [UInt8]? {
        let lines = text.split(whereSeparator: \.isNewline).filter { !$0.hasPrefix("-----") }
        guard let bytes = Base64.decode(lines.joined().filter { $0 != " " }) else { return nil }
        if bytes.count == 32 { return bytes }
        return bytes.count == header.count + 32 && bytes.starts(with: header) ? Array(bytes.dropFirst(header.count)) : nil
    }
}
