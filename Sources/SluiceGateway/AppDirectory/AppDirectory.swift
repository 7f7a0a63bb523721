import FoundationEssentials
package import SluiceCore
import SluiceValues

/// Reads an app directory.
package enum AppDirectory {
    /// The largest file, in bytes. A larger one is a problem.
    static let fileBytes = 16 << 20
    /// The maximum number of files. More are a problem.
    static let fileCount = 20_000

    /// Reads the whole directory at `path`. Blocks: call it at the start or on a thread of its own.
    package static func load(at path: String) throws(AppDirectoryError) -> AppConfiguration {
        try read(files: try files(at: path))
    }

    /// Reads a directory from its files by relative path.
    package static func read(files: [String: String]) throws(AppDirectoryError) -> AppConfiguration {
        let list = ProblemList()
        var trees: [String: ConfigNode] = [:]
        for (path, text) in files where path.hasSuffix(".json") && !isWithoutEffect(path) {
            do throws(JSONError) {
                trees[path] = ConfigNode(file: path, json: try JSON.located(Array(text.utf8)), list: list)
            } catch {
                list.add(.badJSON, file: path, line: error.line, column: error.column, "This is not valid JSON: \(error.problem).")
            }
        }
        let reader = AppReader(trees: trees, paths: Set(files.keys), list: list)
        let configuration = reader.read(files: files)
        guard list.problems.isEmpty, let configuration else {
            throw AppDirectoryError(problems: list.problems.sorted { ($0.file, $0.line, $0.column) < ($1.file, $1.line, $1.column) })
        }
        return configuration
    }

    private static func files(at root: String) throws(AppDirectoryError) -> [String: String] {
        let manager = FileManager.default
        let list = ProblemList()
        var isDirectory = false
        guard manager.fileExists(atPath: root, isDirectory: &isDirectory), isDirectory,
            let paths = try? manager.subpathsOfDirectory(atPath: root)
        else {
            list.add(
                .configMissing, file: root, "The app directory does not exist.", fix: "Name the directory with realm_config.json in it.")
            throw AppDirectoryError(problems: list.problems)
        }
        var files: [String: String] = [:]
        var unread: Set<Substring> = []
        for path in paths.sorted() where !isHidden(path) {
            guard path.hasSuffix(".json") || path.hasSuffix(".js") else { continue }
            if isWithoutEffect(path) {
                // The first file of such a folder suffices for the note. A hosted site may have any number of files of any kind.
                if unread.insert(path.prefix { $0 != "/" }).inserted { files[path] = "" }
                continue
            }
            if let text = text(of: root + "/" + path, named: path, list) { files[path] = text }
            if files.count > fileCount {
                list.add(.configInvalid, file: root, "There are more than \(fileCount) files here.")
                break
            }
        }
        guard list.problems.isEmpty else { throw AppDirectoryError(problems: list.problems) }
        return files
    }

    private static func isWithoutEffect(_ path: String) -> Bool {
        AppReader.filesWithoutEffect.contains(path) || AppReader.withoutEffect.contains(String(path.prefix { $0 != "/" }))
    }

    /// `true` for hidden files and for plugin folders, whose files belong to the plugins.
    private static func isHidden(_ path: String) -> Bool {
        path.hasPrefix("plugins/") || path.split(separator: "/").contains { $0.hasPrefix(".") || $0 == "node_modules" }
    }

    /// Returns the text of a file. nil with a problem if it cannot be read, and nil without one for a directory.
    static func text(of file: String, named name: String, _ list: ProblemList) -> String? {
        guard let data = FileManager.default.contents(atPath: file) else {
            // A directory may be named x.json.
            var isDirectory = false
            if FileManager.default.fileExists(atPath: file, isDirectory: &isDirectory), isDirectory { return nil }
            list.add(.configInvalid, file: name, "The file cannot be read.", fix: "Check its permissions.")
            return nil
        }
        guard data.count <= fileBytes else {
            list.add(.configInvalid, file: name, "The file has \(data.count) bytes, over the limit of \(fileBytes).")
            return nil
        }
        guard let text = String(validating: data, as: UTF8.self) else {
            list.add(.configInvalid, file: name, "The file is not UTF-8.")
            return nil
        }
        return text
    }
}

extension AppConfiguration {
    /// Loads an app directory. The error's message lists all problems.
    package static func load(_ path: String) throws(SluiceError) -> AppConfiguration {
        do {
            return try AppDirectory.load(at: path)
        } catch {
            throw SluiceError(error.asSluiceError.code, error.problems.map(\.description).joined(separator: "\n"), fix: "")
        }
    }
}
