import Foundation
import SluiceCore
import SluiceGateway

/// The file of a gateway's admin tokens, for `sluice admin-token`.
package enum AdminTokenFile {
    /// Appends a token's line. A new file is readable by its owner alone.
    ///
    /// - Throws: `configInvalid` if the file cannot be written, or has a token of that name.
    package static func append(_ line: String, to path: String) throws {
        let manager = FileManager.default
        if !manager.fileExists(atPath: path) {
            _ = manager.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600])
        }
        guard let text = try? String(contentsOfFile: path, encoding: .utf8), let file = FileHandle(forWritingAtPath: path) else {
            throw SluiceError(.configInvalid, "The file \(path) cannot be written.", fix: "Name another with --add-to.")
        }
        let begin = text.isEmpty || text.hasSuffix("\n") ? "" : "\n"
        // The gateway rejects two tokens of one name, so the command checks the result before it writes.
        _ = try AdminTokens.parse(text + begin + line, of: path)
        try file.seekToEnd()
        try file.write(contentsOf: Data("\(begin)\(line)\n".utf8))
        try file.close()
    }
}
