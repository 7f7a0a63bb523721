import CSluiceSandbox
import Glibc
package import SluiceCore

/// The bytes of a plugin's library, read once: what is checked is what is loaded, whatever becomes of the file meanwhile.
///
/// Holds a file in memory that nobody can change, the gateway included, for as long as it lives.
package final class PluginImage: Sendable {
    /// The sealed file.
    let descriptor: Int32
    package let byteCount: Int

    /// - Parameter path: what errors name, and, its last part, what whoever looks at the process's mappings sees.
    /// - Throws: `pluginMissing` when the library is cut short, `pluginUnavailable` when there is no memory or descriptor for it.
    package init(_ bytes: [UInt8], path: String) throws(SluiceError) {
        try LibraryLength.check(bytes, path: path)
        let name = path.split(separator: "/").last.map(String.init) ?? path
        descriptor = unsafe bytes.withUnsafeBytes { unsafe sluice_sealed_file(name, $0.baseAddress, $0.count) }
        byteCount = bytes.count
        guard descriptor >= 0 else {
            throw SluiceError(.pluginUnavailable, "there is no room for the plugin \(name): \(Descriptors.text(errno))")
        }
    }

    convenience init(readingFrom path: String) throws(SluiceError) {
        try self.init(Self.read(path), path: path)
    }

    deinit { Descriptors.close(descriptor) }

    /// The bytes of a plugin's file. Blocks.
    /// - Throws: `pluginMissing`, naming the file.
    package static func read(_ path: String) throws(SluiceError) -> [UInt8] {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else {
            throw SluiceError(
                .pluginMissing, "there is no readable plugin at \(path): \(Descriptors.text(errno))", fix: "Correct the plugin's path.")
        }
        defer { Descriptors.close(file) }
        var bytes: [UInt8] = []
        while case .bytes(let more) = Descriptors.read(file) {
            bytes.append(contentsOf: more)
            guard bytes.count <= PluginLimits.imageBytes else {
                throw SluiceError(.pluginMissing, "\(path) cannot be loaded: it has more than \(PluginLimits.imageBytes) bytes")
            }
        }
        return bytes
    }
}
