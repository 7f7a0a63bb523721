import FoundationEssentials
package import SluiceCore
import SluiceGateway
package import SluiceValues

/// Proposes schemas for the collections of a dump: `sluice migrate infer`.
package struct SchemaProposal {
    /// The options of the command.
    package struct Options: Sendable {
        /// Files and folders that mongodump and mongoexport wrote.
        package var sources: [String]
        /// Files by their collections, `db.coll`.
        package var named: [(collection: String, path: String)]
        /// Class names by collection, `db.coll`.
        package var classes: [(collection: String, name: String)]
        /// The database of single files; nil for the name of their folder.
        package var database: String?
        /// The share of values that may be of another type than their field, 0 to 1.
        package var tolerance: Double
        /// `true` to propose schemas for collections that have one.
        package var overwrites: Bool

        package init(
            sources: [String], named: [(collection: String, path: String)] = [], classes: [(collection: String, name: String)] = [],
            database: String? = nil, tolerance: Double = 0.01, overwrites: Bool = false
        ) {
            self.sources = sources
            self.named = named
            self.classes = classes
            self.database = database
            self.tolerance = tolerance
            self.overwrites = overwrites
        }
    }

    private let root: String
    /// The data source, a folder of `data_sources`.
    private let source: String
    private let hasSource: Bool
    private var collections: [InferredCollection] = []
    /// The collections without a proposal, one sentence each.
    package private(set) var notes: [String]

    /// `true` if nothing is proposed.
    package var isEmpty: Bool { collections.isEmpty }

    /// Reads the dumps. Changes nothing.
    ///
    /// - Parameter root: The app directory.
    /// - Throws: `configInvalid` for the app directory, `badRequest` for a damaged source.
    package init(at root: String, options: Options) throws(SluiceError) {
        self.root = root
        let files: [String: String]
        do { files = try AppDirectory.files(at: root) } catch {
            throw SluiceError(error.asSluiceError.code, error.problems.map(\.description).joined(separator: "\n"), fix: "")
        }
        let export = SchemaExport(files)
        (source, hasSource) = (export.source, export.hasSource)
        let reader = try DumpReader(sources: options.sources, named: options.named, database: options.database)
        notes = reader.notes
        var wanted: Set<CollectionName> = []
        for name in reader.collections.sorted() {
            guard export.collections.contains(name), !options.overwrites else {
                wanted.insert(name)
                continue
            }
            notes.append("\(name) has a schema and is left as it is. --overwrite replaces it.")
        }
        try infer(wanted, from: reader, options, export)
    }

    private mutating func infer(
        _ wanted: Set<CollectionName>, from reader: DumpReader, _ options: Options, _ export: SchemaExport
    ) throws(SluiceError) {
        guard !wanted.isEmpty else { return }
        let budget = CounterBudget()
        var counters: [CollectionName: ObjectCounter] = [:]
        var samples: [CollectionName: LinkSample] = [:]
        try reader.read { name, document in
            guard wanted.contains(name) else { return }
            let counter = counters[name] ?? ObjectCounter(depth: 0, limit: Self.mostFields, budget: budget)
            counters[name] = counter
            counter.add(document, key: Self.key(document))
            samples[name, default: LinkSample()].add(document)
        }
        var titles = export.titles
        for name in wanted.sorted() {
            guard let counter = counters[name] else {
                notes.append("\(name) has no document.")
                continue
            }
            let title = Self.title(of: name, options, titles)
            let (found, reason) = InferredCollection.infer(name, title: title, counter, tolerance: options.tolerance)
            guard let found else {
                notes.append("\(name) cannot be synchronised: \(reason).")
                continue
            }
            titles.insert(title)
            if counter.others != nil { notes.append("\(name) has more than \(Self.mostFields) fields. The further ones are left out.") }
            collections.append(found)
        }
        try findLinks(samples, reader, export)
    }

    /// The most properties of a proposed class. PostgreSQL has at most 1,600 columns in a table.
    private static let mostFields = 1_000

    /// Returns the key of a document for messages.
    private static func key(_ document: [JSON.Member]) -> String {
        guard let id = document.first(where: { $0.key == "_id" })?.value else { return "(none)" }
        return id["$oid"]?.string ?? id.string ?? String(id.text.prefix(100))
    }

    private static func title(of name: CollectionName, _ options: Options, _ taken: Set<String>) -> String {
        if let chosen = options.classes.first(where: { $0.collection == name.description }) { return chosen.name }
        return taken.contains(name.collection) ? "\(name.database)_\(name.collection)" : name.collection
    }

    /// Reads the dumps once more for the keys among the sampled values.
    private mutating func findLinks(
        _ samples: [CollectionName: LinkSample], _ reader: DumpReader, _ export: SchemaExport
    ) throws(SluiceError) {
        let candidates = samples.values.reduce(into: Set<Value>()) { $0.formUnion($1.candidates) }
        guard !candidates.isEmpty else { return }
        // A link leads to a class: one that is proposed here, or that the export has.
        let targets = export.collections.union(collections.map(\.name))
        var keys: [CollectionName: Set<Value>] = [:]
        try reader.read { name, document in
            guard targets.contains(name), let id = document.first(where: { $0.key == "_id" }), let key = LinkSample.key(id.value),
                candidates.contains(key)
            else { return }
            keys[name, default: []].insert(key)
        }
        for index in collections.indices {
            guard let sample = samples[collections[index].name] else { continue }
            for number in collections[index].fields.indices {
                let field = collections[index].fields[number]
                collections[index].fields[number].links = field.linkPlaces.compactMap { place in
                    sample.link(at: place, keys: keys.filter { name, _ in keyType(of: name, export) == place.type })
                }
            }
        }
    }

    /// Returns the type of a collection's primary key.
    private func keyType(of name: CollectionName, _ export: SchemaExport) -> String? {
        collections.first { $0.name == name }?.fields.first?.type ?? export.keyTypes[name]
    }

    // MARK: Output

    /// The files by path in the app directory.
    package var files: [String: String] {
        var files: [String: String] = [:]
        if !hasSource {
            files["data_sources/\(source)/config.json"] = SchemaFiles.text([
                "name": .string(source), "type": "mongodb-atlas", "config": [:], "version": 1,
            ])
        }
        for collection in collections {
            let folder = "data_sources/\(source)/\(collection.name.database)/\(collection.name.collection)"
            files["\(folder)/schema.json"] = SchemaFiles.text(collection.schema)
            files["\(folder)/relationships.json"] = collection.relationships(source: source).map(SchemaFiles.text)
        }
        return files
    }

    /// Writes the files. One whose content is the same stays as it is.
    package func write() throws(SluiceError) {
        do {
            for (path, text) in files {
                let file = "\(root)/\(path)"
                try FileManager.default.createDirectory(
                    atPath: String(file[..<(file.lastIndex(of: "/") ?? file.startIndex)]), withIntermediateDirectories: true)
                try Data(text.utf8).write(to: URL(filePath: file), options: .atomic)
            }
        } catch {
            throw SluiceError(
                .configInvalid, "The schemas cannot be written into \(root).", fix: "Check its permissions.", cause: ErrorCause(error))
        }
    }

    /// The proposal for a terminal: the evidence, then the files.
    package var text: String {
        var lines = collections.flatMap { $0.lines + [""] }
        for (path, text) in files.sorted(by: { $0.key < $1.key }) {
            lines += ["file \(path)"] + text.split(separator: "\n").map { "+ \($0)" }
        }
        lines += notes.map { "note: \($0)" }
        return lines.map(TerminalText.shown).joined(separator: "\n")
    }

    package var json: JSON {
        [
            "collections": .array(collections.map(\.json)),
            "files": .object(files.sorted { $0.key < $1.key }.map { .init($0.key, .string($0.value)) }),
            "notes": .array(notes.map { .string($0) }),
        ]
    }
}

