import SluiceCore

/// Finds the collections of the data source and checks the shape of the rule files. The plugin for roles interprets their content.
struct DataSourceReader {
    let trees: [String: ConfigNode]
    let list: ProblemList

    /// The files of one collection.
    struct Collection {
        var source: String
        var table: AppConfiguration.Table
        var folder: String { "data_sources/\(source)/\(table.schema)/\(table.name)" }
        var schema: ConfigNode
        var relationships: ConfigNode?
        var ingest: ConfigNode?
    }

    private var sources: [String] {
        Set(trees.keys.filter { $0.hasPrefix("data_sources/") }.map { String($0.split(separator: "/")[1]) }).sorted()
    }

    /// Returns the data source that sync uses. An app syncs exactly one.
    func choose(_ wanted: String?, named node: ConfigNode?) -> String? {
        let sources = sources
        if let wanted {
            // Without any, the export has no class, which is reported.
            if sources.contains(wanted) || sources.isEmpty { return wanted }
            node?.problem(
                "The data source '\(wanted)' does not exist.",
                fix: Suggestion.nearest(to: wanted, in: sources).map { "Did you mean '\($0)'?" } ?? "Add data_sources/\(wanted)/.")
            return nil
        }
        if sources.count > 1 {
            let withSchemas = sources.filter { source in
                trees.keys.contains { $0.hasPrefix("data_sources/\(source)/") && $0.hasSuffix("/schema.json") }
            }
            if withSchemas.count == 1 { return withSchemas[0] }
            list.add(
                .configMissing, file: "sync/config.json", "There are several data sources: \(sources.joined(separator: ", ")).",
                fix: "Name one in 'service_name'.")
        }
        return sources.first
    }

    /// Returns the collections with a schema, by path.
    func collections(of source: String?) -> [Collection] {
        guard let source else { return [] }
        var collections: [Collection] = []
        for (path, node) in trees.sorted(by: { $0.key < $1.key }) where path.hasSuffix("/schema.json") {
            let parts = path.split(separator: "/").map(String.init)
            guard parts.count == 5, parts[0] == "data_sources", parts[1] == source else { continue }
            let folder = "data_sources/\(source)/\(parts[2])/\(parts[3])"
            collections.append(
                Collection(
                    source: source, table: .init(schema: parts[2], name: parts[3]), schema: node,
                    relationships: trees["\(folder)/relationships.json"], ingest: trees["\(folder)/ingest.json"]))
        }
        for other in sources where other != source {
            list.note(.unused, file: "data_sources/\(other)/", "The data source \(other) is not synchronised.")
        }
        return collections
    }

    // MARK: Rules

    func checkRules() {
        for (path, node) in trees.sorted(by: { $0.key < $1.key }) where path.hasPrefix("data_sources/") {
            if path.hasSuffix("/rules.json") || path.hasSuffix("/default_rule.json") { checkRuleFile(node) }
            if path.hasSuffix("/config.json"), path.split(separator: "/").count == 3 {
                _ = node.members(allowing: ["name", "type", "config", "secret_config", "version", "id"])
            }
        }
    }

    private func checkRuleFile(_ node: ConfigNode) {
        let members = node.members(allowing: ["database", "collection", "roles", "filters", "id", "_id", "schema", "relationships"])
        let parts = node.file.split(separator: "/").map(String.init)
        if parts.count == 5, parts[0] == "data_sources" {
            checkName(members["database"], parts[2])
            checkName(members["collection"], parts[3])
        }
        var names: Set<String> = []
        for role in members["roles"]?.elements ?? [] {
            let inner = role.members(allowing: [
                "name", "apply_when", "document_filters", "read", "write", "insert", "delete", "search", "fields", "additional_fields",
                "check_write",
            ])
            if let name = inner.required("name", of: role)?.string {
                if !names.insert(name).inserted { role.problem("Two roles are called '\(name)'.", fix: "Give each its own name.") }
                if name.utf8.count > 100 { role.problem("The role name '\(name)' is over 100 bytes.", fix: "Shorten it.") }
            }
            _ = inner.required("apply_when", of: role)
            _ = inner["document_filters"]?.members(allowing: ["read", "write"])
            inner["fields"].map { checkFields($0, more: ["immutable"]) }
            _ = inner["additional_fields"]?.members(allowing: ["read", "write", "immutable"])
        }
        for filter in members["filters"]?.elements ?? [] {
            _ = filter.members(allowing: ["name", "apply_when", "query", "projection"])
        }
    }

    private func checkName(_ node: ConfigNode?, _ folder: String) {
        guard let node, let name = node.string, name != folder else { return }
        node.problem("'\(name)' differs from the folder '\(folder)'.", fix: "Make them equal.")
    }

    /// - Parameter more: The keys that fields of an embedded object cannot have.
    private func checkFields(_ fields: ConfigNode, more: [String]) {
        for (_, field) in fields.members {
            let members = field.members(allowing: ["read", "write", "fields", "additional_fields"] + more)
            members["fields"].map { checkFields($0, more: []) }
            _ = members["additional_fields"]?.members(allowing: ["read", "write"])
        }
    }
}
