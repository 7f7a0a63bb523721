import Logging
package import SluiceCore
import SluicePorts
package import SluicePostgres
import SluiceQuery
import Synchronization

/// The app's tables: their places, their shapes, and their publication for logical replication, also after a table is recreated.
final class GatewayTables: Sendable {
    private struct State {
        var shapes: [String: TableShape] = [:]
        /// The tables as `prepare` found them.
        var catalog: TableCatalog?
        /// The number of times that a table has changed in the way its values are read.
        var revision = 0
        /// The tables whose change this gateway has yet to announce in the WAL.
        var unannounced: [TableMapping] = []
        /// The tables of classes that are not in `public` under the class's name.
        var places: [String: AppConfiguration.Table]
        /// The findings that are already logged.
        var findings: Set<TableFinding> = []
        /// The foreign keys between the app's tables, as last read.
        var foreignKeys: [ForeignKey] = []
    }

    private let logger: Logger
    private let pool: PostgresPool
    private let names: ReplicationNames
    private let partitions: [String: TimePartitions]
    private let state: Mutex<State>
    /// The size bounds of each class's rows.
    let bounds = RowBounds()

    init(app: AppConfiguration, pool: PostgresPool, names: ReplicationNames, logger: Logger) {
        self.logger = logger
        state = Mutex(State(places: app.tables))
        self.pool = pool
        self.names = names
        partitions = app.partitions
    }

    /// Numbers the properties, creates missing tables if `create` is `true`, checks the others, and publishes all of them.
    ///
    /// - Parameter more: The tables of new classes, and the columns of new properties. Known places and columns stay. A failed call adds
    ///   none.
    /// - Returns: The classes with their property numbers.
    /// - Throws: `tableUnfit` with table and column.
    func prepare(
        _ types: [ObjectType], adding more: [String: AppConfiguration.Table] = [:], create: Bool
    ) async throws -> [ObjectType] {
        let numbered = try await PropertyNumbers(pool: pool).number(types)
        let schema = Schema(numbered)
        let places = Self.merged(places, more)
        let catalog = TableCatalog(schema: schema, places: places, partitions: partitions)
        for mapping in catalog.tables { try Self.requireDistinct(mapping, schema) }
        let publication = names.publication
        let (found, findings, foreignKeys) = try await PostgresError.translating {
            try await pool.withConnection { connection in
                if create { _ = try await catalog.create(connection) }
                try await catalog.requireFit(connection)
                try await catalog.notePartitions(connection)
                _ = try await Publication.ensure(connection, name: publication, tables: catalog.readable)
                let found = try await catalog.found(connection)
                return (found, try await catalog.findings(connection), try await catalog.foreignKeys(connection))
            }
        }
        log(findings)
        var shapes: [String: TableShape] = [:]
        for (type, mapping) in zip(numbered.filter { $0.kind != .embedded }, found.tables) {
            shapes[type.name] = try TableShape(type, in: schema, mapping: mapping, bound: bounds[type.name])
        }
        state.withLock {
            $0.places = places
            $0.shapes = shapes
            $0.foreignKeys = foreignKeys
            $0.catalog = catalog
        }
        return numbered
    }

    /// Runs the adoption of a schema. If it fails after `prepare`, the places and shapes are again those from before, so that a corrected
    /// schema may name others.
    func restoring<R>(_ adopt: () async throws -> R) async throws -> R {
        let (places, shapes, catalog) = state.withLock { ($0.places, $0.shapes, $0.catalog) }
        do {
            return try await adopt()
        } catch {
            state.withLock { ($0.places, $0.shapes, $0.catalog) = (places, shapes, catalog) }
            throw error
        }
    }

    /// Checks that a property that came later has a column of its own.
    ///
    /// - Throws: `invalidSchemaChange`.
    private static func requireDistinct(_ mapping: TableMapping, _ schema: Schema) throws(SluiceError) {
        var owners: [String: String] = [:]
        for (property, column) in zip(schema[mapping.type]?.properties ?? [], mapping.columns) {
            guard let other = owners.updateValue(property.name, forKey: column) else { continue }
            throw SluiceError(
                .invalidSchemaChange,
                "The properties \(other) and \(property.name) of class \(mapping.type) have the same column “\(column)”.",
                fix: "Give one of them another column in 'mapping' of schema.json, or another name.")
        }
    }

    private func log(_ findings: [TableFinding]) {
        let new = state.withLock { state in findings.filter { state.findings.insert($0).inserted } }
        for finding in new {
            logger.warning(
                "A table will reject writes.",
                metadata: [
                    "code": "\(finding.code.rawValue)", "class": .string(finding.type), "table": .string(finding.table),
                    "subject": .string(finding.subject), "reason": .string(finding.message),
                    "statements": .array(finding.statements.map { .string($0) }),
                ])
        }
    }

    /// Publishes again the tables that were recreated, gained or lost partitions, or were published without their old rows. Reads the facts
    /// of all tables again.
    ///
    /// - Returns: The tables with missing changes. Their readers must resynchronize.
    /// - Throws: `tableUnfit` while a table does not fit. That table stays unpublished, or is read as before.
    func publishAgain() async throws -> [String] {
        guard let catalog = state.withLock(\.catalog) else { return [] }
        let publication = names.publication
        return try await PostgresError.translating {
            try await pool.withConnection { connection in
                // Operators may add and drop foreign keys at any time.
                let foreignKeys = try await catalog.foreignKeys(connection)
                state.withLock { $0.foreignKeys = foreignKeys }
                var again: [Publication.Work] = []
                let missing = try await Publication.missing(connection, name: publication, tables: catalog.readable)
                if !missing.isEmpty {
                    try await TableCatalog(schema: catalog.schema, tables: missing).requireFit(connection)
                    again = try await Publication.ensure(connection, name: publication, tables: missing)
                }
                try await refresh(catalog, connection)
                return again.filter(\.isGap).map(\.table.displayName)
            }
        }
    }

