import CSluiceSandbox
import Glibc
package import SluiceCore

/// The bytes of a plugin's library, read once. The checked bytes are the loaded ones, even if the file changes meanwhile.
///
/// Owns a sealed memory file, which no process can change, including the gateway.
package final class PluginImage: Sendable {
    /// The descriptor of the sealed file.
    let descriptor: Int32
    package let byteCount: Int

    /// Checks the library and copies it into a sealed file.
    /// - Parameter path: The path for errors; its last part names the mapping.
    /// - Throws: `pluginMissing` if the library is truncated; `pluginUnavailable` without memory or a descriptor.
    package init(_ bytes: [UInt8], path: String) throws(SluiceError) {
        try LibraryLength.check(bytes, path: path)
        let name = path.split(separator: "/").last.map(String.init) ?? path
        descriptor = unsafe bytes.withUnsafeBytes { unsafe sluice_sealed_file(name, $0.baseAddress, $0.count) }
        byteCount = bytes.count
        guard descriptor >= 0 else {
            throw SluiceError(.pluginUnavailable, "no memory for the plugin \(name)", cause: Descriptors.cause(errno))
        }
    }

    convenience init(readingFrom path: String) throws(SluiceError) {
        try self.init(Self.read(path), path: path)
    }

    /// Returns another image of the same bytes. The loader takes two descriptors of one image for one library.
    func copied(path: String) throws(SluiceError) -> PluginImage { try PluginImage(Self.read("/proc/self/fd/\(descriptor)"), path: path) }

    deinit { Descriptors.close(descriptor) }

    /// Reads a plugin's file. Blocks.
    /// - Throws: `pluginMissing`, with the path.
    package static func read(_ path: String) throws(SluiceError) -> [UInt8] {
        // Non-blocking, so that a path to a pipe or device cannot hang the gateway.
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else {
            throw SluiceError(
                .pluginMissing, "there is no readable plugin at \(path)", fix: "Correct the plugin's path.",
                cause: Descriptors.cause(errno))
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
