package import SluiceCore

/// Changing the tables of a file that no server has the data of.
extension Writer {
    /// In an open transaction: gives the tables the form of the schema. Properties that are in both with the same type keep their
    /// values; what is not in the schema any more is gone, but for classes that are not: they stay as they were.
    ///
    /// A class whose primary key was no property before is empty afterwards.
    /// - Throws: `invalidSchemaChange` when a property that becomes the primary key does not tell its objects apart.
    func refit(from old: Schema) throws(SluiceError) {
        for layout in layouts where layout.hasTable {
            news.types[layout.index] = TypeChange(isWhole: true)
            if let before = old[layout.type.name], before.kind == .topLevel {
                try refit(layout, from: before)
            } else {
                try connection.execute("DROP TABLE IF EXISTS \(layout.table)")
                try connection.execute(layout.creation(of: layout.table))
            }
            try dropStaging(layout)
            try forgetProperties(of: layout.type.name)
            try remember(layout)
        }
        meta.checkpoint = []
        connection.forgetStatements()
    }

    private func refit(_ layout: TableLayout, from before: ObjectType) throws(SluiceError) {
        let known = try knownProperties()[before.name] ?? [:]
        let kept = zip(layout.type.properties, layout.kinds).filter { property, kind in
            guard let old = before[property.name] else { return false }
            return old.type == property.type && old.collection == property.collection && known[property.name] == kind.rawValue
        }.map(\.0.name)
        if Set(kept) == Set(before.properties.map(\.name)), before.primaryKey.map({ before.properties[$0].name }) == layout.keyName {
            for (property, kind) in zip(layout.type.properties, layout.kinds) where before[property.name] == nil {
                try connection.execute("ALTER TABLE \(layout.table) ADD COLUMN \(SQLQuote.identifier(property.name)) \(kind.declaration)")
            }
            return
        }
        let fresh = SQLQuote.identifier("_sluice_refitted_\(before.name)")
        try connection.execute("DROP TABLE IF EXISTS \(fresh)")
        try connection.execute(layout.creation(of: fresh))
        if kept.contains(layout.keyName) {
            let columns = kept.map(SQLQuote.identifier).joined(separator: ", ")
            let distinct = try Statement(
                "SELECT count(*) = count(DISTINCT \(layout.keyColumn)) FROM \(layout.table)", on: connection)
            let isDistinct = try distinct.step() && distinct.int(0) == 1
            distinct.reset()
            guard isDistinct else {
                throw SluiceError(
                    .invalidSchemaChange, "Primary key property '\(before.name).\(layout.keyName)' has duplicate values after migration.")
            }
            try connection.execute("INSERT INTO \(fresh) (\(columns)) SELECT \(columns) FROM \(layout.table) ORDER BY \(layout.rowid)")
        } else if layout.keyName == TableLayout.hiddenKey.name, !kept.isEmpty {
            // Objects that lose their primary key are numbered in the table's order. What links to them does not find them any more.
            let columns = kept.map(SQLQuote.identifier).joined(separator: ", ")
            try connection.execute("INSERT INTO \(fresh) (\(columns)) SELECT \(columns) FROM \(layout.table) ORDER BY \(layout.rowid)")
        }
        try connection.execute("DROP TABLE \(layout.table)")
        try connection.execute("ALTER TABLE \(fresh) RENAME TO \(layout.table)")
    }

    /// Drops the table of a class that the schema does not have.
    /// - Returns: whether there was one.
    func dropClass(_ name: String) throws(SluiceError) -> Bool {
        guard try knownProperties()[name] != nil else { return false }
        try connection.execute("DROP TABLE IF EXISTS \(SQLQuote.identifier(name))")
        try forgetProperties(of: name)
        try StoredSchema.forget(name, in: connection)
        connection.forgetStatements()
        return true
    }

    private func forgetProperties(of name: String) throws(SluiceError) {
        let statement = try connection.statement("DELETE FROM _sluice_property WHERE type = ?")
        statement.bind(0, name)
        try statement.run()
    }
}

extension Replica {
    /// Begins the transaction that makes a local file fit the replica's schema; it can be cancelled like any other.
    /// - Parameters:
    ///   - old: what the file was written with.
    ///   - version: the app's number for the new schema.
    package func beginMigration(from old: Schema, version: UInt64) throws(SluiceError) -> WriteTransaction {
        let transaction = try beginWrite()
        do throws(SluiceError) {
            try writer.refit(from: old)
            for type in schema.types { try StoredSchema.note(type, in: writer.connection) }
            try StoredSchema.note(version, in: writer.connection)
        } catch {
            transaction.cancel()
            throw error
        }
        return transaction
    }
}

extension WriteTransaction {
    /// Removes a class that the schema does not have from the file.
    /// - Returns: whether the file had it.
    package func dropClass(_ name: String) throws(SluiceError) -> Bool { try writer.dropClass(name) }
}

extension TableLayout {
    fileprivate var keyName: String { type.properties[key].name }
}
