import SluiceCore
import SluiceValues

/// Builds the configuration from the parsed files of a directory. Problems are added to the list.
struct AppReader {
    let trees: [String: ConfigNode]
    let paths: Set<String>
    let list: ProblemList

    private static let mainFiles = ["realm_config.json", "app.json", "root_config.json"]
    /// The folders of features that Sluice does not run. They are accepted and noted, but not read.
    static let withoutEffect: Set<String> = [
        "functions", "triggers", "http_endpoints", "graphql", "hosting", "log_forwarders", "services", "https_endpoints",
    ]
    /// The files of an npm project, as a repository of functions has them.
    static let filesWithoutEffect: Set<String> = ["package.json", "package-lock.json"]

    func read(files: [String: String]) -> AppConfiguration? {
        checkPlaces()
        let main = readMain()
        let source = DataSourceReader(trees: trees, list: list)
        source.checkRules()
        let sync = SyncReader(list: list)
        let settings = trees["sync/config.json"].map { sync.read($0) } ?? missingSync()
        let sourceName = source.choose(settings.serviceName, named: settings.serviceNameNode)
        let collections = source.collections(of: sourceName)
        let result = SchemaReader(list: list).read(collections, asymmetric: settings.asymmetric)
        let partitions = IngestReader().partitions(of: collections, in: result)
        // The fields of a partly read schema cannot be checked: the errors would be misleading.
        let isSchemaWhole = !list.problems.contains { $0.file.hasSuffix("/schema.json") }
        let queryable = isSchemaWhole ? sync.queryable(settings, in: result) : QueryableFields()
        let auth = AuthReader(list: list)
        guard let main, list.problems.isEmpty else { return nil }
        let users = AppConfiguration.Users(
            providers: trees["auth/providers.json"].map(auth.providers) ?? [],
            customData: trees["auth/custom_user_data.json"].flatMap(auth.customUserData), refreshTokenLifetime: main.refreshTokenLifetime)
        var configuration = AppConfiguration(
            appID: main.id, name: main.name, schema: result.schema, tables: result.tables, users: users, sync: settings.sync,
            environmentTag: main.environment, files: files)
        configuration.partitions = partitions
        configuration.queryableFields = queryable
        configuration.values = values(environment: main.environment)
        if trees["auth/providers.json"] == nil { list.notes.append("auth/providers.json is missing: logins are disabled.") }
        configuration.plugins = trees[PluginListReader.file].map(PluginListReader(list: list).read) ?? []
        configuration.notes = list.notes
        return list.problems.isEmpty ? configuration : nil
    }

    // MARK: Main file

    private struct Main {
        var id: String
        var name: String
        var environment: String
        var refreshTokenLifetime: Int
    }

    private func readMain() -> Main? {
        guard let node = Self.mainFiles.lazy.compactMap({ trees[$0] }).first else {
            // A file that is not JSON already has its problem.
            if !Self.mainFiles.contains(where: paths.contains) {
                list.add(
                    .configMissing, file: "realm_config.json", "The file that names the app is missing.",
                    fix: "Add it with at least {\"app_id\": \"…\"}.")
            }
            return nil
        }
        let members = node.members(allowing: [
            "app_id", "name", "config_version", "location", "provider_region", "deployment_model", "environment", "environments",
            "security",
            "hosting", "custom_user_data_config", "sync", "allowed_request_origins",
        ])
        let id = members.required("app_id", of: node)?.string ?? ""
        let isName = !id.isEmpty && id.utf8.allSatisfy { $0 == 45 || $0 == 95 || (48...57).contains($0) || (97...122).contains($0 | 32) }
        if members["app_id"] != nil, !isName {
            members["app_id"]?.problem("The app id '\(id)' is not a name.", fix: "Use letters, digits, '-' and '_' only.")
        }
        return Main(
            id: id, name: members["name"]?.string ?? id, environment: members["environment"]?.string ?? "",
            refreshTokenLifetime: members["security"].map(refreshTokenLifetime) ?? 60 * 86_400)
    }

