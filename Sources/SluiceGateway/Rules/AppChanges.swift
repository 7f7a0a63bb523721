import SluiceCore
import SluiceValues

/// The differences of an edited app directory from the one in use, for people: classes and fields, then roles, then other files.
package struct AppChanges: Hashable, Sendable {
    /// One phrase for each change, such as `role owner of class Task changed`.
    package private(set) var texts: [String] = []

    /// The number of phrases in `line`.
    private static let shown = 5

    /// - Parameter growsSchema: `true` if the gateway adopts classes and fields from the directory, as in development mode.
    package init(from old: AppConfiguration, to new: AppConfiguration, growsSchema: Bool) {
        let note = growsSchema ? "" : " (not in use: run sluice schema apply)"
        texts = SchemaComparison(from: AppSchemaRecord(old), to: AppSchemaRecord(new)).changes.map { $0.text + note }
        let classes = new.classesByFolder.merging(old.classesByFolder) { first, _ in first }
        for path in Set(old.files.keys).union(new.files.keys).sorted() where old.files[path] != new.files[path] {
            texts += Self.changes(in: path, old.files[path], new.files[path], classes)
        }
    }

    /// All changes in one line; the first five and the number of others if there are more.
    package var line: String {
        guard !texts.isEmpty else { return "a plugin's file changed" }
        let more = texts.count - Self.shown
        return texts.prefix(Self.shown).joined(separator: "; ") + (more > 0 ? "; and \(more) more" : "")
    }

    private static func changes(in path: String, _ old: String?, _ new: String?, _ classes: [String: String]) -> [String] {
        let parts = path.split(separator: "/")
        switch parts.last {
        // The comparison of the schemas has these.
        case "schema.json", "relationships.json": return []
        case "rules.json", "default_rule.json":
            let type = classes[parts.dropLast().suffix(2).joined(separator: "/")]
            let owner = parts.last == "default_rule.json" ? "the default rule" : type.map { "class \($0)" } ?? path
            return rules(of: owner, old.flatMap(json), new.flatMap(json))
        default: break
        }
        // The queryable fields are part of the schemas' comparison, too.
        if path == "sync/config.json", let before = old.flatMap(json), let after = new.flatMap(json), isSameBesideFields(before, after) {
            return []
        }
        return [
            "\(path) \(old == nil ? "added" : new == nil ? "removed" : "changed")\(needsRestart(parts) ? " (takes effect after a restart)" : "")"
        ]
    }

    private static func json(_ text: String) -> JSON? { try? JSON.parse(text) }

    private static func needsRestart(_ parts: [Substring]) -> Bool {
        let files = AppFiles.anyMain + [OperatorFile.name]
        return ["auth", "functions", "mail", "sync", "triggers"].contains(parts.first) || files.contains(parts.joined(separator: "/"))
    }

    private static func isSameBesideFields(_ old: JSON, _ new: JSON) -> Bool {
        let fields: Set<String> = [
            "queryable_fields_names", "collection_queryable_fields_names", "indexed_queryable_fields_names", "permissions",
        ]
        func rest(_ json: JSON) -> [JSON.Member] { (json.members ?? []).filter { !fields.contains($0.key) } }
        return JSON.object(rest(old)).text == JSON.object(rest(new)).text
    }

    // MARK: Roles

    private static func rules(of owner: String, _ old: JSON?, _ new: JSON?) -> [String] {
        var texts: [String] = []
        for (key, word) in [("roles", "role"), ("filters", "filter")] {
            let (before, after) = (named(old?[key]), named(new?[key]))
            let names = before.map(\.name) + after.map(\.name).filter { name in !before.contains { $0.name == name } }
            for name in names {
                let (was, now) = (before.first { $0.name == name }?.text, after.first { $0.name == name }?.text)
                guard was != now else { continue }
                texts.append("\(word) \(name) of \(owner) \(was == nil ? "added" : now == nil ? "removed" : "changed")")
            }
            let (kept, moved) = (before.map(\.name).filter { name in after.contains { $0.name == name } }, after.map(\.name))
            if kept != moved.filter({ kept.contains($0) }) { texts.append("the order of the \(word)s of \(owner) changed") }
        }
        return texts.isEmpty ? ["the rules of \(owner) changed"] : texts
    }

    private static func named(_ list: JSON?) -> [(name: String, text: String)] {
        (list?.array ?? []).enumerated().map { ($1["name"]?.string ?? "\($0 + 1)", $1.text) }
    }
}

extension AppConfiguration {
    /// The classes by `SCHEMA/TABLE`, the last two folders of their files.
    fileprivate var classesByFolder: [String: String] {
        Dictionary(tables.map { ("\($1.schema)/\($1.name)", $0) }, uniquingKeysWith: { first, _ in first })
    }
}
