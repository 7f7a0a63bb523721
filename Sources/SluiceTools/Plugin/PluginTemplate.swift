import FoundationEssentials
package import SluiceCore

/// The files of a new plugin: `sluice plugin new`.
package struct PluginTemplate: Sendable {
    package enum Language: String, CaseIterable, Sendable { case swift, c }

    private let name: String
    private let language: Language
    private let package: String

    /// - Parameters:
    ///   - name: The name of the plugin, its folder and its library.
    ///   - package: The package with `SluicePluginKit` for a plugin in Swift: a path relative to the plugin's folder, or a URL.
    /// - Throws: `configInvalid` for a name that is not valid in Swift and C.
    package init(name: String, language: Language, package: String) throws(SluiceError) {
        let isName = name.utf8.first.map { (65...90).contains($0) || (97...122).contains($0) } ?? false
        guard isName, name.utf8.allSatisfy({ (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || $0 == 95 })
        else {
            throw SluiceError(
                .configInvalid, "'\(name)' cannot be a plugin's name.", fix: "Use letters, digits and '_', beginning with a letter.")
        }
        self.name = name
        self.language = language
        self.package = package
    }

    /// Creates the plugin's folder.
    ///
    /// - Throws: `configInvalid` if it exists or cannot be created.
    package func write(into parent: String) throws(SluiceError) {
        let folder = "\(parent)/\(name)"
        guard !FileManager.default.fileExists(atPath: folder) else {
            throw SluiceError(.configInvalid, "\(folder) already exists.", fix: "Choose another name, or another folder.")
        }
        do {
            for (path, text) in files {
                let file = URL(filePath: "\(folder)/\(path)")
                try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
                try Data(text.utf8).write(to: file)
            }
        } catch {
            throw SluiceError(.configInvalid, "\(folder) cannot be created.", cause: ErrorCause(error))
        }
    }

    /// The C headers of the interface, by file name. SwiftPM embeds the files of CSluicePlugin (`Headers` holds symbolic links to them).
    private static var headers: [String: String] {
        [
            "sluice_plugin.h": String(decoding: PackageResources.sluice_plugin_h, as: UTF8.self),
            "sluice_rows.h": String(decoding: PackageResources.sluice_rows_h, as: UTF8.self),
        ]
    }

    /// The texts of the files, by path in the plugin's folder.
    package var files: [String: String] {
        let files =
            switch language {
            case .c: PluginTemplateC.files.merging(Self.headers) { $1 }
            case .swift: PluginTemplateSwift.files
            }
        let manifestEntry = package.contains("://") ? "url: \"\(package)\", branch: \"main\"" : "path: \"\(package)\""
        let packageName = package.split(separator: "/").last.map { $0.hasSuffix(".git") ? String($0.dropLast(4)) : String($0) } ?? package
        return Dictionary(
            uniqueKeysWithValues: files.map { path, text in
                let filled = text.replacing("PLUGIN_NAME", with: name).replacing("SLUICE_PACKAGE_NAME", with: packageName)
                    .replacing("SLUICE_PACKAGE", with: manifestEntry)
                return (path.replacing("PLUGIN_NAME", with: name), filled)
            })
    }
}
