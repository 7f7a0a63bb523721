package import SluiceCore
import SluiceQuery
import SluiceValues

/// Reads `sync/config.json`.
struct SyncReader {
    let list: ProblemList

    struct Settings {
        var serviceName: String?
        var serviceNameNode: ConfigNode?
        var database: String?
        var sync = AppConfiguration.Sync()
        var global: ConfigNode?
        var byCollection: ConfigNode?
        var indexed: ConfigNode?
        /// Names of classes or collections.
        var asymmetric: ConfigNode?
        /// The roles before February 2023.
        var permissions: ConfigNode?
        /// `false` for an app without sync, and for one with partition-based sync.
        var isFlexible = true
    }

    private static let keys = [
        "type", "state", "service_name", "database_name", "development_mode_enabled", "queryable_fields_names",
        "collection_queryable_fields_names", "indexed_queryable_fields_names", "asymmetric_tables", "client_max_offline_days",
        "is_recovery_mode_disabled", "last_disabled", "partition", "permissions",
    ]
    private static let file = "sync/config.json"

    /// - Parameters:
    ///   - node: The settings; nil if there are none, or if they are not JSON.
    ///   - isPresent: `true` if `sync/config.json` exists.
    func read(_ node: ConfigNode?, isPresent: Bool) -> Settings {
        guard let node else {
            if !isPresent {
                list.add(
                    .configMissing, file: Self.file, "The sync configuration is missing: the app does not use Device Sync.",
                    fix: "Add it, or export the app again.")
            }
            return Settings(isFlexible: false)
        }
        // As of any other setting, null is none.
        let own = node.child("partition").flatMap { $0.json == .null ? nil : $0 }
        if let partition = own ?? node.child("type").flatMap({ $0.json.string == "partition" ? $0 : nil }) {
            let key = node.json["partition"]?["key"]?.string.map { " by '\($0)'" } ?? ""
            partition.problem(
                "The app uses partition-based sync\(key), which is not served: the sync type must be 'flexible'.",
                fix: "Run `sluice migrate partitions DIR`, which makes a queryable field of the partition key and roles of the permissions."
            )
            return Settings(isFlexible: false)
        }
        let isFlexible = ["type", "queryable_fields_names", "permissions"].contains { node.child($0) != nil }
        if !isFlexible {
            node.problem(
                "The app does not use Device Sync: \(node.file) has no 'type' of sync.",
                fix: "Add \"type\": \"flexible\" to synchronise it.", code: .configMissing)
            return Settings(isFlexible: false)
        }
        return settings(node)
    }

    private func settings(_ node: ConfigNode) -> Settings {
        let members = node.members(allowing: Self.keys).filter { $0.value.json != .null }
        if let type = members["type"], type.string != "flexible" {
            type.problem("The sync type must be 'flexible'.", fix: "Correct it.")
        }
        let states = ["enabled", "disabled", ""]
        if let state = members["state"], let text = state.string, !states.contains(text) {
            state.problem("'\(text)' is not a state.", fix: "Use 'enabled' or 'disabled'.")
        }
        if let days = members["client_max_offline_days"], let count = days.int, count < 1 {
            days.problem("\(count) days is not a valid horizon.", fix: "Give 1 or more.")
        }
        if members["state"]?.string == "" {
            members["state"]?.note(
                .adapted, "The state \"\" in sync/config.json means that sync was terminated. It is treated as \"disabled\".",
                fix: "Write \"enabled\" to serve the app.")
        } else if members["state"]?.json.string == "disabled" {
            members["state"]?.note(.missing, "Sync is paused.", fix: "Write \"enabled\" to serve the app.")
        }
        var settings = Settings()
        settings.serviceName = members["service_name"]?.string
        settings.serviceNameNode = members["service_name"]
        settings.database = members["database_name"]?.json.string
        settings.sync = AppConfiguration.Sync(
            isEnabled: members["state"]?.json.string ?? "enabled" == "enabled",
            isDevelopmentMode: members["development_mode_enabled"]?.bool ?? false,
            isRecoveryAllowed: !(members["is_recovery_mode_disabled"]?.bool ?? false),
            maximumOfflineDays: members["client_max_offline_days"]?.int.map { Int(clamping: $0) } ?? Limits.clientMemoryDays)
        settings.global = members["queryable_fields_names"]
        settings.byCollection = members["collection_queryable_fields_names"]
        settings.indexed = members["indexed_queryable_fields_names"]
        settings.asymmetric = members["asymmetric_tables"]
        settings.permissions = members["permissions"]
        return settings
    }

    // MARK: Queryable fields

