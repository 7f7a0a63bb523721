// Conversion between the typed arguments and the JSON of sluice_plugin.h.

extension PluginError {
    /// Input from the gateway that violates the interface.
    init(unusable member: String) { self.init("the gateway's input lacks a usable \"\(member)\"") }
}

extension PluginValue {
    func text(_ key: String) throws(PluginError) -> String {
        guard let text = self[key]?.string else { throw PluginError(unusable: key) }
        return text
    }

    func list(_ key: String) throws(PluginError) -> [PluginValue] {
        guard let list = self[key]?.array else { throw PluginError(unusable: key) }
        return list
    }

    func names(_ key: String) throws(PluginError) -> [String] {
        let names = try list(key).compactMap(\.string)
        guard names.count == self[key]?.array?.count else { throw PluginError(unusable: key) }
        return names
    }
}

extension PluginUser {
    init(_ value: PluginValue?) throws(PluginError) {
        guard let value, value.members != nil else { throw PluginError(unusable: "user") }
        self.init(
            id: try value.text("id"), type: try value.text("type"), data: value["data"] ?? [:],
            customData: value["custom_data"] ?? [:], identities: value["identities"] ?? [], functions: try Self.functions(value))
    }

    private static func functions(_ value: PluginValue) throws(PluginError) -> [PluginFunctionResult] {
        var functions: [PluginFunctionResult] = []
        for call in value["functions"]?.array ?? [] {
            functions.append(
                PluginFunctionResult(name: try call.text("name"), arguments: try call.list("arguments"), result: call["result"] ?? .null))
        }
        return functions
    }
}

extension AppConfiguration {
    init(_ value: PluginValue) throws(PluginError) {
        self.init(appID: try value.text("app_id"))
        for file in value["directory"]?.members ?? [] { directory[file.key] = file.value.string }
        config = value["config"] ?? .null
        for type in value["schema"]?.members ?? [] { schema[type.key] = try PluginObjectType(type.value) }
        isDevelopment = value["development"]?.bool ?? false
        customDataFields = (value["custom_data_fields"]?.array).map { Set($0.compactMap(\.string)) }
        guard let fields = value["queryable_fields"], !fields.isNull else { return }
        queryableFields = Set(try fields.names("global"))
        for type in fields["types"]?.members ?? [] {
            queryableFieldsByType[type.key] = Set((type.value.array ?? []).compactMap(\.string))
        }
        indexedField = fields["indexed"]?.string
    }
}

extension PluginObjectType {
    fileprivate init(_ value: PluginValue) throws(PluginError) {
        self.init(kind: try value.text("kind"), primaryKey: value["primary_key"]?.string, properties: [:])
        for property in value["properties"]?.members ?? [] {
            properties[property.key] = PluginProperty(
                type: try property.value.text("type"), isOptional: property.value["optional"]?.bool ?? false,
                collection: property.value["collection"]?.string ?? "none")
        }
    }
}

extension PluginQuery {
    init(_ value: PluginValue) throws(PluginError) {
        self.init(type: try value.text("type"), query: try value.text("query"))
    }

    var value: PluginValue { ["type": .string(type), "query": .string(query)] }
}

extension TypeRules {
    var value: PluginValue {
        func fields(_ names: Set<String>?) -> PluginValue { names.map { .array($0.sorted().map { .string($0) }) } ?? .null }
        var value: PluginValue = [
            "read": .string(read), "write": .string(write), "insert": .bool(insert), "delete": .bool(delete),
            "readable_fields": fields(readableFields), "writable_fields": fields(writableFields),
            "role": .string(role), "check_write": .bool(checkWrite),
        ]
        if !grants { value.set("grants", to: false) }
        return value
    }
}

extension WriteVerdict {
    var value: PluginValue {
        switch self {
        case .allow: ["verdict": "allow"]
        case .deny(let reason, let rule, let fields):
            .object(
                [PluginValue.Member("verdict", "deny"), .init("reason", .string(reason))]
                    + (rule.map { [.init("rule", .string($0))] } ?? [])
                    + (fields.isEmpty ? [] : [.init("fields", .array(fields.map { .string($0) }))]))
        case .amend(let values): ["verdict": "amend", "set": values]
        }
    }
}

extension IngestVerdict {
    var value: PluginValue {
        switch self {
        case .accept: ["verdict": "accept"]
        case .amend(let values): ["verdict": "accept", "set": values]
        case .transform(let object): ["verdict": "accept", "object": object]
        case .route(let type, let object): ["verdict": "route", "type": .string(type), "object": object]
        case .split(let parts):
            ["verdict": "split", "objects": .array(parts.map { ["type": .string($0.type), "object": $0.object] })]
        case .drop(let reason): ["verdict": "drop", "reason": .string(reason)]
        case .reject(let reason): ["verdict": "reject", "reason": .string(reason)]
        }
    }
}
