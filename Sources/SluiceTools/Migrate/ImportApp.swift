import SluiceCore
import SluiceGateway
import SluicePostgres

/// The app's classes as an import needs them: by collection, with their tables.
struct ImportApp: Sendable {
    let schema: Schema
    let tables: [String: AppConfiguration.Table]
    private let catalog: TableCatalog

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
        guard let found = schema[type], let mapping = catalog[type] else { throw SluiceError(.unknownType, "Class \(type) has no table.") }
        return try TableShape(found, in: schema, mapping: mapping)
    }

    /// Checks the tables of classes.
    ///
    /// - Throws: `tableUnfit` with all mismatches.
    func requireFit(_ types: Set<String>, _ connection: PostgresConnection) async throws {
        try await TableCatalog(schema: schema, tables: catalog.tables.filter { types.contains($0.type) }).requireFit(connection)
    }

    /// The collections for messages, sorted.
    var collections: [String] { tables.values.map { "\($0.schema).\($0.name)" }.sorted() }
}
