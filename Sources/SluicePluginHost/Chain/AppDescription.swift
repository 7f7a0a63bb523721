package import SluiceCore
package import SluiceValues

/// Encodes the description of the app that `configure` sends to plugins, as sluice_plugin.h defines it.
package enum AppDescription {
    /// Returns the description of the whole app.
    /// - Parameters:
    ///   - directory: The files of the app directory as text, by path from its root, with `/` as separator.
    ///   - isDevelopment: `true` while clients may add classes and properties.
    ///   - customDataFields: The columns of the table that users' custom data follow; nil if none is configured.
    package static func json(
        appID: String, directory: [String: String], schema: Schema, queryableFields: QueryableFields, isDevelopment: Bool = false,
        customDataFields: [String]? = nil
    ) -> JSON {
        let files = directory.sorted { $0.key < $1.key }.map { JSON.Member($0.key, .string($0.value)) }
        let types = schema.types.map { JSON.Member($0.name, json($0)) }
        let fieldsByType = queryableFields.byType.sorted { $0.key < $1.key }.map { JSON.Member($0.key, names($0.value)) }
        return [
            "app_id": .string(appID), "directory": .object(files), "schema": .object(types),
            "queryable_fields": [
                "global": names(queryableFields.global), "types": .object(fieldsByType),
                "indexed": queryableFields.indexed.map { .string($0) } ?? .null,
            ],
            "development": .bool(isDevelopment),
            "custom_data_fields": customDataFields.map { .array($0.sorted().map { .string($0) }) } ?? .null,
        ]
    }

    /// Returns the description for one plugin, with its own configuration.
    static func configuration(_ app: JSON, for plugin: PluginSpec) -> JSON {
        var members = (app.members ?? []).filter { $0.key != "config" }
        for index in members.indices where members[index].key == "directory" {
            members[index].value = directory(members[index].value, withSecrets: plugin.seesSecrets)
        }
        return .object(members + [JSON.Member("config", plugin.config)])
    }

    /// Returns the directory without the files that plugins must not see.
    /// These are the login settings with the providers' secrets, the operator's settings, the texts of mails, the other plugins'
    /// configurations, and the app's secrets.
    private static func directory(_ directory: JSON, withSecrets: Bool) -> JSON {
        .object(
            (directory.members ?? []).filter { file in
                !["auth/", "mail/"].contains(where: file.key.hasPrefix) && !["plugins.json", "sluice.json"].contains(file.key)
                    && (withSecrets || file.key != secrets)
            })
    }

    /// The file of an app directory with its secrets.
    package static let secrets = "secrets.json"

    private static func names(_ names: Set<String>) -> JSON { .array(names.sorted().map { .string($0) }) }

    private static func json(_ type: ObjectType) -> JSON {
        let properties = type.properties.map { property in
            JSON.Member(
                property.name,
                [
                    "type": .string(property.type.word), "optional": .bool(property.isOptional),
                    "collection": .string(property.collection.word),
                ])
        }
        let key = type.primaryKey.map { JSON.string(type.properties[$0].name) } ?? .null
        return ["kind": .string(type.kind.word), "primary_key": key, "properties": .object(properties)]
    }
}
