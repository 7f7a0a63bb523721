import FoundationEssentials
import SluiceCore
import SluiceValues

#if canImport(Glibc)
    import Glibc
#endif

/// The files of a folder as `mongodump` writes it: `db/collection.bson` beside `db/collection.metadata.json`, each perhaps with `.gz`.
/// Files of `mongoexport` may lie among them.
enum DumpFolder {
    /// A file of one collection, by its name.
    struct Entry: Hashable, Sendable {
        var path: String
        /// The folder's name; nil for a file that was named without one.
        var database: String?
        var collection: String
    }

    /// The databases of MongoDB itself.
    private static let ownDatabases: Set<String> = ["admin", "config", "local"]

    /// Returns the files of collections below a folder, by path.
    ///
    /// - Throws: `configMissing` if it cannot be read.
    static func entries(_ folder: String) throws(SluiceError) -> [Entry] {
        // The folder itself may be that of a database, and be called `.`.
        let folder = ["", ".", ".."].contains(folder.split(separator: "/").last ?? "") ? whole(folder) : folder
        guard let names = try? FileManager.default.subpathsOfDirectory(atPath: folder) else {
            throw SluiceError(.configMissing, "The folder \(folder) cannot be read.", fix: "Check the path and its permissions.")
        }
        return names.sorted().compactMap { name in
            let parts = name.split(separator: "/").map(String.init)
            guard !parts.contains(where: { $0.hasPrefix(".") || ownDatabases.contains($0) }) else { return nil }
            return entry(folder + "/" + name)
        }
    }

    /// Returns the collection that a file's path names; nil for files of other kinds.
    static func entry(_ path: String) -> Entry? {
        let parts = path.split(separator: "/").map(String.init)
        guard let file = parts.last, let name = collectionName(file) else { return nil }
        if name.hasPrefix("system.") || name == "oplog" || name == "prelude" { return nil }
        // `.` and `..` lead to a folder and are not its name.
        let folder = parts.dropLast().last.flatMap { [".", ".."].contains($0) ? nil : $0 }
        return Entry(path: path, database: folder.map(unescaped), collection: fullName(name, path))
    }

    private static func collectionName(_ file: String) -> String? {
        let plain = file.hasSuffix(".gz") ? String(file.dropLast(3)) : file
        if plain.hasSuffix(".metadata.json") { return nil }
        for suffix in [".bson", ".json", ".ndjson", ".jsonl"] where plain.hasSuffix(suffix) {
            return unescaped(String(plain.dropLast(suffix.count)))
        }
        return nil
    }

    /// Returns the path without `.`, `..` and symbolic links; the path itself if it does not exist.
    private static func whole(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// Returns a name without the percent escapes that the tools write into names of files.
    private static func unescaped(_ name: String) -> String {
        var bytes: [UInt8] = []
        var rest = Array(name.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), rest.count >= 2, let pair = Hex.decode(String(decoding: rest.prefix(2), as: UTF8.self)) {
                bytes += pair
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self) ?? name
    }

    /// Returns the name in the metadata beside the file: the file's own is cut if it is too long for a file system.
    private static func fullName(_ name: String, _ path: String) -> String {
        let plain = path.hasSuffix(".gz") ? path.dropLast(3) : path[...]
        guard plain.hasSuffix(".bson") else { return name }
        for suffix in ["", ".gz"] {
            guard let metadata = metadata(plain.dropLast(5) + ".metadata.json" + suffix) else { continue }
            return metadata["collectionName"]?.string ?? name
        }
        return name
    }

    private static func metadata(_ path: String) -> JSON? {
        guard FileManager.default.fileExists(atPath: path), let stream = try? ByteStream(path: path) else { return nil }
        while let isMore = try? stream.more(), isMore, stream.available <= 16 << 20 {}
        return try? JSON.located(Array(stream.buffer[stream.start...]))
    }
}
