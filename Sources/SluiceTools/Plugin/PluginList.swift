import FoundationEssentials
package import SluiceCore
import SluiceGateway
import SluicePluginHost
package import SluiceValues

/// The `plugins.json` of an app directory, for changes: `sluice plugin add`.
package struct PluginList: Sendable {
    private let directory: String
    private var entries: [JSON]

    /// Reads the list. A missing file is an empty list.
    ///
    /// - Throws: The first problem, with file and line.
    package init(of directory: String) throws(SluiceError) {
        self.directory = directory
        entries = try PluginListReader.entries(of: directory)
    }

    /// Returns the SHA-256 of a file, in the form of the list.
    package static func sha256(of file: String) throws(SluiceError) -> String { try PluginFile(file).sha256 }

    /// Lists a file in its current state, in place of an entry of the same file or at the end. Other members of the entry stay.
    ///
    /// A file outside of the app directory is copied to `plugins/NAME/` in it. `NAME` is the file's name without `lib` and `.so`.
    ///
    /// - Parameter key: A private Ed25519 key that signs the file; nil to list it without a signature.
    /// - Returns: The entry.
    package mutating func add(_ file: String, signedWith key: String? = nil, config: JSON? = nil) throws(SluiceError) -> JSON {
        let plugin = try PluginFile(file)
        let name = try place(file)
        var members = entries.first { $0["file"]?.string == name }?.members ?? [JSON.Member("file", .string(name))]
        func set(_ key: String, _ value: JSON?) {
            members.removeAll { $0.key == key }
            if let value { members.append(JSON.Member(key, value)) }
        }
        set("sha256", .string(plugin.sha256))
        if let config { set("config", config) }
        set("signature", nil)
        // Last, as it covers the other members.
        if let key { set("signature", .string(Base64.encode(try plugin.signature(of: .object(members), by: key)))) }
        let entry = JSON.object(members)
        if let index = entries.firstIndex(where: { $0["file"]?.string == name }) {
            entries[index] = entry
        } else {
            entries.append(entry)
        }
        try write()
        return entry
    }

    /// Returns the file's name in the list. Copies the file into the app directory if necessary.
    private func place(_ file: String) throws(SluiceError) -> String {
        let (inside, manager) = (absolute(directory) + "/", FileManager.default)
        if absolute(file).hasPrefix(inside) { return String(absolute(file).dropFirst(inside.count)) }
        let base = file.split(separator: "/").last.map(String.init) ?? file
        let stem = (base.hasPrefix("lib") ? String(base.dropFirst(3)) : base).split(separator: ".").first.map(String.init) ?? base
        let folder = "\(directory)/plugins/\(stem)"
        do {
            try manager.createDirectory(atPath: folder, withIntermediateDirectories: true)
            // Replaced atomically: a gateway may be reading the file.
            try Data(try PluginImage.read(file)).write(to: URL(filePath: "\(folder)/\(base)"), options: .atomic)
        } catch {
            throw SluiceError(
                error, otherwise: .configInvalid, "\(file) cannot be copied to \(folder).", fix: "Copy it yourself, and add the copy.")
        }
        return "plugins/\(stem)/\(base)"
    }

    private func absolute(_ path: String) -> String {
        URL(filePath: path).resolvingSymlinksInPath().standardizedFileURL.path.trimmingSlash
    }

    private func write() throws(SluiceError) {
        let text = JSON.object([JSON.Member("plugins", .array(entries))]).indented + "\n"
        do {
            try Data(text.utf8).write(to: URL(filePath: "\(directory)/\(PluginListReader.file)"), options: .atomic)
        } catch {
            throw SluiceError(
                .configInvalid, "\(directory)/\(PluginListReader.file) cannot be written.", fix: "Check the permissions.",
                cause: ErrorCause(error))
        }
    }
}

extension String {
    fileprivate var trimmingSlash: String { count > 1 && hasSuffix("/") ? String(dropLast()) : self }
}

extension JSON {
    /// The text with one line for each member and element, indented by four spaces. Arrays of scalars stay on one line.
    package var indented: String { indented(0) }

    private func indented(_ depth: Int) -> String {
        let (inner, outer) = (String(repeating: " ", count: 4 * depth + 4), String(repeating: " ", count: 4 * depth))
        switch self {
        case .object(let members) where !members.isEmpty:
            let lines = members.map { "\(inner)\(JSON.string($0.key).text): \($0.value.indented(depth + 1))" }
            return "{\n\(lines.joined(separator: ",\n"))\n\(outer)}"
        case .array(let elements) where elements.contains { $0.members != nil || $0.array != nil }:
            return "[\n\(elements.map { inner + $0.indented(depth + 1) }.joined(separator: ",\n"))\n\(outer)]"
        case .array(let elements): return "[\(elements.map(\.text).joined(separator: ", "))]"
        default: return text
        }
    }
}
