import Crypto
import SluicePorts

/// AES-256-GCM (NIST SP 800-38D) with a key that all gateways of an app share. A sealed text is a random nonce of 12 bytes, the
/// ciphertext, and a tag of 16 bytes.
package struct KeySealer: Sealer {
    private let key: SymmetricKey

    /// - Parameter key: 32 random bytes.
    package init(key: [UInt8]) { self.key = SymmetricKey(data: key) }

    package func seal(_ content: [UInt8], context: [UInt8]) -> [UInt8] {
        // Sealing fails only for contents larger than any message.
        guard let box = try? AES.GCM.seal(content, using: key, authenticating: context).combined else { return [] }
        return [UInt8](box)
    }

    package func open(_ sealed: [UInt8], context: [UInt8]) -> [UInt8]? {
        guard let box = try? AES.GCM.SealedBox(combined: sealed), let content = try? AES.GCM.open(box, using: key, authenticating: context)
        else { return nil }
        return [UInt8](content)
    }
}
