import Foundation
package import SluiceCore
package import SluiceValues

/// The files that `sluice plugin check` and `sluice plugin add` read.
package enum PluginConfigFile {
    /// Reads the configuration of a plugin.
    package static func json(_ path: String) throws(SluiceError) -> (json: JSON, file: String) {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw SluiceError(.configMissing, "\(path) cannot be read.")
        }
        do throws(JSONError) { return (try JSON.located(Array(data)), path) } catch {
            throw SluiceError(.badJSON, "\(path):\(error.line):\(error.column): this is not valid JSON: \(error.problem).")
        }
    }

    /// Reads a key to sign a plugin with.
    package static func key(_ path: String) throws(SluiceError) -> String {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            throw SluiceError(.configMissing, "The key \(path) cannot be read.")
        }
        return text
    }
}
