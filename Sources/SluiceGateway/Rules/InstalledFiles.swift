import FoundationEssentials
import SluiceCore

/// Where the programs and plugins that ship together lie: beside the running program.
enum InstalledFiles {
    private static var folder: String {
        let path = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]
        return path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    }

    /// The program that plugins run in. SLUICE_PLUGIN_HOST names another.
    static func pluginHost() throws(SluiceError) -> String {
        let path = ProcessInfo.processInfo.environment["SLUICE_PLUGIN_HOST"] ?? "\(folder)/sluice-plugin-host"
        guard FileManager.default.isExecutableFile(atPath: path) else {
            throw SluiceError(
                .configMissing, "There is no plugin host at \(path).",
                fix: "Install sluice-plugin-host beside sluice, or set SLUICE_PLUGIN_HOST.")
        }
        return path
    }

    /// A plugin that ships with the gateway; nil when it is not there.
    static func plugin(_ name: String) -> String? { plugin(file: file(ofPlugin: name)) }

    static func file(ofPlugin name: String) -> String { "lib\(name).so" }

    static func plugin(file: String) -> String? {
        let places = ["\(folder)/\(file)", "\(folder)/../lib/sluice/plugins/\(file)"]
        return places.first { FileManager.default.fileExists(atPath: $0) }
    }
}
