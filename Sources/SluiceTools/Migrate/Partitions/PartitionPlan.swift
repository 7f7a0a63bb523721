import SluiceCore
import SluiceGateway
import SluiceValues

/// The files of a flexible app that does what a partition-based one did.
struct PartitionPlan {
    private let export: PartitionExport
    private let functions: [String: String]
    /// The texts by path.
    private(set) var texts: [String: String] = [:]
    private(set) var notes: [String] = []
    private(set) var denied: [String] = []

    init(_ export: PartitionExport, functions: [String: String]) {
        self.export = export
        self.functions = functions
    }

    mutating func make() {
        makeCustomData()
        makeRules()
        makeSync(isIndexed: true)
        let isIndexable = !AppDirectory.examine(files: export.files.merging(texts) { $1 }).problems.contains {
            $0.file == "sync/config.json" && $0.message.hasPrefix("The indexed queryable field")
        }
        if !isIndexable {
            makeSync(isIndexed: false)
            notes.append("'\(export.key)' is not of one type that can be indexed in every class, so it is queryable without an index.")
        }
        noteClasses()
        notes.append(
            "In the app, replace the partition value by a subscription: objects whose '\(export.key)' equals the value, by == or IN. "
                + "An app that opened several realms has one, with several subscriptions.")
    }

    // MARK: Sync

    private static let kept = [
        "service_name", "database_name", "development_mode_enabled", "client_max_offline_days", "is_recovery_mode_disabled",
        "asymmetric_tables",
    ]

    private mutating func makeSync(isIndexed: Bool) {
        var members: [JSON.Member] = [
            .init("type", "flexible"), .init("state", export.settings["state"] ?? "enabled"),
        ]
        if export.settings["service_name"] == nil { members.append(.init("service_name", .string(export.source))) }
        members += (export.settings.members ?? []).filter { Self.kept.contains($0.key) }
        members.append(.init("queryable_fields_names", [.string(export.key)]))
        if isIndexed { members.append(.init("indexed_queryable_fields_names", [.string(export.key)])) }
        texts["sync/config.json"] = SchemaFiles.text(.object(members))
        guard let key = export.place.key, let tree = export.trees[export.place.file] else { return }
        let config = JSON.object((tree["config"]?.members ?? []).filter { $0.key != key })
        texts[export.place.file] = SchemaFiles.text(tree.replacing("config", by: config))
    }

    /// Writes the settings of custom user data in a file of their own, where roles read them.
    private mutating func makeCustomData() {
        guard let (json, isOld) = export.customData, isOld else { return }
        texts["auth/custom_user_data.json"] = SchemaFiles.text(json)
    }

    private mutating func noteClasses() {
        let app = AppDirectory.examine(files: export.files.merging(texts) { $1 }, appID: "app").configuration
        let without = (app?.schema.types ?? []).filter { $0.kind != .embedded && $0[export.key] == nil }.map(\.name)
        guard !without.isEmpty else { return }
        notes.append(
            "No client has had objects of \(without.joined(separator: ", ")): they have no '\(export.key)'. Roles of their own would permit them."
        )
    }

    // MARK: Roles

    private mutating func makeRules() {
        let filters = JSON.object(namingKey(["read", "write"].map { JSON.Member($0, filter($0)) }))
        let role: JSON = [
            "name": "partition", "apply_when": [:], "document_filters": filters, "read": true, "write": true, "insert": true,
            "delete": true, "search": true,
        ]
        texts["data_sources/\(export.source)/default_rule.json"] = SchemaFiles.text(["roles": [role]])
        for (path, tree) in export.trees.sorted(by: { $0.key < $1.key }) where isRuleFile(path) {
            guard tree["roles"]?.array?.isEmpty == false else { continue }
            texts[path] = SchemaFiles.text(tree.replacing("roles", by: []))
            notes.append(
                "\(path): its roles never applied to partition-based sync, and would now replace those of the permissions. They are removed."
            )
        }
    }

    /// Returns the filters so that one of them names the partition key. A role denies for classes that lack a field of its filters, and
    /// those without the key had no objects.
    private func namingKey(_ filters: [JSON.Member]) -> [JSON.Member] {
        guard !filters.contains(where: { names($0.value) }), let index = filters.firstIndex(where: { $0.value != false }) else {
            return filters
        }
        let any: JSON = [
            "$or": [.object([.init(export.key, ["$exists": true])]), .object([.init(export.key, ["$exists": false])])]
        ]
        var filters = filters
        filters[index].value = filters[index].value == true ? any : ["$and": [filters[index].value, any]]
        return filters
    }

    /// Returns `true` if a filter has a condition on the partition key.
    private func names(_ filter: JSON) -> Bool {
        switch filter {
        case .array(let parts): parts.contains { names($0) }
        case .object(let members): members.contains { $0.key == export.key || $0.key.hasPrefix("$") && names($0.value) }
        default: false
        }
    }

    private func isRuleFile(_ path: String) -> Bool {
        let parts = path.split(separator: "/")
        return path.hasPrefix("data_sources/\(export.source)/") && parts.count == 5 && parts[4] == "rules.json"
            || path.hasPrefix("services/\(export.source)/rules/")
    }

    /// Returns the filter of an operation; `false` if no role can express the permission.
    private mutating func filter(_ operation: String) -> JSON {
        guard let permission = export.permission(operation) else {
            denied.append("\(operation): \(export.place.file) has no permission for it.")
            return false
        }
        var expression = PartitionExpression(export, functions: functions)
        do throws(FunctionProblem) { return try expression.filter(permission) } catch {
            denied.append(
                "\(operation): \(permission.text): \(error.reason). Write its filter into data_sources/\(export.source)/default_rule.json.")
            return false
        }
    }
}

extension JSON {
    /// Returns the object with another value for a key.
    fileprivate func replacing(_ key: String, by value: JSON) -> JSON {
        .object((members ?? []).map { $0.key == key ? JSON.Member(key, value) : $0 })
    }
}