/// The classes that an app directory has.
private struct SchemaExport {
    let source: String
    let hasSource: Bool
    /// The collections with a schema.
    private(set) var collections: Set<CollectionName> = []
    private(set) var titles: Set<String> = []
    /// The types of primary keys.
    private(set) var keyTypes: [CollectionName: String] = [:]

    init(_ files: [String: String]) {
        let trees = files.compactMapValues { $0.isEmpty ? nil : try? JSON.located(Array($0.utf8)) }
        let sources = Set(
            files.keys.compactMap { path -> String? in
                let parts = path.split(separator: "/")
                return parts.count > 2 && ["data_sources", "services"].contains(parts[0]) ? String(parts[1]) : nil
            })
        source = trees["sync/config.json"]?["service_name"]?.string ?? sources.min() ?? "mongodb-atlas"
        hasSource = sources.contains(source)
        for (path, tree) in trees {
            let parts = path.split(separator: "/").map(String.init)
            if parts.count == 5, parts[1] == source, parts[4] == "schema.json" {
                add(CollectionName(database: parts[2], collection: parts[3]), tree)
            } else if parts.count == 4, parts[0] == "services", parts[1] == source, let database = tree["database"]?.string,
                let collection = tree["collection"]?.string, let schema = tree["schema"]
            {
                add(CollectionName(database: database, collection: collection), schema)
            }
        }
    }

    /// Adds a class. An export has an empty object for a collection without one.
    private mutating func add(_ name: CollectionName, _ schema: JSON) {
        guard schema.members?.isEmpty == false else { return }
        collections.insert(name)
        titles.insert(schema["title"]?.string ?? name.collection)
        keyTypes[name] = schema["properties"]?["_id"]?["bsonType"]?.string
    }
}
