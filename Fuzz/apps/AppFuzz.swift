// App directories under test by any texts of their files. Nothing may crash, and each problem must have a place and a text.
// `make fuzz` runs it.

import SluiceCore
import SluiceGateway

/// Reads a directory. An input is its files: each begins with a line of the marker and its path.
func run(_ bytes: [UInt8]) {
    let marker = "=== "
    var (files, path) = ([String: String](), "sync/config.json")
    for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false) {
        if line.hasPrefix(marker) { path = String(line.dropFirst(marker.count)) } else { files[path, default: ""] += line + "\n" }
    }
    let found = AppDirectory.examine(files: files)
    for problem in found.problems where problem.file.isEmpty || problem.line < 0 || "\(problem)".isEmpty {
        fatalError("a problem without a place or a text: \(problem)")
    }
    if found.problems.isEmpty, found.configuration == nil { fatalError("no app, and no problem") }
}

/// The name of the inputs in the last line of the output.
let tested = "app directories"
