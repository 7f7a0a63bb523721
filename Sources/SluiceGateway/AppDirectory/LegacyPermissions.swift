import SluiceCore
import SluiceValues

/// The roles in `permissions` of the sync settings, as App Services stored them before February 2023.
///
/// They become rule files of the newer form, by the migration that App Services documented:
///
/// - `defaultRoles` are the default roles of the data source, and `rules.COLLECTION` the roles of a collection.
/// - `applyWhen` is `apply_when`. `read` and `write` are `document_filters`, and a missing one is false.
/// - All operations are permitted. The filters restrict them by document.
struct LegacyPermissions {
    let permissions: ConfigNode

    /// Returns the rule files by path, in place of those that the plugin for roles would read.
    ///
    /// - Parameters:
    ///   - source: The data source.
    ///   - collections: The tables by class.
    /// - Returns: nil if no role stands here.
    func ruleFiles(source: String, _ collections: [String: AppConfiguration.Table]) -> [String: String]? {
        let defaults = permissions.child("defaultRoles").map(roles) ?? []
        let rules = permissions.child("rules").map { $0.json == .null ? [] : $0.members } ?? []
        guard !defaults.isEmpty || rules.contains(where: { !roles($0.node).isEmpty }) else { return nil }
        var files = ["data_sources/\(source)/default_rule.json": text(defaults)]
        for (name, node) in rules {
            let tables = collections.filter { $0.value.name == name }
            guard let table = (tables.isEmpty ? collections[name] : tables.min { $0.key < $1.key }?.value) else {
                let names = collections.values.map(\.name) + collections.keys
                node.note(
                    .unused, "The collection '\(name)' does not exist: its roles have no effect.",
                    fix: Suggestion.nearest(to: name, in: names).map { "Did you mean '\($0)'?" } ?? "")
                continue
            }
            files["data_sources/\(source)/\(table.schema)/\(table.name)/rules.json"] = text(roles(node))
        }
        return files
    }

    private func text(_ roles: [JSON]) -> String {
        LinedText.text(.object([JSON.Member("roles", .array(roles.map(Self.migrated)))]))
    }

    private func roles(_ node: ConfigNode) -> [JSON] {
        guard node.json != .null else { return [] }
        return node.elements.compactMap { element in
            guard element.json.members != nil else {
                element.problem("\(element.name) is not a role.", fix: "Write an object with 'name', 'applyWhen', 'read' and 'write'.")
                return nil
            }
            return element.json
        }
    }

    /// Returns a role in the newer form. Other keys stay, and the plugin for roles judges them.
    static func migrated(_ role: JSON) -> JSON {
        guard let members = role.members, role["document_filters"] == nil else { return role }
        var filters = members.filter { $0.key == "read" || $0.key == "write" }
        let first = filters.first
        for name in ["read", "write"] where !filters.contains(where: { $0.key == name }) { filters.append(JSON.Member(name, false)) }
        var migrated: [JSON.Member] = []
        // Members keep their order, because messages name their lines.
        for member in members {
            switch member.key {
            case first?.key: migrated.append(JSON.Member("document_filters", .object(filters), line: member.line, column: member.column))
            case "read", "write": break
            case "applyWhen": migrated.append(JSON.Member("apply_when", member.value, line: member.line, column: member.column))
            default: migrated.append(member)
            }
        }
        if first == nil { migrated.append(JSON.Member("document_filters", .object(filters))) }
        let given = Set(members.map(\.key))
        migrated += ["read", "write"].map { JSON.Member($0, true) }
        migrated += ["insert", "delete", "search"].filter { !given.contains($0) }.map { JSON.Member($0, true) }
        return .object(migrated)
    }
}

extension LegacyPermissions {
    /// `true` if a rule file has a role of the newer form, which then decides for the whole app.
    static func isReplaced(by trees: [String: ConfigNode]) -> Bool {
        trees.contains { path, node in
            (path.hasSuffix("/rules.json") || path.hasSuffix("/default_rule.json"))
                && (node.json["roles"]?.array ?? []).contains { $0["document_filters"] != nil }
        }
    }
}
