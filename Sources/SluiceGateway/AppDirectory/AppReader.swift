import SluiceCore
import SluiceValues

/// Builds the configuration from the parsed files of a directory. Problems and notes are added to the list.
struct AppReader {
    private let trees: [String: ConfigNode]
    private let files: [String: String]
    private let layout: LegacyLayout
    private let list: ProblemList
    private let appID: String?

    init(trees: [String: ConfigNode], files: [String: String], list: ProblemList, appID: String?) {
        layout = LegacyLayout(trees: trees, files: files)
        self.trees = layout.trees
        self.files = files
        self.list = list
        self.appID = appID
    }

    /// Returns the app, also if other parts have problems; nil without settings of sync or with a partly read schema.
    func read() -> AppConfiguration? {
        let main = MainReader(trees: trees, paths: Set(files.keys), list: list, appID: appID).read()
        let source = DataSourceReader(trees: trees, list: list)
        source.checkRules()
        let sync = SyncReader(list: list)
        let settings = sync.read(trees["sync/config.json"] ?? layout.sync?.node, isPresent: files["sync/config.json"] != nil)
        let sourceName = source.choose(settings.serviceName ?? layout.sync?.source, named: settings.serviceNameNode)
        let collections = source.collections(of: sourceName)
        let result = SchemaReader(list: list).read(collections, asymmetric: settings.asymmetric, database: settings.database)
        let partitions = IngestReader().partitions(of: collections, in: result)
        // The fields of a partly read schema cannot be checked: the errors would be misleading.
        let isSchemaWhole = !list.problems.contains { $0.file.hasSuffix("/schema.json") }
        let queryable = isSchemaWhole ? sync.queryable(settings, in: result) : QueryableFields()
        noteUnserved()
        noteClasses(result, settings)
        let operatorFile = OperatorFile(trees[OperatorFile.name])
        let secrets = SecretReader(list: list).read(operatorFile[.secrets], texts: trees[AppSecrets.file]?.json)
        let functions = FunctionReader(trees: trees, list: list).read(operatorFile[.functions], secrets)
        let users = users(main, operatorFile, AuthReader(list: list, secrets: secrets, functions: functions))
        let values = values(environment: main.environment)
        let plugins = trees[PluginListReader.file].map(PluginListReader(list: list).read) ?? []
        let mail = MailReader(list: list).read(operatorFile[.mail], MailTemplateReader(files: files, list: list), secrets)
        let events = EventReader().read(operatorFile[.events])
        let texts = pluginFiles(settings, sourceName, collections, result)
        noteRoles(texts, plugins, settings)
        guard settings.isFlexible, isSchemaWhole else { return nil }
        var configuration = AppConfiguration(
            appID: main.id, name: main.name, schema: result.schema, tables: result.tables, users: users, sync: settings.sync,
            environmentTag: main.environment, files: texts)
        configuration.partitions = partitions
        configuration.queryableFields = queryable
        configuration.values = values
        configuration.plugins = plugins
        configuration.secrets = secrets
        configuration.functions = functions
        configuration.functionPlugins = FunctionPlugin.read(
            functions, operatorFile[.functions], logins: Set(users.providers.compactMap(\.function)))
        configuration.ruleCalls = RuleCallReader(files: texts, functions: functions, list: list).read()
        configuration.triggers = TriggerReader(trees: trees).read(functions)
        configuration.databaseTriggers = DatabaseTriggerReader(trees: trees, schema: result.schema, tables: result.tables).read(functions)
        configuration.mail = mail
        configuration.eventContent = events
        configuration.notes = list.notes.sorted { ($0.file, $0.line, $0.column) < ($1.file, $1.line, $1.column) }
        return configuration
    }

    private func users(_ main: MainReader.Main, _ operatorFile: OperatorFile, _ auth: AuthReader) -> AppConfiguration.Users {
        if trees["auth/providers.json"] == nil {
            list.note(.missing, file: "auth/providers.json", "auth/providers.json is missing: logins are disabled.")
        }
        return AppConfiguration.Users(
            providers: trees["auth/providers.json"].map { auth.providers($0, additions: operatorFile[.providers]) } ?? [],
            customData: trees["auth/custom_user_data.json"].flatMap(auth.customUserData),
            refreshTokenLifetime: main.refreshTokenLifetime,
            creationFunction: trees["auth/custom_user_data.json"].flatMap(auth.creationFunction),
            passwordLogin: PasswordLoginReader(list: list).read(
                trees["auth/providers.json"], operatorFile[.providers], hasMail: operatorFile[.mail] != nil))
    }

    // MARK: Values

