import FoundationEssentials
package import SluiceCore
import SluiceGateway

/// Files beside those that a directory has. An existing file is never written.
package struct DirectoryPlan: Sendable {
    package let directory: String
    /// The texts to write, by path.
    package private(set) var new: [String: String] = [:]
    /// The paths whose file has the text already.
    package private(set) var equal: [String] = []
    /// The differences of existing files, by path: lines of `LineDifference`. Empty if the file is too long, or no text.
    package private(set) var differences: [String: [String]] = [:]
    /// The missing texts that do not fit a kept file beside them, by path: links of a `schema.json` that differs. They are not written.
    package private(set) var withheld: [String: String] = [:]

    /// Compares texts with the files of a directory, which may be missing.
    ///
    /// - Throws: `configInvalid` if the path is a file.
    package init(_ texts: [String: String], in directory: String) throws(SluiceError) {
        self.directory = directory
        let manager = FileManager.default
        var isFolder = false
        if manager.fileExists(atPath: directory, isDirectory: &isFolder), !isFolder {
            throw SluiceError(.configInvalid, "\(directory) is a file.", fix: "Name a directory, or one that does not exist yet.")
        }
        // Of the files that can name the app, the first counts, whatever it is called.
        let isNamed = AppFiles.main.contains { manager.fileExists(atPath: "\(directory)/\($0)") }
        for (path, text) in texts {
            let file = "\(directory)/\(path)"
            guard manager.fileExists(atPath: file) else {
                if !isNamed || !AppFiles.main.contains(path) { new[path] = text }
                continue
            }
            let found = manager.contents(atPath: file).flatMap { String(validating: $0, as: UTF8.self) }
            if found == text {
                equal.append(path)
            } else {
                differences[path] = found.flatMap { LineDifference.between($0, text) } ?? []
            }
        }
        equal.sort()
        withhold()
    }

    /// Takes out the links of classes whose schema is not the one that the links were drafted for.
    private mutating func withhold() {
        for (path, text) in new where path.hasSuffix("/\(Self.links)") {
            guard differences[path.dropLast(Self.links.count) + Self.schema] != nil else { continue }
            withheld[path] = text
            new[path] = nil
        }
    }

    private static let (links, schema) = ("relationships.json", "schema.json")

    /// Writes the new files. A file that appeared meanwhile stays as it is.
    ///
    /// - Throws: `configInvalid` for the first file that cannot be written. Those before it exist then, and a second run writes the rest.
    package func write() throws(SluiceError) {
        for (path, text) in new.sorted(by: { $0.key < $1.key }) {
            let file = "\(directory)/\(path)"
            let folder = file.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
            do {
                try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
                try Data(text.utf8).write(to: URL(filePath: file), options: .withoutOverwriting)
            } catch {
                throw SluiceError(
                    .configInvalid, "The file \(file) cannot be written.",
                    fix: "Check the permissions of the directory, and that no other program writes there.", cause: ErrorCause(error))
            }
        }
    }
}