    func queryable(_ settings: Settings, in result: SchemaReader.Result) -> QueryableFields {
        var fields = QueryableFields()
        for node in settings.global?.elements ?? [] {
            guard let name = checked(node) else { continue }
            fields.global.insert(name)
            let properties = result.schema.types.compactMap { $0[name] }
            if result.schema.types.isEmpty || properties.contains(where: { $0.isEligible || result.schema.isPoint($0) }) { continue }
            // Any text is valid here. It takes effect once a class has such a field.
            guard properties.isEmpty else {
                node.note(.unused, "'\(name)' cannot be queryable in any class. \(Self.eligible)")
                continue
            }
            let known = Set(result.schema.types.flatMap { $0.properties.map(\.name) })
            node.note(
                .unused, "No class has the queryable field '\(name)': it has no effect.\(Suggestion.question(for: name, in: known))")
        }
        readByCollection(settings.byCollection, result, &fields)
        readIndexed(settings.indexed, result, &fields)
        return fields
    }

    private func readByCollection(_ node: ConfigNode?, _ result: SchemaReader.Result, _ fields: inout QueryableFields) {
        for (name, names) in node?.members ?? [] {
            guard let type = result.type(calledOrIn: name) else {
                names.unused(
                    "The collection '\(name)' does not exist.",
                    fix: Suggestion.nearest(to: name, in: result.names).map { "Did you mean '\($0)'?" } ?? "Remove it.")
                continue
            }
            for element in names.elements {
                guard let field = checked(element) else { continue }
                guard let property = type[field] else {
                    let known = type.properties.map(\.name)
                    element.unused(
                        "\(type.name) has no property '\(field)'.",
                        fix: Suggestion.nearest(to: field, in: known).map { "Did you mean '\($0)'?" } ?? "Remove it.")
                    continue
                }
                if !property.isEligible, !result.schema.isPoint(property) {
                    element.unused("'\(field)' of \(type.name) cannot be queryable.", fix: Self.eligible)
                    continue
                }
                fields.byType[type.name, default: []].insert(field)
            }
        }
    }

    private func readIndexed(_ node: ConfigNode?, _ result: SchemaReader.Result, _ fields: inout QueryableFields) {
        guard let node else { return }
        let elements = node.elements
        if elements.count > 1 { node.problem("The app has \(elements.count) indexed queryable fields.", fix: "Keep one.") }
        guard let element = elements.first, let name = checked(element) else { return }
        if !fields.global.contains(name) {
            element.problem("The indexed queryable field '\(name)' is not queryable.", fix: "Add it to queryable_fields_names as well.")
        }
        let types = Set(result.schema.types.filter { $0.kind != .embedded }.compactMap { $0[name]?.type })
        if let unfit = types.first(where: { ![.int, .string, .objectId, .uuid].contains($0) }) {
            element.problem("The indexed queryable field '\(name)' is of type \(unfit).", fix: "It must be long, string, objectId or uuid.")
        } else if types.count > 1 {
            element.problem("The indexed queryable field '\(name)' has several types.", fix: "Give it one type in every class (IQF-2).")
        }
        fields.indexed = name
    }

    /// Returns the name of a field; a reserved word is a problem.
    private func checked(_ node: ConfigNode) -> String? {
        guard let name = node.string else { return nil }
        if QueryableFields.isReserved(name) {
            node.problem("'\(name)' is a word of the query language.", fix: "Rename the field.")
        }
        return name
    }

    private static let eligible = "Only scalars, links, arrays of them and embedded points of GeoJSON can."
}

extension QueryableFields {
    /// `true` if a name is a word of the query language, which a queryable field must not have.
    package static func isReserved(_ name: String) -> Bool { reservedInAnyCase.contains(name.lowercased()) || reserved.contains(name) }

    private static let reservedInAnyCase: Set<String> = [
        "and", "asc", "ascending", "beginswith", "between", "contains", "desc", "descending", "distinct", "endswith", "falsepredicate",
        "inf", "infinity", "like", "limit", "nan", "nil", "null", "or", "sort", "subquery", "truepredicate",
    ]
    private static let reserved: Set<String> = [
        "ALL", "ANY", "B64", "FALSE", "IN", "NONE", "NOT", "SOME", "TRUE", "all", "any", "false", "in", "none", "not", "oid", "some",
        "true", "uuid",
    ]
}

extension Property {
    /// `true` if the property may be a queryable field: scalars and links, and lists and sets of them. Roles compare a link by its key.
    package var isEligible: Bool {
        switch type {
        case .embedded: false
        default: collection != .dictionary
        }
    }
}