    private func values(environment: String) -> [String: JSON] {
        var values: [String: JSON] = [:]
        for (path, node) in trees.sorted(by: { $0.key < $1.key }) where path.hasPrefix("values/") {
            let members = node.members(allowing: ["name", "value", "private", "from_secret", "id", "_id", "last_modified"])
            guard let name = members.required("name", of: node)?.string, let value = members.required("value", of: node) else { continue }
            values[name] = members["from_secret"]?.bool == true ? secret(value, of: name) : value.json
        }
        let tag = environment.isEmpty ? "no-environment" : environment
        if let node = trees["environments/\(tag).json"] {
            for (name, value) in node.members(allowing: ["values"])["values"]?.members ?? [] { values[name] = value.json }
        }
        return values
    }

    /// Returns the secret that a value names; nil with a note if there is none.
    private func secret(_ node: ConfigNode, of value: String) -> JSON? {
        guard let name = node.string else { return nil }
        if let secret = trees[AppSecrets.file]?.json[name] { return secret }
        let isUsed = files.values.contains { $0.contains("%%values.\(value)") }
        node.note(
            isUsed ? .missing : .unused, "secrets.json has no secret '\(name)': roles that use its value deny.",
            fix: isUsed ? "Write {\"\(name)\": \"…\"} into secrets.json." : "No role uses it.")
        return nil
    }

    // MARK: Notes

    private func noteUnserved() {
        let folders = Set(files.keys.compactMap { AppFiles.place(of: $0) == .unserved ? $0.split(separator: "/").first : nil })
        for folder in folders.sorted() { list.note(.unused, file: "\(folder)/", "\(folder)/ has no effect here.") }
        let services = Set(files.keys.filter { $0.hasPrefix("services/") }.compactMap { $0.split(separator: "/").dropFirst().first })
        for service in services.sorted() where trees["data_sources/\(service)/config.json"] == nil {
            list.note(.unused, file: "services/\(service)/", "services/\(service)/ has no effect here.")
        }
    }

    private func noteClasses(_ result: SchemaReader.Result, _ settings: SyncReader.Settings) {
        guard settings.isFlexible, !result.schema.types.contains(where: { $0.kind != .embedded }) else { return }
        let reason =
            settings.sync.isDevelopmentMode ? "the app was in development mode" : "no collection has a schema that can be synchronised"
        list.note(.missing, file: "data_sources/", "The export has no class: \(reason).", fix: Self.classes)
    }

    /// Notes an app without a role, which denies everything without a word.
    private func noteRoles(_ texts: [String: String], _ plugins: [AppConfiguration.ListedPlugin], _ settings: SyncReader.Settings) {
        let hasRole = texts.contains { path, text in
            (path.hasSuffix("/rules.json") || path.hasSuffix("/default_rule.json"))
                && (try? JSON.located(Array(text.utf8)))?["roles"]?.array?.isEmpty == false
        }
        guard settings.isFlexible, plugins.isEmpty, !hasRole else { return }
        list.note(
            .missing, file: "data_sources/", "The app has no role and no plugin: every user is denied.",
            fix: #"To permit all, write data_sources/SERVICE/default_rule.json: {"roles": [{"name": "all", "apply_when": {}, "#
                + #""document_filters": {"read": true, "write": true}, "read": true, "write": true, "insert": true, "delete": true}]}."#)
    }

    static let classes =
        "Add data_sources/SERVICE/DATABASE/COLLECTION/schema.json for each class, "
        + #"such as {"title": "Item", "bsonType": "object", "properties": {"_id": {"bsonType": "objectId"}}}. "#
        + "`sluice dev --app DIR --learn DIR` writes them once the app connects."

    // MARK: Files of plugins

    /// Returns the files as plugins receive them: older forms of rules, and classes that the schema files do not name, in today's form.
    private func pluginFiles(
        _ settings: SyncReader.Settings, _ source: String?, _ collections: [DataSourceReader.Collection], _ result: SchemaReader.Result
    ) -> [String: String] {
        var texts = layout.files.filter { !$0.key.hasPrefix("services/") && $0.key != AppFiles.meta }
        for collection in collections {
            let name = result.tables.first { $0.value.isPlace(of: collection.table) }?.key
            guard name != collection.schema.json["title"]?.string else { continue }
            texts["\(collection.folder)/schema.json"] = name.map { JSON.object([JSON.Member("title", .string($0))]).text } ?? "{}"
        }
        guard let source, let node = settings.permissions, !LegacyPermissions.isReplaced(by: trees),
            let rules = LegacyPermissions(permissions: node).ruleFiles(source: source, result.tables)
        else { return texts }
        // Rules without document filters were for other accesses than sync.
        for path in texts.keys where path.hasPrefix("data_sources/") && path.hasSuffix("/rules.json") { texts[path] = nil }
        node.note(
            .adapted,
            "The roles of 'permissions' apply, as roles of data_sources/\(source)/. Messages about them name that place, and lines of this file."
        )
        return texts.merging(rules) { $1 }
    }
}
