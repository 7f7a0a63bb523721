import SluiceCore
import SluiceValues

/// The places of an app directory: which files App Services defines, and which of them the gateway reads.
///
/// A repository may hold any other file. Those are passed over.
package enum AppFiles {
    /// The files that may name the app, by preference.
    package static let main = ["realm_config.json", "root_config.json", "app.json", "stitch.json"]
    /// The file that named the app in the exports of 2020. Other programs have files of this name too, so it needs a `config_version`.
    static let oldMain = "config.json"
    /// `main` and `oldMain`.
    package static let anyMain = main + [oldMain]
    /// The App Services CLI's record of the app that a repository belongs to.
    static let meta = ".mdb/meta.json"
    static let root = main + [AppSecrets.file, PluginListReader.file, OperatorFile.name]
    /// The folders of features that Sluice does not run. They are accepted and noted, but not read.
    static let unserved: Set<String> = [
        "http_endpoints", "graphql", "hosting", "log_forwarders", "https_endpoints",
    ]
    /// The folders that are read. `services` and `auth_providers` are the older forms of `data_sources` and `auth`.
    static let folders = [
        "auth", "auth_providers", "data_sources", "environments", "functions", "services", "sync", "triggers", "values",
    ]

    /// The role of a path in the directory.
    enum Place: Equatable {
        case read
        case unserved
        /// The source of a function, which only `sluice migrate` reads.
        case source
        /// The text of a mail.
        case template
        /// A file of something else.
        case foreign
        /// A file that is likely misspelt: the name and the meant one.
        case misspelt(String, String)
    }

    static func place(of path: String) -> Place {
        if path == meta { return .read }
        let parts = path.split(separator: "/").map(String.init)
        if parts.contains(where: { $0.hasPrefix(".") || $0 == "node_modules" }) || parts.first == "plugins" { return .foreign }
        if parts.count > 1, unserved.contains(parts[0]) { return .unserved }
        if parts.count > 1, parts[0] == "functions" { return function(parts) }
        if parts.count == 2, parts[0] == MailTemplateReader.folder {
            let place = known(parts[1], MailTemplateReader.names)
            return place == .read ? .template : place
        }
        guard path.hasSuffix(".json") else { return .foreign }
        if parts.count == 1 { return parts[0] == oldMain ? .read : known(parts[0], root) }
        guard folders.contains(parts[0]) else { return known(parts[0], folders) }
        let name = parts[parts.count - 1]
        switch (parts[0], parts.count) {
        case ("auth", 2): return known(name, ["providers.json", "custom_user_data.json"])
        case ("sync", 2): return known(name, ["config.json"])
        case ("data_sources", 3): return known(name, ["config.json", "default_rule.json"])
        case ("data_sources", 5): return known(name, ["schema.json", "rules.json", "relationships.json", "ingest.json"])
        case ("services", 3): return known(name, ["config.json"])
        case ("services", 4): return parts[2] == "rules" ? .read : .foreign
        case ("values", 2), ("environments", 2), ("auth_providers", 2), ("triggers", 2): return .read
        default: return .foreign
        }
    }

    private static func function(_ parts: [String]) -> Place {
        if parts[1...] == ["config.json"] || parts.count == 3 && parts[2] == "config.json" { return .read }
        return parts[parts.count - 1].hasSuffix(".js") ? .source : .foreign
    }

    /// Returns `true` for the file `oldMain` of another program.
    static func isForeign(_ path: String, _ text: String) -> Bool {
        path == oldMain && (try? JSON.parse(Array(text.utf8)))?["config_version"]?.int == nil
    }

    private static func known(_ name: String, _ names: [String]) -> Place {
        if names.contains(name) { return .read }
        // A long name that differs in one letter is a mistake. Others belong to other programs.
        guard name.utf8.count >= 8, let near = names.first(where: { EditDistance.between(name.lowercased(), $0.lowercased()) == 1 }) else {
            return .foreign
        }
        return .misspelt(name, near)
    }
}
