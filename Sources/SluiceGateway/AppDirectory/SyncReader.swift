package import SluiceCore
import SluiceQuery
import SluiceValues

/// Reads `sync/config.json`.
struct SyncReader {
    let list: ProblemList

    struct Settings {
        var serviceName: String?
        var serviceNameNode: ConfigNode?
        var sync = AppConfiguration.Sync()
        var global: ConfigNode?
        var byCollection: ConfigNode?
        var indexed: ConfigNode?
        /// Names of classes or collections.
        var asymmetric: ConfigNode?
    }

    func read(_ node: ConfigNode) -> Settings {
        let members = node.members(allowing: [
            "type", "state", "service_name", "database_name", "development_mode_enabled", "queryable_fields_names",
            "collection_queryable_fields_names", "indexed_queryable_fields_names", "asymmetric_tables", "client_max_offline_days",
            "is_recovery_mode_disabled", "last_disabled", "permissions",
        ])
        .filter { $0.value.json != .null }
        if let type = members["type"], type.string != "flexible" {
            type.problem("The sync type must be 'flexible'.", fix: "Partition-based sync is not served; migrate to flexible first.")
        }
        let states = ["enabled", "disabled", ""]
        if let state = members["state"], let text = state.string, !states.contains(text) {
            state.problem("'\(text)' is not a state.", fix: "Use 'enabled' or 'disabled'.")
        }
        if let days = members["client_max_offline_days"], let count = days.int, count < 1 {
            days.problem("\(count) days is not a valid horizon.", fix: "Give 1 or more.")
        }
        if members["state"]?.string == "" {
            list.notes.append(
                "The state \"\" in sync/config.json means that sync was terminated. It is treated as \"disabled\".")
        }
        if members["permissions"]?.json.members?.isEmpty == false {
            list.notes.append("'permissions' in sync/config.json has no effect: rules are in the rule files.")
        }
        return Settings(
            serviceName: members["service_name"]?.string, serviceNameNode: members["service_name"],
            sync: AppConfiguration.Sync(
                isEnabled: members["state"]?.json.string ?? "enabled" == "enabled",
                isDevelopmentMode: members["development_mode_enabled"]?.bool ?? false,
                isRecoveryAllowed: !(members["is_recovery_mode_disabled"]?.bool ?? false),
                maximumOfflineDays: members["client_max_offline_days"]?.int.map { Int(clamping: $0) } ?? Limits.clientMemoryDays),
            global: members["queryable_fields_names"], byCollection: members["collection_queryable_fields_names"],
            indexed: members["indexed_queryable_fields_names"],
            asymmetric: members["asymmetric_tables"])
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
                node.note("'\(name)' cannot be queryable in any class. \(Self.eligible)")
                continue
            }
            let known = Set(result.schema.types.flatMap { $0.properties.map(\.name) })
            node.note("No class has the queryable field '\(name)': it has no effect.\(Suggestion.question(for: name, in: known))")
        }
        readByCollection(settings.byCollection, result, &fields)
        readIndexed(settings.indexed, result, &fields)
        return fields
    }

    private func readByCollection(_ node: ConfigNode?, _ result: SchemaReader.Result, _ fields: inout QueryableFields) {
        for (name, names) in node?.members ?? [] {
            guard let type = result.type(calledOrIn: name) else {
                names.problem(
                    "The collection '\(name)' does not exist.",
                    fix: Suggestion.nearest(to: name, in: result.names).map { "Did you mean '\($0)'?" } ?? "Remove it.")
                continue
            }
            for element in names.elements {
                guard let field = checked(element) else { continue }
                guard let property = type[field] else {
                    let known = type.properties.map(\.name)
                    element.problem(
                        "\(type.name) has no property '\(field)'.",
                        fix: Suggestion.nearest(to: field, in: known).map { "Did you mean '\($0)'?" } ?? "Remove it.")
                    continue
                }
                if !property.isEligible, !result.schema.isPoint(property) {
                    element.problem(
                        "'\(field)' of \(type.name) cannot be queryable.",
                        fix: Self.eligible)
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

    private static let eligible = "Only scalars, arrays of scalars and embedded points of GeoJSON can."
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
    /// `true` if the property may be a queryable field: scalars, and lists and sets of them.
    package var isEligible: Bool {
        switch type {
        case .embedded, .link: false
        default: collection != .dictionary
        }
    }
}
