import Crypto
import SluiceCore
import SluicePluginHost
import SluiceValues

/// The content that the signature of a plugin covers: the bytes of its file, and its entry in `plugins.json`.
///
/// The entry decides about the boundary of the plugin, its limits and its verdicts. If the signature covered the file alone, write access
/// to the app directory would suffice to run a signed plugin inside of the gateway, or with another configuration.
struct PluginSignature {
    private let content: [UInt8]

    /// - Parameter sha256: The hash of the file's bytes, in lower-case hexadecimal digits.
    init(_ listed: AppConfiguration.ListedPlugin, sha256: String) {
        let deadlines = listed.deadlines.map { JSON.Member($0.key.name, .string("\($0.value)")) }
        let entry: JSON = [
            "file": .string(listed.file), "sha256": .string(sha256), "in_process": .bool(listed.isInProcess),
            "deadline_ns": listed.deadline.map { .string("\($0)") } ?? .null, "deadlines_ns": .object(deadlines),
            "memory_bytes": listed.memoryBytes.map { .string("\($0)") } ?? .null, "config": listed.config,
        ]
        // The first line keeps a signature of anything else from being one of a plugin.
        content = Array("sluice plugin 1\n\(entry.sorted.text)".utf8)
    }

    /// Reads an entry of `plugins.json`.
    ///
    /// - Throws: The first problem of the entry.
    init(of entry: JSON, sha256: String) throws(SluiceError) {
        let problems = ProblemList()
        let plugins = PluginListReader(list: problems).read(
            ConfigNode(file: PluginListReader.file, json: ["plugins": [entry]], list: problems))
        if let problem = problems.problems.first { throw problem.error }
        guard let listed = plugins.first else { throw SluiceError(.configInvalid, "The entry names no plugin.") }
        self.init(listed, sha256: sha256)
    }

    /// `true` if one of the keys has made the signature.
    func isSigned(_ signature: [UInt8], by keys: [PluginKey]) -> Bool { keys.contains { $0.verifies(signature, of: content) } }

    /// Signs the content.
    ///
    /// - Parameter key: An Ed25519 key as `openssl genpkey -algorithm ed25519` writes it, or its 32 bytes in base64.
    /// - Throws: `configInvalid` if the key is invalid.
    func sign(by key: String) throws(SluiceError) -> [UInt8] {
        guard let seed = PluginKey.bytes(of: key, der: PluginKey.privateHeader),
            let signer = try? Curve25519.Signing.PrivateKey(rawRepresentation: seed),
            let signature = try? signer.signature(for: content)
        else {
            throw SluiceError(
                .configInvalid, "The file is not a private Ed25519 key.",
                fix: "Create one with `openssl genpkey -algorithm ed25519 -out key.pem`.")
        }
        return Array(signature)
    }
}

extension JSON {
    /// The same value with the members of each object in the order of their keys.
    fileprivate var sorted: JSON {
        switch self {
        case .object(let members):
            .object(members.map { JSON.Member($0.key, $0.value.sorted) }.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) })
        case .array(let elements): .array(elements.map(\.sorted))
        default: self
        }
    }
}
