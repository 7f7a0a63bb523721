import FoundationEssentials
import SluiceCore
import SluiceValues

/// Reads the documents of all collections of dumps, in every form that `migrate data` reads, one after another.
struct DumpReader {
    private struct Part {
        var file: ImportFile
        /// The collections of the file; one, unless it is an archive.
        var names: [CollectionName]
    }

    private var parts: [Part] = []
    /// The sources that are left out, one sentence each.
    private(set) var notes: [String] = []

    /// - Parameters:
    ///   - sources: Files and folders of mongodump and mongoexport.
    ///   - named: Files by their collections.
    ///   - database: The database of files that are not in a folder of one; nil if it is unknown.
    init(sources: [String], named: [(collection: String, path: String)], database: String?) throws(SluiceError) {
        for (collection, path) in named {
            guard let name = CollectionName(collection) else {
                throw SluiceError(.configInvalid, "'\(collection)' is no collection.", fix: "--collection takes db.coll=FILE.")
            }
            add(try ImportFile(path), [name])
        }
        for source in sources { try add(source, database) }
        guard !collections.isEmpty else {
            throw SluiceError(
                .configInvalid, (["The sources have no collection."] + notes).joined(separator: "\n"),
                fix: "Name a folder or an archive of mongodump, or a file with --collection db.coll=FILE.")
        }
    }

    var collections: Set<CollectionName> { Set(parts.flatMap(\.names)) }

    private mutating func add(_ source: String, _ database: String?) throws(SluiceError) {
        var isFolder = false
        if FileManager.default.fileExists(atPath: source, isDirectory: &isFolder), isFolder {
            for entry in try DumpFolder.entries(source) { add(try ImportFile(entry.path), entry, nil) }
            return
        }
        let file = try ImportFile(source)
        guard file.isArchive else { return add(file, DumpFolder.entry(source), database) }
        let prelude = try ArchivePrelude(try ByteStream(path: source))
        let names = prelude.collections.filter {
            !["view", "timeseries"].contains($0.kind) && !$0.name.hasPrefix("system.")
                && !["admin", "config", "local", ""].contains($0.database)
        }
        add(file, names.map { CollectionName(database: $0.database, collection: $0.name) })
    }

    private mutating func add(_ file: ImportFile, _ entry: DumpFolder.Entry?, _ database: String?) {
        guard let entry, let database = database ?? entry.database else {
            return notes.append("\(file.path) is left out: it does not name its collection. Pass --collection db.coll=\(file.path).")
        }
        add(file, [CollectionName(database: database, collection: entry.collection)])
    }

    /// Adds the collections of a file. Each becomes a folder of the app directory.
    private mutating func add(_ file: ImportFile, _ names: [CollectionName]) {
        notes += names.filter { !$0.isPath }.map { "\($0) of \(file.path) is left out: a folder cannot have its name." }
        let names = names.filter(\.isPath)
        if !names.isEmpty { parts.append(Part(file: file, names: names)) }
    }

    /// Reads all documents. A malformed one is passed over: `migrate data` puts it into quarantine.
    ///
    /// - Throws: `badRequest` for a damaged source.
    func read(_ body: (CollectionName, [JSON.Member]) -> Void) throws(SluiceError) {
        for part in parts { try read(part, body) }
    }

    private func read(_ part: Part, _ body: (CollectionName, [JSON.Member]) -> Void) throws(SluiceError) {
        let source: any DocumentSource
        if part.file.isArchive {
            let names = part.names.map { ArchiveSource.Name(database: $0.database, collection: $0.collection) }
            source = try ArchiveSource(try ByteStream(path: part.file.path), names: names)
        } else {
            source = try part.file.documents(from: 0)
        }
        var batches = [DocumentBatch](repeating: DocumentBatch(), count: part.names.count)
        while true {
            switch try source.next(into: &batches) {
            case .documents(let index), .ended(let index):
                for place in 0..<batches[index].count {
                    if let document = Self.document(batches[index][place], part.file.form) { body(part.names[index], document) }
                }
                batches[index].removeAll()
            case .end: return
            }
        }
    }

    private static func document(_ bytes: ArraySlice<UInt8>, _ form: DocumentForm) -> [JSON.Member]? {
        switch form {
        case .bson: (try? BSON.json(Array(bytes)))?.members
        case .json: (try? JSON.located(Array(bytes)))?.members
        }
    }
}
