import FoundationEssentials
package import SluiceCore

/// The paths of the programs and plugins that ship with the gateway, relative to the running program.
package enum InstalledFiles {
    private static var folder: String {
        let path = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]
        return path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    }

    /// Returns the path of the plugin host. The environment variable `SLUICE_PLUGIN_HOST` overrides it.
    ///
    /// - Throws: `configMissing` if the file is not executable.
    package static func pluginHost() throws(SluiceError) -> String {
        let path = ProcessInfo.processInfo.environment["SLUICE_PLUGIN_HOST"] ?? "\(folder)/sluice-plugin-host"
        guard FileManager.default.isExecutableFile(atPath: path) else {
            throw SluiceError(
                .configMissing, "No plugin host is installed at \(path).",
                fix: "Install sluice-plugin-host beside sluice, or set SLUICE_PLUGIN_HOST.")
        }
        return path
    }

    /// Returns the path of a plugin that ships with the gateway; nil if it is not installed.
    package static func plugin(_ name: String) -> String? { plugin(file: file(ofPlugin: name)) }

    package static func file(ofPlugin name: String) -> String { "lib\(name).so" }

    static func plugin(file: String) -> String? {
        let places = ["\(folder)/\(file)", "\(folder)/../lib/sluice/plugins/\(file)"]
        return places.first { FileManager.default.fileExists(atPath: $0) }
    }
}