    /// Replaces the shapes of tables whose columns or rights have changed.
    ///
    /// A new formula or type changes values of rows that the WAL does not show. So each gateway makes the sessions of the app start again
    /// once it reads such a table as it is now.
    /// - Throws: `tableUnfit` if a changed table does not fit its class. No shape is replaced then.
    private func refresh(_ catalog: TableCatalog, _ connection: PostgresConnection) async throws {
        try await replaceShapes(catalog, connection)
        let changed = state.withLock(\.unannounced)
        guard !changed.isEmpty else { return }
        try await Publication.announceGap(connection, tables: changed)
        state.withLock { $0.unannounced.removeFirst(changed.count) }
        logger.notice("Tables have changed.", metadata: ["tables": .array(changed.map { .string($0.displayName) })])
    }

    private func replaceShapes(_ catalog: TableCatalog, _ connection: PostgresConnection) async throws {
        let known = state.withLock(\.shapes)
        let changed = try await catalog.found(connection).tables.filter { known[$0.type].map(\.mapping) != $0 }
        guard !changed.isEmpty else { return }
        try await TableCatalog(schema: catalog.schema, tables: changed).requireFit(connection)
        for mapping in changed {
            guard let before = known[mapping.type]?.mapping, let type = catalog.type(of: mapping) else { continue }
            let shape = try TableShape(type, in: catalog.schema, mapping: mapping, bound: bounds[type.name])
            state.withLock { state in
                // Another schema has been prepared meanwhile.
                guard state.shapes[mapping.type]?.mapping == before else { return }
                state.shapes[mapping.type] = shape
                guard mapping.isReadDifferently(from: before) else { return }
                state.revision += 1
                state.unannounced.append(mapping)
            }
        }
    }

    /// The number of times that a table has changed in the way its values are read.
    var revision: Int { state.withLock(\.revision) }

    /// Announces a schema that is recorded nowhere to the publishing gateway, in the WAL.
    func announce(_ schema: Schema, fields: QueryableFields) async throws {
        let record = AppSchemaRecord(schema: schema, tables: places, fields: fields)
        try await PostgresError.translating { try await SchemaAnnouncement(definition: record.json).write(pool) }
    }

    /// - Throws: `unknownType` for a class without a table.
    func shape(of type: String) throws(SluiceError) -> TableShape {
        guard let shape = state.withLock({ $0.shapes[type] }) else {
            throw SluiceError(.unknownType, "Class \(type) has no table.")
        }
        return shape
    }

    /// The tables by class, for statements.
    var sqlTables: [String: SQLTable] {
        state.withLock(\.shapes).mapValues { SQLTable(name: $0.table, columns: $0.compared) }
    }

    /// Returns the tables of a schema's classes, with the facts of those that `prepare` has seen.
    func mappings(of schema: Schema) -> [TableMapping] {
        let (shapes, places) = state.withLock { ($0.shapes, $0.places) }
        return TableCatalog(schema: schema, places: places).tables.map { mapping in
            shapes[mapping.type].map { mapping.withFacts(of: $0.mapping) } ?? mapping
        }
    }

    /// Returns a schema with the table of each class that has one.
    func record(of app: AppSchema) -> AppSchemaRecord {
        let places = places
        let types = app.schema.types.filter { $0.kind != .embedded }
        let tables = Dictionary(
            types.map { ($0.name, places[$0.name] ?? AppConfiguration.Table(schema: "public", name: $0.name)) }, uniquingKeysWith: { $1 })
        return AppSchemaRecord(schema: app.schema, tables: tables, fields: app.fields)
    }

    var places: [String: AppConfiguration.Table] { state.withLock(\.places) }

    var foreignKeys: [ForeignKey] { state.withLock(\.foreignKeys) }

    /// Returns known places with the tables of new classes, and the columns of new properties.
    private static func merged(
        _ places: [String: AppConfiguration.Table], _ more: [String: AppConfiguration.Table]
    ) -> [String: AppConfiguration.Table] {
        places.merging(more) { known, new in
            var table = known
            table.columns.merge(new.columns) { known, _ in known }
            return table
        }
    }
}

extension TableCatalog {
    /// The tables that devices read, so that their changes are published.
    fileprivate var readable: [TableMapping] { tables.filter { schema[$0.type]?.kind == .topLevel } }

    /// - Parameter places: The tables of classes. Any other class has the table of its name in `public`.
    package init(schema: Schema, places: [String: AppConfiguration.Table], partitions: [String: TimePartitions] = [:]) {
        let tables = schema.types.filter { $0.kind != .embedded }.map { type in
            TableMapping(
                type, schema: places[type.name]?.schema ?? "public", table: places[type.name]?.name,
                columns: places[type.name]?.columns ?? [:], partitions: partitions[type.name])
        }
        self.init(schema: schema, tables: tables)
    }
}
