package import SluiceCore
package import SluicePostgres
import SluiceValues

/// The privileges on tables that the roles of an app make use of.
///
/// It reads the rule files alone. A part that may allow something counts as allowed, so no write fails that a role permits.
package struct RoleWrites {
    private let app: AppConfiguration
    /// `true` if plugins other than that for roles decide, which may allow any write.
    private let hasOthers: Bool

    /// - Parameter others: The plugins beside those that the app lists.
    package init(_ app: AppConfiguration, others: [String] = []) {
        self.app = app
        let roles = InstalledFiles.file(ofPlugin: "AppServicesRules")
        hasOthers = (app.plugins.map(\.file) + others).contains { $0.split(separator: "/").last.map(String.init) != roles }
    }

    /// Returns the privileges that the gateway needs on the table of a class.
    package func privileges(of type: ObjectType) -> Set<TablePrivilege> {
        // A sink writes asymmetric objects, and looks up their keys.
        if type.kind == .asymmetric { return [.select, .insert] }
        if hasOthers { return [.select, .insert, .update, .delete] }
        var privileges: Set<TablePrivilege> = [.select]
        for role in roles(of: type) where Self.allows(role["document_filters"]?["write"], missing: false) {
            if Self.allows(role["insert"], missing: true) { privileges.insert(.insert) }
            if Self.allows(role["delete"], missing: true) { privileges.insert(.delete) }
            if Self.writesFields(role) { privileges.insert(.update) }
        }
        // Rows are locked before they are written, for which PostgreSQL requires UPDATE.
        if privileges.count > 1 { privileges.insert(.update) }
        return privileges
    }

    private static func allows(_ json: JSON?, missing: Bool) -> Bool {
        guard let json else { return missing }
        return json != .bool(false)
    }

    /// `true` if the role, or one of its field permissions at any depth, may allow a write.
    private static func writesFields(_ role: JSON) -> Bool {
        if allows(role["write"], missing: false) || allows(role["additional_fields"]?["write"], missing: false) { return true }
        return (role["fields"]?.members ?? []).contains { writesFields($0.value) }
    }

    /// Returns the roles of the class's collection, or else those for collections without their own.
    private func roles(of type: ObjectType) -> [JSON] {
        guard let table = app.tables[type.name] else { return [] }
        let folder = "/\(table.schema)/\(table.name)/"
        let own = files { $0.hasSuffix("\(folder)rules.json") && $0.split(separator: "/").count == 5 }
        return own.isEmpty ? files { $0.hasSuffix("/default_rule.json") } : own
    }

    private func files(where isWanted: (String) -> Bool) -> [JSON] {
        app.files.filter { $0.key.hasPrefix("data_sources/") && isWanted($0.key) }
            .flatMap { (try? JSON.located(Array($0.value.utf8)))?["roles"]?.array ?? [] }
    }
}

extension DatabaseNeeds {
    /// - Parameters:
    ///   - role: The role of the gateway; nil for that of the connection.
    ///   - others: The plugins beside those that the app lists.
    package init(_ app: AppConfiguration, role: String? = nil, others: [String] = []) {
        let writes = RoleWrites(app, others: others)
        let catalog = TableCatalog(schema: app.schema, places: app.tables, partitions: app.partitions)
        let tables = catalog.tables.compactMap { mapping in
            app.schema[mapping.type].map { NeededTable(mapping, writes.privileges(of: $0), isPublished: $0.kind == .topLevel) }
        }
        self.init(role: role, app: app.appID, tables: tables, customData: app.customDataPlace)
    }
}
