// The gateway's side of the JSON of sluice_plugin.h: its requests, and the answers that it reads.

extension PluginUser {
    var value: PluginValue {
        ["id": .string(id), "type": .string(type), "data": data, "custom_data": customData, "identities": identities]
    }
}

extension AppConfiguration {
    var value: PluginValue {
        func names(_ names: Set<String>) -> PluginValue { .array(names.sorted().map { .string($0) }) }
        let types = schema.sorted { $0.key < $1.key }.map { PluginValue.Member($0.key, $0.value.value) }
        let fields = queryableFieldsByType.sorted { $0.key < $1.key }.map { PluginValue.Member($0.key, names($0.value)) }
        return [
            "app_id": .string(appID),
            "directory": .object(directory.sorted { $0.key < $1.key }.map { PluginValue.Member($0.key, .string($0.value)) }),
            "schema": .object(types),
            "queryable_fields": [
                "global": names(queryableFields), "types": .object(fields), "indexed": indexedField.map { .string($0) } ?? .null,
            ],
            "development": .bool(isDevelopment), "custom_data_fields": customDataFields.map(names) ?? .null,
            "config": config,
        ]
    }
}

extension PluginObjectType {
    fileprivate var value: PluginValue {
        let members = properties.sorted { $0.key < $1.key }.map { name, property in
            PluginValue.Member(
                name,
                ["type": .string(property.type), "optional": .bool(property.isOptional), "collection": .string(property.collection)])
        }
        return ["kind": .string(kind), "primary_key": primaryKey.map { .string($0) } ?? .null, "properties": .object(members)]
    }
}

extension TypeRules {
    init(_ value: PluginValue) throws {
        func fields(_ key: String) -> Set<String>? { value[key]?.array.map { Set($0.compactMap(\.string)) } }
        guard let insert = value["insert"]?.bool, let delete = value["delete"]?.bool else { throw PluginError(unusable: "insert, delete") }
        self.init(
            read: try value.text("read"), write: try value.text("write"), insert: insert, delete: delete,
            readableFields: fields("readable_fields"), writableFields: fields("writable_fields"), role: value["role"]?.string ?? "",
            checkWrite: value["check_write"]?.bool ?? false, grants: value["grants"]?.bool ?? true)
    }
}

extension WriteVerdict {
    init(_ value: PluginValue) throws {
        switch value["verdict"]?.string {
        case "allow": self = .allow
        case "deny":
            self = .deny(
                reason: value["reason"]?.string ?? "", rule: value["rule"]?.string,
                fields: value["fields"]?.array?.compactMap(\.string) ?? [])
        case "amend": self = .amend(value["set"] ?? [:])
        default: throw PluginError(unusable: "verdict")
        }
    }
}

extension IngestVerdict {
    init(_ value: PluginValue) throws {
        switch value["verdict"]?.string {
        case "accept": self = value["object"].map { .transform($0) } ?? value["set"].map { .amend($0) } ?? .accept
        case "route": self = .route(type: try value.text("type"), object: value["object"] ?? [:])
        case "split":
            self = .split(
                try (value["objects"]?.array ?? []).map { Part(type: try $0.text("type"), object: $0["object"] ?? [:]) })
        case "drop": self = .drop(reason: value["reason"]?.string ?? "")
        case "reject": self = .reject(reason: value["reason"]?.string ?? "")
        default: throw PluginError(unusable: "verdict")
        }
    }
}
