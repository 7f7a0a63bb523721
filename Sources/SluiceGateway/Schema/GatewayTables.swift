import SluiceCore
import SluicePostgres
import Synchronization

/// The app's tables: where they are, that they fit, and that their changes are published.
final class GatewayTables: Sendable {
    private struct State {
        var shapes: [String: TableShape] = [:]
        var mappings: [TableMapping] = []
    }

    private let app: AppConfiguration
    private let pool: PostgresPool
    private let names: ReplicationNames
    private let state = Mutex(State())

    init(app: AppConfiguration, pool: PostgresPool, names: ReplicationNames) {
        self.app = app
        self.pool = pool
        self.names = names
    }

    /// Numbers the properties, makes tables that are missing (when `create`), checks the others, and publishes them all.
    /// - Returns: the types with their numbers.
    /// - Throws: `tableUnfit` naming table and column.
    func prepare(_ types: [ObjectType], create: Bool) async throws -> [ObjectType] {
        let numbered = try await PropertyNumbers(pool: pool).number(types)
        let schema = Schema(numbered)
        let mappings = numbered.filter { $0.kind != .embedded }.map { type in
            let table = app.tables[type.name]
            return TableMapping(type, schema: table?.schema ?? "public", table: table?.name)
        }
        let catalog = TableCatalog(schema: schema, tables: mappings)
        let publication = names.publication
        let readable = mappings.filter { schema[$0.type]?.kind == .topLevel }
        try await PostgresFailure.translating {
            try await pool.withConnection { connection in
                if create { _ = try await catalog.create(connection) }
                try await catalog.requireFit(connection)
                _ = try await catalog.setReplicaIdentity(connection)
                _ = try await Publication.ensure(connection, name: publication, tables: readable)
            }
        }
        var shapes: [String: TableShape] = [:]
        for (type, mapping) in zip(numbered.filter { $0.kind != .embedded }, mappings) {
            shapes[type.name] = try TableShape(type, in: schema, mapping: mapping)
        }
        state.withLock { state in
            state.shapes = shapes
            state.mappings = mappings
        }
        return numbered
    }

    /// - Throws: `unknownType` for a type that has no table.
    func shape(of type: String) throws(SluiceError) -> TableShape {
        guard let shape = state.withLock({ $0.shapes[type] }) else {
            throw SluiceError(.unknownType, "Class \(type) has no table.")
        }
        return shape
    }

    var mappings: [TableMapping] { state.withLock(\.mappings) }
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
