import SluiceCore

/// The tables of the classes, and the record of the properties that they have columns for.
struct ClassTables {
    let connection: Connection
    let layouts: [TableLayout]

    init(_ database: ReplicaDatabase) {
        connection = database.connection
        layouts = database.layouts
    }

    /// - Throws: `invalidSchemaChange` unless every class has its table and every property its column.
    func check() throws(SluiceError) {
        let known = try knownProperties()
        for layout in layouts where layout.hasTable {
            for (property, kind) in zip(layout.type.properties, layout.kinds)
            where known[layout.type.name]?[property.name] != kind.rawValue {
                throw SluiceError(
                    .invalidSchemaChange, "The local file has no property \(layout.type.name).\(property.name) of this type.",
                    fix: "Open the file with the classes that it was written with.")
            }
        }
    }

    /// Gives every class its table and every property its column.
    /// - Parameter hasData: `true` if the file has data of the server.
    /// - Returns: `true` if something was added or changed, so that the file lacks data that the server has.
    func fit(hasData: Bool) throws(SluiceError) -> Bool {
        var lacksData = false
        let known = try knownProperties()
        for layout in layouts where layout.hasTable {
            let before = known[layout.type.name]
            let wanted = Dictionary(uniqueKeysWithValues: zip(layout.type.properties.map(\.name), layout.kinds.map(\.rawValue)))
            if before.map({ before in wanted.allSatisfy { before[$0.key] == $0.value } }) ?? false { continue }
            lacksData = lacksData || before != nil || hasData
            // A column of another kind cannot be converted: the server's data is downloaded again.
            let mustRebuild = before.map { before in wanted.contains { before[$0.key] != nil && before[$0.key] != $0.value } }
            if mustRebuild == true || before.map({ $0[layout.type.properties[layout.key].name] == nil }) == true {
                try connection.execute("DROP TABLE IF EXISTS \(layout.table)")
                try connection.execute(layout.creation(of: layout.table))
            } else if let before {
                try addColumns(layout, before: before)
            } else {
                try connection.execute(layout.creation(of: layout.table))
            }
            try connection.dropStaging(layout)
            try remember(layout)
        }
        return lacksData
    }

    private func addColumns(_ layout: TableLayout, before: [String: String]) throws(SluiceError) {
        for (property, kind) in zip(layout.type.properties, layout.kinds) where before[property.name] == nil {
            let name = SQLQuote.identifier(property.name)
            try connection.execute("ALTER TABLE \(layout.table) ADD COLUMN \(name) \(kind.declaration)")
        }
    }

    func remember(_ layout: TableLayout) throws(SluiceError) {
        for (property, kind) in zip(layout.type.properties, layout.kinds) {
            let statement = try connection.statement("INSERT OR REPLACE INTO _sluice_property VALUES (?, ?, ?)")
            statement.bind(0, layout.type.name)
            statement.bind(1, property.name)
            statement.bind(2, kind.rawValue)
            try statement.run()
        }
    }

    func knownProperties() throws(SluiceError) -> [String: [String: String]] {
        let statement = try connection.statement("SELECT type, name, kind FROM _sluice_property")
        var known: [String: [String: String]] = [:]
        while try statement.step() { known[statement.string(0), default: [:]][statement.string(1)] = statement.string(2) }
        statement.reset()
        return known
    }

    func forgetProperties(of name: String) throws(SluiceError) {
        let statement = try connection.statement("DELETE FROM _sluice_property WHERE type = ?")
        statement.bind(0, name)
        try statement.run()
    }
}
