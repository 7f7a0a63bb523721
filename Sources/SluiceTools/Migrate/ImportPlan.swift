import FoundationEssentials
import SluiceCore
import SluiceGateway

/// The work of an import: files and the classes that their collections become.
struct ImportPlan: Sendable {
    /// A file, and those of its collections that one pass reads.
    struct Pass: Sendable {
        var file: ImportFile
        var targets: [ImportTarget]
    }

    /// The passes that may run at the same time, one list after another. No class is in two passes of a list's different groups.
    var stages: [[[Pass]]] = []
    /// The collections that are left out, one sentence each.
    var notes: [String] = []

    var types: Set<String> { Set(stages.joined().joined().flatMap { $0.targets.map(\.type) }) }

    /// - Parameters:
    ///   - sources: Paths of files and folders.
    ///   - named: Files by the collections of the app that they hold.
    ///   - jobs: The number of passes that run at the same time.
    /// - Throws: `configInvalid` if nothing is to import, or a named file has no class.
    init(sources: [String], named: [(collection: String, path: String)], app: ImportApp, jobs: Int) throws(SluiceError) {
        var files: [Pass] = []
        var archives: [Pass] = []
        for (collection, path) in named { files.append(try Self.pass(path, named: collection, app)) }
        for source in sources {
            var isFolder = false
            guard FileManager.default.fileExists(atPath: source, isDirectory: &isFolder), isFolder else {
                let file = try ImportFile(source)
                if file.isArchive { archives.append(try archive(file, app)) } else { files.append(try Self.pass(file, app)) }
                continue
            }
            try add(folder: source, app, to: &files)
        }
        stages = archives.map { Self.shared($0, jobs) } + [Self.grouped(files)]
        stages.removeAll(where: \.isEmpty)
        guard !types.isEmpty else {
            throw SluiceError(
                .configInvalid, (["No collection of the sources belongs to a class of the app."] + notes).joined(separator: "\n"),
                fix: "The app's collections are \(app.collections.joined(separator: ", ")). Name a file with --collection db.coll=FILE.")
        }
    }

    // MARK: Files

    private static func pass(_ path: String, named collection: String, _ app: ImportApp) throws(SluiceError) -> Pass {
        guard let name = CollectionName(collection), let type = app.type(database: name.database, collection: name.collection) else {
            throw SluiceError(
                .configInvalid, "No class has the collection \(collection).",
                fix: "--collection takes db.coll=FILE; the app's collections are \(app.collections.joined(separator: ", ")).")
        }
        let file = try ImportFile(path)
        guard !file.isArchive else {
            throw SluiceError(
                .configInvalid, "\(path) is an archive, which names its collections itself.", fix: "Pass it without --collection.")
        }
        return Pass(file: file, targets: [ImportTarget(type: type, collection: collection)])
    }

    private static func pass(_ file: ImportFile, _ app: ImportApp) throws(SluiceError) -> Pass {
        let entry = DumpFolder.entry(file.path)
        guard let entry, let target = target(entry, app) else {
            throw SluiceError(
                .configInvalid, "\(file.path) does not name a collection of the app.",
                fix: "Pass --collection db.coll=\(file.path) with one of \(app.collections.joined(separator: ", ")).")
        }
        return Pass(file: file, targets: [target])
    }

    /// Returns the class of a file: that of database and collection, or of the collection alone if the folder is no database of the app.
    private static func target(_ entry: DumpFolder.Entry, _ app: ImportApp) -> ImportTarget? {
        if let database = entry.database, let type = app.type(database: database, collection: entry.collection) {
            return ImportTarget(type: type, collection: "\(database).\(entry.collection)")
        }
        if let database = entry.database, app.tables.values.contains(where: { $0.schema == database }) { return nil }
        return app.type(database: nil, collection: entry.collection).map { ImportTarget(type: $0, collection: entry.collection) }
    }

    private mutating func add(folder: String, _ app: ImportApp, to files: inout [Pass]) throws(SluiceError) {
        for entry in try DumpFolder.entries(folder) {
            // In a folder the database is part of the name, as a dump may have several with equal collections.
            guard let database = entry.database, let type = app.type(database: database, collection: entry.collection) else {
                notes.append("\(entry.path) is left out: no class has the collection \(entry.database ?? "?").\(entry.collection).")
                continue
            }
            let target = ImportTarget(type: type, collection: "\(database).\(entry.collection)")
            files.append(Pass(file: try ImportFile(entry.path), targets: [target]))
        }
    }

    /// Groups passes by class, so that two files of one class follow each other. Large groups come first.
    private static func grouped(_ files: [Pass]) -> [[Pass]] {
        Dictionary(grouping: files) { $0.targets[0].type }.values
            .sorted { $0.reduce(0) { $0 + $1.file.bytes } > $1.reduce(0) { $0 + $1.file.bytes } }
    }

    // MARK: Archives

    private mutating func archive(_ file: ImportFile, _ app: ImportApp) throws(SluiceError) -> Pass {
        let prelude = try ArchivePrelude(try ByteStream(path: file.path))
        var targets: [ImportTarget] = []
        for collection in prelude.collections where !["view", "timeseries"].contains(collection.kind) {
            let name = "\(collection.database).\(collection.name)"
            if let type = app.type(database: collection.database, collection: collection.name) {
                targets.append(
                    ImportTarget(
                        type: type, collection: name,
                        archiveName: ArchiveSource.Name(database: collection.database, collection: collection.name)))
            } else if !collection.name.hasPrefix("system."), !["admin", "config", "local", ""].contains(collection.database) {
                notes.append("\(name) of \(file.path) is left out: no class has it.")
            }
        }
        return Pass(file: file, targets: targets)
    }

    /// Shares the collections of an archive out among passes. Each reads the whole archive.
    private static func shared(_ pass: Pass, _ jobs: Int) -> [[Pass]] {
        let count = min(jobs, pass.targets.count)
        guard count > 0 else { return [] }
        return (0..<count).map { place in
            let targets = stride(from: place, to: pass.targets.count, by: count).map { pass.targets[$0] }
            return [Pass(file: pass.file, targets: targets)]
        }
    }
}
