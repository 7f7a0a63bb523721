import SluiceCore
package import SluicePostgres

extension CustomDataTable {
    /// Returns the statements that create the app's missing table or column for custom data, beside the tables of its classes.
    package func statements(for app: AppConfiguration) async throws -> [String] {
        guard let place = app.customDataPlace else { return [] }
        return try await statements(place, planned: app.customDataClass.flatMap { app.columns(of: $0) })
    }

    /// Returns the members that the app's custom data can have; nil if the app names no table, it does not exist, or they can have any.
    package func columns(of app: AppConfiguration) async throws -> [String]? {
        guard let place = app.customDataPlace else { return nil }
        return try await columns(place)
    }
}

extension AppConfiguration {
    /// The class whose table holds custom data; nil if it is no table of a class.
    fileprivate var customDataClass: String? {
        users.customData.flatMap { custom in tables.first { $0.value.isPlace(of: custom.table) }?.key }
    }

    /// The table of custom data with its columns; nil if the app names none.
    package var customDataPlace: CustomDataTable.Place? {
        guard let custom = users.customData else { return nil }
        let table = customDataClass.flatMap { tables[$0] } ?? custom.table
        return CustomDataTable.Place(
            schema: table.schema, table: table.name, userID: table.column(of: custom.userIDField),
            members: Dictionary(table.columns.map { ($1, $0) }, uniquingKeysWith: { first, _ in first }))
    }

    fileprivate func columns(of type: String) -> [String]? {
        schema[type]?.properties.map { property in tables[type]?.column(of: property.name) ?? property.name }
    }
}
