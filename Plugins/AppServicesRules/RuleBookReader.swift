import SluicePluginKit

/// Reads the rules of an exported app directory.
/// - `data_sources/<service>/default_rule.json`
/// - `data_sources/<service>/<database>/<collection>/{rules,schema}.json`
/// - `values/*.json` and `environments/*.json`
struct RuleBookReader {
    private let app: AppConfiguration
    private(set) var problems: [String] = []
    private(set) var warnings: [String] = []
    private var secrets: Set<String> = []

    init(app: AppConfiguration) { self.app = app }

    /// Returns the rules, which are only valid without `problems`.
    mutating func read() -> RuleBook {
        var book = RuleBook()
        book.values = readValues()
        book.secrets = secrets
        book.environment = readEnvironment()
        let defaults = readDefaults(book.values)
        var names = FieldNameCheck(app: app)
        /// The classes without roles of their own, by service.
        var without: [String: [String]] = [:]
        for folder in collectionFolders() {
            guard let type = typeName(of: folder) else { continue }
            if book.types[type] != nil {
                problems.append("\(folder)/schema.json: another collection has the title \"\(type)\" as well")
            }
            let path = "\(folder)/rules.json"
            let own = app.directory[path].map { self.roles(path, $0, book.values) } ?? []
            // A collection with a role of its own uses none of the defaults.
            let service = String(folder.split(separator: "/")[1])
            let roles = own.isEmpty ? defaults[service] ?? [] : own
            if own.isEmpty { without[service, default: []].append(type) } else { names.check(own, of: [type]) }
            book.types[type] = RolesOfType(roles: roles.map { PreparedRole($0, typeName: type, app: app, secrets: secrets) })
        }
        for (service, roles) in defaults.sorted(by: { $0.key < $1.key }) { names.check(roles, of: without[service] ?? []) }
        problems += names.problems
        warnings += names.warnings
        for (type, roles) in book.types.sorted(by: { $0.key < $1.key }) { warn(about: roles.roles, of: type) }
        for (type, description) in app.schema.sorted(by: { $0.key < $1.key }) where description.kind != "embedded" {
            if book.types[type] == nil { warnings.append("\(type) has no schema.json under data_sources: access is denied") }
        }
        return book
    }

    private mutating func warn(about roles: [PreparedRole], of type: String) {
        if roles.isEmpty { warnings.append("\(type) has no role: access is denied") }
        for role in roles {
            if !role.incompatibilities.isEmpty {
                let reasons = role.incompatibilities.joined(separator: "; ")
                warnings.append("\(type): role \"\(role.role.name)\" is not sync compatible and denies: \(reasons)")
            }
            if role.incompatibilities.isEmpty, !role.unknown.isEmpty {
                warnings.append(
                    "\(type): role \"\(role.role.name)\" denies the users that it may apply to: \(role.unknown.joined(separator: "; "))")
            }
            for note in role.masks.notes { warnings.append("\(type): role \"\(role.role.name)\": \(note)") }
        }
    }

    // MARK: Roles

    private mutating func roles(_ path: String, _ text: String, _ values: [String: PluginValue]) -> [Role] {
        let secrets = secrets
        var reader = RoleReader(file: path) { name throws(RuleMistake) in
            if values[name] == nil, !secrets.contains(name) {
                throw RuleMistake("there is no value \"\(name)\" in values/", meant: name, among: Array(values.keys), prefix: "%%values.")
            }
        }
        let roles = reader.roles(of: text)
        problems += reader.problems
        return roles
    }

    /// Returns the default roles by service.
    private mutating func readDefaults(_ values: [String: PluginValue]) -> [String: [Role]] {
        var defaults: [String: [Role]] = [:]
        for (path, text) in files(under: "data_sources", depth: 3, named: "default_rule.json") {
            defaults[String(path.split(separator: "/")[1])] = roles(path, text, values)
        }
        return defaults
    }

    private func collectionFolders() -> [String] {
        let paths =
            files(under: "data_sources", depth: 5, named: "rules.json") + files(under: "data_sources", depth: 5, named: "schema.json")
        return Set(paths.map { $0.0.split(separator: "/").dropLast().joined(separator: "/") }).sorted()
    }

    /// Returns the class that a collection's schema names, or nil with a warning.
    private mutating func typeName(of folder: String) -> String? {
        guard let text = app.directory["\(folder)/schema.json"] else {
            warnings.append("\(folder)/rules.json is not used: there is no schema.json beside it")
            return nil
        }
        do {
            let schema = try PluginValue(parsing: text)
            // An empty schema marks a collection that is not synced.
            guard let title = schema["title"]?.string else { return nil }
            if app.schema[title] == nil { warnings.append("\(folder)/schema.json: type \"\(title)\" is not in the app's schema") }
            return title
        } catch {
            problems.append("\(folder)/schema.json \(error)")
            return nil
        }
    }

    // MARK: Values

    private mutating func readValues() -> [String: PluginValue] {
        var values: [String: PluginValue] = [:]
        let known = app.directory["secrets.json"].flatMap { try? PluginValue(parsing: $0) }
        for (path, text) in files(under: "values", depth: 2, named: nil) {
            do {
                let file = try PluginValue(parsing: text)
                let name = file["name"]?.string ?? String(path.split(separator: "/")[1].dropLast(".json".count))
                if file["from_secret"]?.bool != true {
                    values[name] = file["value"] ?? .null
                } else if let secret = file["value"]?.string.flatMap({ known?[$0] }) {
                    values[name] = secret
                } else {
                    secrets.insert(name)
                }
            } catch { problems.append("\(path) \(error)") }
        }
        return values
    }

    /// Reads the environment that the app's configuration names, with the values in the file of that name.
    private mutating func readEnvironment() -> Environment {
        var environment = Environment()
        for path in ["realm_config.json", "root_config.json", "stitch.json"] {
            guard let text = app.directory[path], let config = try? PluginValue(parsing: text) else { continue }
            environment.tag = config["environment"]?.string ?? ""
        }
        let path = "environments/\(environment.tag.isEmpty ? "no-environment" : environment.tag).json"
        guard let text = app.directory[path] else { return environment }
        do {
            let file = try PluginValue(parsing: text)
            for member in file["values"]?.members ?? [] { environment.values[member.key] = member.value }
        } catch { problems.append("\(path) \(error)") }
        return environment
    }

    private func files(under folder: String, depth: Int, named name: String?) -> [(String, String)] {
        app.directory.filter { path, _ in
            let parts = path.split(separator: "/")
            return parts.count == depth && parts[0] == folder && (name.map { parts[depth - 1] == $0 } ?? path.hasSuffix(".json"))
        }.sorted { $0.key < $1.key }
    }
}
