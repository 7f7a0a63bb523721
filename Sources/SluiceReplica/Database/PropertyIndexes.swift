import SluiceCore

/// The indexes that an app's classes request: a SQLite index on each such property's column. Primary keys have one already. Collections,
/// embedded objects and mixed values have no indexable form.
struct PropertyIndexes {
    private static let prefix = "_sluice_index_"
    /// The statements that create them, by name.
    private var creations: [String: String] = [:]

    /// - Parameter names: of properties by class. Unknown classes and properties are ignored.
    init(_ names: [String: Set<String>], layouts: [TableLayout]) {
        for layout in layouts where layout.hasTable {
            for (index, property) in layout.type.properties.enumerated() where names[layout.type.name]?.contains(property.name) ?? false {
                guard index != layout.key, layout.kinds[index] != .coded else { continue }
                let name = "\(PropertyIndexes.prefix)\(layout.type.name).\(property.name)"
                creations[name] =
                    "CREATE INDEX \(SQLQuote.identifier(name)) ON \(layout.table) (\(SQLQuote.identifier(property.name)))"
            }
        }
    }

    /// Creates missing indexes and drops those that are no longer requested, in the caller's transaction.
    func fit(_ connection: Connection) throws(SluiceError) {
        let statement = try connection.statement("SELECT name FROM sqlite_master WHERE type = 'index' AND name GLOB ?")
        statement.bind(0, "\(PropertyIndexes.prefix)*")
        var known: Set<String> = []
        while try statement.step() { known.insert(statement.string(0)) }
        statement.reset()
        for name in known.subtracting(creations.keys) { try connection.execute("DROP INDEX \(SQLQuote.identifier(name))") }
        for (name, creation) in creations where !known.contains(name) { try connection.execute(creation) }
    }
}
