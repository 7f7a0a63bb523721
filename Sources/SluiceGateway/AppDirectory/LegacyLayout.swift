import SluiceValues

/// Reads the files of the layouts before 2021 as those of today.
///
/// - `services/NAME/config.json` and `services/NAME/rules/*.json`: A data source. A rule file has the schema and the relationships of
///   its collection.
/// - `auth_providers/NAME.json`: A login provider.
/// - `config.sync` and `config.flexible_sync` of a data source: The settings of `sync/config.json`.
struct LegacyLayout {
    private(set) var trees: [String: ConfigNode]
    /// The texts of the files by the path of today, for plugins.
    private(set) var files: [String: String]
    /// The settings of sync, with the data source that they stand in.
    private(set) var sync: (source: String, node: ConfigNode)?

    init(trees: [String: ConfigNode], files: [String: String]) {
        self.trees = trees
        self.files = files
        for (path, node) in trees.sorted(by: { $0.key < $1.key }) {
            let parts = path.split(separator: "/").map(String.init)
            if parts.first == "services" { adopt(service: parts[1], parts, node) }
            if parts.first == "data_sources", parts.count == 3, parts[2] == "config.json" { adoptSync(of: parts[1], node) }
        }
        adoptProviders()
    }

    private mutating func adopt(service: String, _ parts: [String], _ node: ConfigNode) {
        // Other services send mails, messages and notifications.
        guard let type = trees["services/\(service)/config.json"]?.json["type"]?.string, type.hasPrefix("mongodb") else { return }
        if parts.count == 3 {
            place(node, at: "data_sources/\(service)/config.json")
            adoptSync(of: service, node)
        } else if let database = node.json["database"]?.string, let collection = node.json["collection"]?.string {
            let folder = "data_sources/\(service)/\(database)/\(collection)"
            place(node, at: "\(folder)/rules.json")
            if let schema = node.child("schema") { place(schema, at: "\(folder)/schema.json") }
            if let links = node.child("relationships") { place(links, at: "\(folder)/relationships.json") }
        }
    }

    /// A file of today wins over an older one.
    private mutating func place(_ node: ConfigNode, at path: String) {
        guard trees[path] == nil else { return }
        trees[path] = node
        // Lines are those of the older file.
        files[path] = node.path.isEmpty ? files[node.file] : LinedText.text(node.json, from: node.line)
    }

    private mutating func adoptSync(of source: String, _ node: ConfigNode) {
        guard trees["sync/config.json"] == nil, sync == nil, let config = node.child("config") else { return }
        guard let found = config.child("flexible_sync") ?? config.child("sync"), found.json.members?.isEmpty == false else { return }
        sync = (source, found)
    }

    private mutating func adoptProviders() {
        let paths = trees.keys.filter { $0.hasPrefix("auth_providers/") }.sorted()
        guard trees["auth/providers.json"] == nil, let first = paths.first, let node = trees[first] else { return }
        let members = paths.compactMap { path in
            trees[path].map { JSON.Member($0.json["name"]?.string ?? String(path.dropFirst(15).dropLast(5)), $0.json, line: 1, column: 1) }
        }
        trees["auth/providers.json"] = ConfigNode(file: node.file, json: .object(members), list: node.list)
    }
}

/// Prints JSON so that each member stands in the line that it had, for messages about it.
enum LinedText {
    /// - Parameter first: The line of the value in its file.
    static func text(_ json: JSON, from first: Int = 1) -> String {
        var text = ""
        var line = 1
        advance(&text, &line, to: first)
        write(json, &text, &line)
        return text
    }

    private static func write(_ json: JSON, _ text: inout String, _ line: inout Int) {
        switch json {
        case .object(let members):
            text += "{"
            for (index, member) in members.enumerated() {
                if index > 0 { text += "," }
                advance(&text, &line, to: member.line)
                text += JSON.string(member.key).text + ":"
                write(member.value, &text, &line)
            }
            text += "}"
        case .array(let elements):
            text += "["
            for (index, element) in elements.enumerated() {
                if index > 0 { text += "," }
                write(element, &text, &line)
            }
            text += "]"
        default: text += json.text
        }
    }

    private static func advance(_ text: inout String, _ line: inout Int, to wanted: Int) {
        guard wanted > line else { return }
        text += String(repeating: "\n", count: wanted - line)
        line = wanted
    }
}