    /// Returns the lifetime of refresh tokens in seconds: 30 minutes to 5 years, 60 days by default.
    private func refreshTokenLifetime(_ security: ConfigNode) -> Int {
        let members = security.members(allowing: ["refresh_token_expiration", "allowed_request_origins"])
        guard let node = members["refresh_token_expiration"], let seconds = node.int else { return 60 * 86_400 }
        if !(1_800...157_680_000).contains(seconds) {
            node.problem(
                "\(seconds) seconds is not a valid lifetime of a refresh token.", fix: "Give 1800 (30 minutes) to 157680000 (5 years).")
        }
        return Int(seconds)
    }

    private func missingSync() -> SyncReader.Settings {
        if !paths.contains("sync/config.json") {
            list.add(
                .configMissing, file: "sync/config.json", "The sync configuration is missing.", fix: "Add it, or export the app again.")
        }
        return SyncReader.Settings()
    }

    // MARK: Values

    private func values(environment: String) -> [String: JSON] {
        var values: [String: JSON] = [:]
        for (path, node) in trees.sorted(by: { $0.key < $1.key }) where path.hasPrefix("values/") {
            let members = node.members(allowing: ["name", "value", "private", "from_secret", "id", "last_modified"])
            guard let name = members.required("name", of: node)?.string, let value = members.required("value", of: node) else { continue }
            values[name] = members["from_secret"]?.bool == true ? secret(value) : value.json
        }
        let tag = environment.isEmpty ? "no-environment" : environment
        if let node = trees["environments/\(tag).json"] {
            for (name, value) in node.members(allowing: ["values"])["values"]?.members ?? [] { values[name] = value.json }
        }
        return values
    }

    /// Returns the secret that a value names; nil with a note if there is none.
    private func secret(_ node: ConfigNode) -> JSON? {
        guard let name = node.string else { return nil }
        if let secret = trees["secrets.json"]?.json[name] { return secret }
        list.notes.append("secrets.json has no secret '\(name)': roles that use its value deny.")
        return nil
    }

    // MARK: Places

    /// Reports every file in a place that is not read, as it is probably misspelt.
    private func checkPlaces() {
        let folders = ["auth", "data_sources", "environments", "sync", "values"] + Self.withoutEffect.sorted()
        var unused: Set<String> = []
        for path in paths.sorted() {
            let parts = path.split(separator: "/").map(String.init)
            if parts.count > 1, Self.withoutEffect.contains(parts[0]) {
                unused.insert(parts[0])
            } else if !path.hasSuffix(".json") {
                continue
            } else if Self.filesWithoutEffect.contains(path) {
                list.notes.append("\(path) has no effect here.")
            } else if parts.count == 1 {
                require(path, oneOf: Self.mainFiles + ["secrets.json", PluginListReader.file], given: parts[0])
            } else if !folders.contains(parts[0]) {
                require(path, oneOf: folders, given: parts[0])
            } else {
                checkFile(path, parts)
            }
        }
        for folder in unused.sorted() { list.notes.append("\(folder)/ has no effect here.") }
    }

    private func checkFile(_ path: String, _ parts: [String]) {
        let name = parts[parts.count - 1]
        switch (parts[0], parts.count) {
        case ("auth", 2): require(path, oneOf: ["providers.json", "custom_user_data.json"], given: name)
        case ("sync", 2): require(path, oneOf: ["config.json"], given: name)
        case ("data_sources", 3): require(path, oneOf: ["config.json", "default_rule.json"], given: name)
        case ("data_sources", 5): require(path, oneOf: ["schema.json", "rules.json", "relationships.json", "ingest.json"], given: name)
        case ("values", 2), ("environments", 2): break
        default:
            list.add(.configUnknownKey, file: path, "The gateway does not read this file.", fix: "Move or remove the file.")
        }
    }

    private func require(_ path: String, oneOf known: [String], given: String) {
        guard !known.contains(given) else { return }
        let near = Suggestion.nearest(to: given, in: known)
        list.add(
            .configUnknownKey, file: path, "'\(given)' is not a known key.",
            fix: near.map { "Did you mean '\($0)'?" } ?? "Known are \(known.joined(separator: ", ")).")
    }
}
