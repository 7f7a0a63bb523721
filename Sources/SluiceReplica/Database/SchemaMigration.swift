package import SluiceCore

/// The schema migration of a local file, which has no server to download from again. Runs in an open transaction.
struct SchemaMigration {
    private let database: ReplicaDatabase
    private let tables: ClassTables
    private var connection: Connection { database.connection }

    init(_ database: ReplicaDatabase) {
        self.database = database
        tables = ClassTables(database)
    }

    /// Gives the tables the form of the schema. Properties in both schemas keep their values if their type is the
    /// same. Other values are dropped. Classes that the schema lacks stay unchanged.
    ///
    /// A class whose primary key was no property before is empty afterwards.
    /// - Throws: `invalidSchemaChange` if a property that becomes the primary key has duplicate values.
    func refit(from old: Schema) throws(SluiceError) {
        for layout in database.layouts where layout.hasTable {
            database.news.types[layout.index] = TypeChange(isWhole: true)
            if let before = old[layout.type.name], before.kind == .topLevel {
                try refit(layout, from: before)
            } else {
                try connection.execute("DROP TABLE IF EXISTS \(layout.table)")
                try connection.execute(layout.creation(of: layout.table))
            }
            try connection.dropStaging(layout)
            try tables.forgetProperties(of: layout.type.name)
            try tables.remember(layout)
        }
        database.meta.checkpoint = []
        connection.forgetStatements()
    }

    private func refit(_ layout: TableLayout, from before: ObjectType) throws(SluiceError) {
        let known = try tables.knownProperties()[before.name] ?? [:]
        let kept = zip(layout.type.properties, layout.kinds).filter { property, kind in
            guard let old = before[property.name] else { return false }
            return old.type == property.type && old.collection == property.collection && known[property.name] == kind.rawValue
        }.map(\.0.name)
        // Only additions: no need to copy the rows.
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
            // Objects that lose their primary key are numbered in table order. Links to them no longer resolve.
            let columns = kept.map(SQLQuote.identifier).joined(separator: ", ")
            try connection.execute("INSERT INTO \(fresh) (\(columns)) SELECT \(columns) FROM \(layout.table) ORDER BY \(layout.rowid)")
        }
        try connection.execute("DROP TABLE \(layout.table)")
        try connection.execute("ALTER TABLE \(fresh) RENAME TO \(layout.table)")
    }

    /// Drops the table of a class that the schema does not have.
    /// - Returns: `true` if there was one.
    func dropClass(_ name: String) throws(SluiceError) -> Bool {
        guard try tables.knownProperties()[name] != nil else { return false }
        try connection.execute("DROP TABLE IF EXISTS \(SQLQuote.identifier(name))")
        try tables.forgetProperties(of: name)
        try StoredSchema.forget(name, in: connection)
        connection.forgetStatements()
        return true
    }
}

extension Replica {
    /// Begins the transaction that fits a local file to the replica's schema. It can be cancelled like any other.
    /// - Parameters:
    ///   - old: the schema that the file was written with.
    ///   - version: the app's schema version.
    package func beginMigration(from old: Schema, version: UInt64) throws(SluiceError) -> WriteTransaction {
        let transaction = try beginWrite()
        do throws(SluiceError) {
            try SchemaMigration(parts.database).refit(from: old)
            for type in schema.types { try StoredSchema.note(type, in: parts.database.connection) }
            try StoredSchema.note(version, in: parts.database.connection)
        } catch {
            transaction.cancel()
            throw error
        }
        return transaction
    }
}

extension WriteTransaction {
    /// Removes a class that the schema does not have from the file.
    /// - Returns: `true` if the file had it.
    package func dropClass(_ name: String) throws(SluiceError) -> Bool { try SchemaMigration(database).dropClass(name) }
}

extension TableLayout {
    fileprivate var keyName: String { type.properties[key].name }
}
