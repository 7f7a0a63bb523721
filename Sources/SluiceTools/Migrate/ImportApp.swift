import SluiceCore
import SluiceGateway
import SluicePostgres
import Synchronization

/// The app's classes as an import needs them: by collection, with their tables.
struct ImportApp: Sendable {
    let schema: Schema
    let tables: [String: AppConfiguration.Table]
    private let catalog: TableCatalog
    private let found = FoundTables()

    init(_ app: AppConfiguration) {
        schema = app.schema
        tables = app.tables
        catalog = TableCatalog(schema: app.schema, places: app.tables, partitions: app.partitions)
    }

    /// The classes by the names of their collections, for those names that belong to one class.
    var classesByCollection: [String: String] {
        let names = Dictionary(tables.map { ($0.value.name, [$0.key]) }, uniquingKeysWith: +)
        return names.compactMapValues { $0.count == 1 ? $0[0] : nil }
    }

    /// Returns the class of a collection; nil if there is none.
    ///
    /// - Parameter database: nil if the source does not name it. The collection then finds its class if only one has its name.
    func type(database: String?, collection: String) -> String? {
        guard let database else { return classesByCollection[collection] }
        return tables.first { $0.value.schema == database && $0.value.name == collection }?.key
    }

    /// - Throws: `unknownType` for a class without a table.
    func shape(of type: String) throws(SluiceError) -> TableShape {
        guard let known = schema[type], let mapping = found[type] ?? catalog[type] else {
            throw SluiceError(.unknownType, "Class \(type) has no table.")
        }
        return try TableShape(known, in: schema, mapping: mapping)
    }

    /// Checks the tables of classes, and keeps the facts of their columns for `shape`.
    ///
    /// - Throws: `tableUnfit` with all mismatches.
    func requireFit(_ types: Set<String>, _ connection: PostgresConnection) async throws {
        let wanted = TableCatalog(schema: schema, tables: catalog.tables.filter { types.contains($0.type) })
        try await wanted.requireFit(connection)
        found.keep(try await wanted.found(connection))
    }

    /// The collections for messages, sorted.
    var collections: [String] { tables.values.map { "\($0.schema).\($0.name)" }.sorted() }
}

/// The tables as they were found before the import.
private final class FoundTables: Sendable {
    private let catalog = Mutex<TableCatalog?>(nil)

    subscript(type: String) -> TableMapping? { catalog.withLock { $0?[type] } }

    func keep(_ found: TableCatalog) { catalog.withLock { $0 = found } }
}
