import FoundationEssentials
package import SluiceCore
import SluiceValues

/// Reads an app directory.
package enum AppDirectory {
    /// The largest file, in bytes. A larger one is a problem.
    static let fileBytes = 16 << 20
    /// The maximum number of files. More are a problem.
    static let fileCount = 20_000

    /// The result of reading a directory, also of one with problems.
    package struct Examination: Sendable {
        /// The app; nil if its problems leave none.
        package var configuration: AppConfiguration?
        /// The problems by file and line. With any, a gateway does not start.
        package var problems: [ConfigProblem]
        package var notes: [ConfigNote]
    }

    /// Reads the whole directory at `path`. Blocks: call it at the start or on a thread of its own.
    ///
    /// - Parameter appID: The app id to use in place of the directory's own.
    package static func load(at path: String, appID: String? = nil) throws(AppDirectoryError) -> AppConfiguration {
        try read(files: try files(at: path), appID: appID)
    }

    /// Reads a directory from its files by relative path.
    package static func read(files: [String: String], appID: String? = nil) throws(AppDirectoryError) -> AppConfiguration {
        let found = examine(files: files, appID: appID)
        guard found.problems.isEmpty, let configuration = found.configuration else { throw AppDirectoryError(problems: found.problems) }
        return configuration
    }

    /// Reads a directory and reports all problems. A configuration without its problematic parts allows further checks.
    ///
    /// - Throws: `AppDirectoryError` if the files cannot be read.
    package static func examine(at path: String, appID: String? = nil) throws(AppDirectoryError) -> Examination {
        examine(files: try files(at: path), appID: appID)
    }

    package static func examine(files: [String: String], appID: String? = nil) -> Examination {
        let list = ProblemList(isLax: true)
        var read: [String: String] = [:]
        var trees: [String: ConfigNode] = [:]
        for (path, text) in files {
            switch AppFiles.place(of: path) {
            case .foreign, .source: continue
            case .read where AppFiles.isForeign(path, text): continue
            case .unserved, .template: read[path] = text
            case .misspelt(let name, let near):
                list.add(.configUnknownKey, file: path, "'\(name)' is not a known key.", fix: "Did you mean '\(near)'?")
            case .read:
                read[path] = text
                trees[path] = tree(of: text, named: path, list)
            }
        }
        let configuration = AppReader(trees: trees, files: read, list: list, appID: appID).read()
        let problems = list.problems.sorted { ($0.file, $0.line, $0.column) < ($1.file, $1.line, $1.column) }
        return Examination(
            configuration: configuration, problems: problems,
            notes: list.notes.sorted { ($0.file, $0.line, $0.column) < ($1.file, $1.line, $1.column) })
    }

    private static func tree(of text: String, named path: String, _ list: ProblemList) -> ConfigNode? {
        do throws(JSONError) {
            return ConfigNode(file: path, json: try JSON.located(Array(text.utf8)), list: list)
        } catch {
            list.add(.badJSON, file: path, line: error.line, column: error.column, "This is not valid JSON: \(error.problem).")
            return nil
        }
    }

    /// Returns the app's own files by path. A folder without effect is represented by one of its files, without text.
    package static func files(at root: String) throws(AppDirectoryError) -> [String: String] {
        let manager = FileManager.default
        let list = ProblemList()
        var isDirectory = false
        let exists = manager.fileExists(atPath: root, isDirectory: &isDirectory)
        guard exists, isDirectory, let paths = try? manager.subpathsOfDirectory(atPath: root) else {
            list.add(
                .configMissing, file: root,
                !exists
                    ? "The app directory does not exist."
                    : isDirectory ? "The app directory cannot be read." : "This is a file and no app directory.",
                fix: exists && isDirectory ? "Check its permissions." : "Name the directory with realm_config.json in it.")
            throw AppDirectoryError(problems: list.problems)
        }
        var files: [String: String] = [:]
        var unserved: Set<Substring> = []
        for path in paths.sorted() where [".json", ".js", ".txt", ".html"].contains(where: path.hasSuffix) {
            switch AppFiles.place(of: path) {
            case .foreign, .source: continue
            // A hosted site may have any number of files of any kind. One of them suffices for the note.
            case .unserved: if unserved.insert(path.prefix { $0 != "/" }).inserted { files[path] = "" }
            case .misspelt: files[path] = ""
            case .read, .template:
                // The file of another program may be anything.
                let list = path == AppFiles.oldMain ? ProblemList() : list
                if let text = text(of: root + "/" + path, named: path, list), !AppFiles.isForeign(path, text) { files[path] = text }
            }
            if files.count > fileCount {
                list.add(.configInvalid, file: root, "There are more than \(fileCount) files here.")
                break
            }
        }
        guard list.problems.isEmpty else { throw AppDirectoryError(problems: list.problems) }
        return files
    }

    /// Returns the files of features that the gateway does not run, by path. Sources have no text, and hosted files are left out.
    package static func unservedFiles(at root: String) -> [String: String] {
        let list = ProblemList()
        var files: [String: String] = [:]
        for path in ((try? FileManager.default.subpathsOfDirectory(atPath: root)) ?? []).sorted() where files.count < fileCount {
            let parts = path.split(separator: "/")
            guard describesFeature(path, parts), parts[0] != "hosting" || parts.count == 2 else { continue }
            if path.hasSuffix(".js"), parts[0] == "functions" { files[path] = "" }
            // A file that is not text has no description of a feature.
            if path.hasSuffix(".json") { files[path] = text(of: root + "/" + path, named: path, list) }
        }
        return files
    }

    private static func describesFeature(_ path: String, _ parts: [Substring]) -> Bool {
        switch AppFiles.place(of: path) {
        case .unserved, .source: true
        case .read:
            parts[0] == "functions" || parts[0] == "triggers" || parts[0] == "services" && parts.count == 3 && parts[2] == "config.json"
        case .foreign, .misspelt, .template: false
        }
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
        // Editors on Windows write a byte-order mark, which is no part of JSON.
        guard let text = String(validating: data.starts(with: [0xEF, 0xBB, 0xBF]) ? data.dropFirst(3) : data, as: UTF8.self) else {
            list.add(.configInvalid, file: name, "The file is not UTF-8.")
            return nil
        }
        return text
    }
}

extension AppConfiguration {
    /// Loads an app directory. The error's message lists all problems.
    ///
    /// - Parameter appID: The app id to use in place of the directory's own.
    package static func load(_ path: String, appID: String? = nil) throws(SluiceError) -> AppConfiguration {
        do {
            return try AppDirectory.load(at: path, appID: appID)
        } catch {
            throw SluiceError(error.asSluiceError.code, error.problems.map(\.description).joined(separator: "\n"), fix: "")
        }
    }
}
