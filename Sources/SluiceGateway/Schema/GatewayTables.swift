import Logging
import SluiceCore
import SluicePostgres
import Synchronization

/// The app's tables: where they are, that they fit, and that their changes are published, also when they are made anew.
final class GatewayTables: Sendable {
    private struct State {
        var shapes: [String: TableShape] = [:]
        /// Those whose changes are published.
        var published: TableCatalog?
        /// Where the tables of classes are that are not in `public` under their own names.
        var places: [String: AppConfiguration.Table]
        /// Those that the log has: each is logged once.
        var findings: Set<TableFinding> = []
        /// The foreign keys between the tables of the app, as they were at the last look.
        var foreignKeys: [ForeignKey] = []
    }

    private let logger: Logger
    private let pool: PostgresPool
    private let names: ReplicationNames
    private let partitions: [String: TimePartitions]
    private let state: Mutex<State>
    /// Of the rows of each class.
    let bounds = RowBounds()

    init(app: AppConfiguration, pool: PostgresPool, names: ReplicationNames, logger: Logger) {
        self.logger = logger
        state = Mutex(State(places: app.tables))
        self.pool = pool
        self.names = names
        partitions = app.partitions
    }

    /// Numbers the properties, makes tables that are missing (when `create`), checks the others, and publishes them all.
    /// - Returns: the types with their numbers.
    /// - Throws: `tableUnfit` naming table and column.
    func prepare(_ types: [ObjectType], create: Bool) async throws -> [ObjectType] {
        let numbered = try await PropertyNumbers(pool: pool).number(types)
        let schema = Schema(numbered)
        let catalog = TableCatalog(schema: schema, places: places, partitions: partitions)
        let mappings = catalog.tables
        let publication = names.publication
        let readable = mappings.filter { schema[$0.type]?.kind == .topLevel }
        let (findings, foreignKeys) = try await PostgresFailure.translating {
            try await pool.withConnection { connection in
                if create { _ = try await catalog.create(connection) }
                try await catalog.requireFit(connection)
                try await catalog.notePartitions(connection)
                _ = try await Publication.ensure(connection, name: publication, tables: readable)
                return (try await catalog.findings(connection), try await catalog.foreignKeys(connection))
            }
        }
        log(findings)
        var shapes: [String: TableShape] = [:]
        for (type, mapping) in zip(numbered.filter { $0.kind != .embedded }, mappings) {
            shapes[type.name] = try TableShape(type, in: schema, mapping: mapping, bound: bounds[type.name])
        }
        state.withLock {
            $0.shapes = shapes
            $0.foreignKeys = foreignKeys
            $0.published = TableCatalog(schema: schema, tables: readable)
        }
        return numbered
    }

    private func log(_ findings: [TableFinding]) {
        let new = state.withLock { state in findings.filter { state.findings.insert($0).inserted } }
        for finding in new {
            logger.warning(
                "A table will give trouble.",
                metadata: [
                    "code": "\(finding.code.rawValue)", "class": .string(finding.type), "table": .string(finding.table),
                    "subject": .string(finding.subject), "reason": .string(finding.message),
                    "statements": .array(finding.statements.map { .string($0) }),
                ])
        }
    }

    /// Publishes the tables that were made anew since, got or lost partitions, or were not published with their old rows.
    /// - Returns: those of which changes are missing, so that who reads them starts again.
    /// - Throws: `tableUnfit` while one of them does not fit; it stays unpublished.
    func publishAgain() async throws -> [String] {
        guard let catalog = state.withLock(\.published) else { return [] }
        let publication = names.publication
        return try await PostgresFailure.translating {
            try await pool.withConnection { connection in
                // Operators add and drop foreign keys while the gateway runs.
                let foreignKeys = try await catalog.foreignKeys(connection)
                state.withLock { $0.foreignKeys = foreignKeys }
                let missing = try await Publication.missing(connection, name: publication, tables: catalog.tables)
                guard !missing.isEmpty else { return [] }
                try await TableCatalog(schema: catalog.schema, tables: missing).requireFit(connection)
                return try await Publication.ensure(connection, name: publication, tables: missing)
                    .filter(\.isGap).map(\.table.displayName)
            }
        }
    }

    /// Tells who publishes of a schema that is recorded nowhere.
    func announce(_ schema: Schema, fields: QueryableFields) async throws {
        let record = AppSchemaRecord(schema: schema, tables: places, fields: fields)
        try await PostgresFailure.translating { try await SchemaAnnouncement(definition: record.json).write(pool) }
    }

    /// - Throws: `unknownType` for a type that has no table.
    func shape(of type: String) throws(SluiceError) -> TableShape {
        guard let shape = state.withLock({ $0.shapes[type] }) else {
            throw SluiceError(.unknownType, "Class \(type) has no table.")
        }
        return shape
    }

    var places: [String: AppConfiguration.Table] { state.withLock(\.places) }

    var foreignKeys: [ForeignKey] { state.withLock(\.foreignKeys) }

    /// Learns where the tables of new classes are.
    func add(_ places: [String: AppConfiguration.Table]) { state.withLock { $0.places.merge(places) { known, _ in known } } }
}

extension TableCatalog {
    /// - Parameter places: where tables are; one of the class's name in `public` for classes that are not in it.
    init(schema: Schema, places: [String: AppConfiguration.Table], partitions: [String: TimePartitions] = [:]) {
        let tables = schema.types.filter { $0.kind != .embedded }.map { type in
            TableMapping(
                type, schema: places[type.name]?.schema ?? "public", table: places[type.name]?.name,
                partitions: partitions[type.name])
        }
        self.init(schema: schema, tables: tables)
    }
}

extension PostgresFailure {
    /// Runs what talks to PostgreSQL and gives its failures in the product's own form.
    static func translating<R>(_ body: () async throws -> R) async throws -> R {
        do {
            return try await body()
        } catch {
            throw forPort(error)
        }
    }
}
