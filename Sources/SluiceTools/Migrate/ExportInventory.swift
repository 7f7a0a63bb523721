package import SluiceGateway
import SluiceValues

/// A part of an export that the gateway does not run.
package struct ExportFeature: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case functions, databaseTriggers, authenticationTriggers, scheduledTriggers, endpoints, graphql, dataAPI, validation, push,
            services,
            hosting, logForwarders

        /// The name, for one and for several.
        package var name: (one: String, many: String) {
            switch self {
            case .functions: ("function", "functions")
            case .databaseTriggers: ("database trigger", "database triggers")
            case .authenticationTriggers: ("authentication trigger", "authentication triggers")
            case .scheduledTriggers: ("scheduled trigger", "scheduled triggers")
            case .endpoints: ("HTTPS endpoint", "HTTPS endpoints")
            case .graphql: ("GraphQL resolver", "GraphQL resolvers")
            case .dataAPI: ("Data API", "Data APIs")
            case .validation: ("schema validation", "schema validations")
            case .push: ("push service", "push services")
            case .services: ("third-party service", "third-party services")
            case .hosting: ("hosted site", "hosted sites")
            case .logForwarders: ("log forwarder", "log forwarders")
            }
        }

        /// The replacement.
        package var replacement: String {
            switch self {
            case .functions: "a service of your own behind each, or a rule plugin for decisions about writes"
            case .databaseTriggers: "a service of your own behind its function, or an SQL trigger on the table"
            case .authenticationTriggers: "a service of your own behind its function"
            case .scheduledTriggers: "cron or pg_cron"
            case .endpoints: "an HTTP service of your own on PostgreSQL"
            case .graphql: "a GraphQL server on PostgreSQL"
            case .dataAPI: "SQL, or an HTTP server on PostgreSQL"
            case .validation: "a CHECK constraint; the gateway undoes writes that violate it"
            case .push, .services: "a service of your own"
            case .hosting: "any web server"
            case .logForwarders: "the gateway's log and its metrics"
            }
        }
    }

    package var kind: Kind
    /// The name of each one, in the order of the files; empty for an unnamed one.
    package var names: [String]
    /// The places, one for each name: the file, and the line or 0.
    package var places: [Place]

    package struct Place: Hashable, Sendable {
        package var file: String
        package var line: Int
        package var text: String { line == 0 ? file : "\(file):\(line)" }
    }
}

/// Lists the parts of an export that the gateway does not run, from the files of `AppDirectory.unservedFiles`.
package struct ExportInventory {
    private var found: [ExportFeature.Kind: ExportFeature] = [:]

    /// - Parameters:
    ///   - files: The texts by path.
    ///   - notes: The notes of the directory, which have the validations.
    package static func features(in files: [String: String], notes: [ConfigNote]) -> [ExportFeature] {
        var inventory = ExportInventory()
        // The list of functions has lines, their sources have none.
        let isList = { (path: String) in path.hasSuffix(".json") }
        for (path, text) in files.sorted(by: { (isList($0.key) ? 0 : 1, $0.key) < (isList($1.key) ? 0 : 1, $1.key) }) {
            inventory.read(path, text)
        }
        for note in notes where note.message.hasSuffix("is not checked for synchronised writes.") {
            inventory.add(.validation, "", note.file, note.line)
        }
        return ExportFeature.Kind.allCases.compactMap { inventory.found[$0] }
    }

    private mutating func add(_ kind: ExportFeature.Kind, _ name: String, _ file: String, _ line: Int = 0) {
        var feature = found[kind] ?? ExportFeature(kind: kind, names: [], places: [])
        // A function may stand in the list and in a file of its own.
        if !name.isEmpty, feature.names.contains(name) { return }
        feature.names.append(name)
        feature.places.append(.init(file: file, line: line))
        found[kind] = feature
    }

    private mutating func read(_ path: String, _ text: String) {
        let parts = path.split(separator: "/").map(String.init)
        let file = parts[parts.count - 1]
        let json = try? JSON.located(Array(text.utf8))
        switch parts[0] {
        case "functions": readFunction(path, parts, json)
        case "triggers": if let json { readTrigger(path, json) }
        case "http_endpoints", "https_endpoints":
            if file == "data_api_config.json" {
                if json?["disabled"]?.bool == false { add(.dataAPI, "", path, Self.line(of: "disabled", in: json)) }
            } else {
                for endpoint in json?.array ?? [] { add(.endpoints, Self.title(of: endpoint), path, endpoint.members?.first?.line ?? 0) }
            }
        case "graphql": if parts.count > 2 { add(.graphql, json?["field_name"]?.string ?? String(file.dropLast(5)), path) }
        case "hosting":
            if file == "config.json", parts.count == 2, json?["enabled"]?.bool == true {
                add(.hosting, "", path, Self.line(of: "enabled", in: json))
            }
        case "log_forwarders": add(.logForwarders, json?["name"]?.string ?? file, path)
        case "services":
            guard file == "config.json", let type = json?["type"]?.string, !type.hasPrefix("mongodb") else { return }
            add(type == "gcm" || type == "fcm" ? .push : .services, json?["name"]?.string ?? type, path, Self.line(of: "type", in: json))
        default: break
        }
    }

    private mutating func readFunction(_ path: String, _ parts: [String], _ json: JSON?) {
        guard path.hasSuffix(".json") else {
            // In the older layout each function has a folder with source.js.
            let name = path.dropFirst("functions/".count).dropLast(".js".count)
            return add(.functions, name.hasSuffix("/source") ? String(name.dropLast("/source".count)) : String(name), path)
        }
        guard parts[parts.count - 1] == "config.json" else { return }
        for function in json?.array ?? [json].compactMap({ $0 }) {
            guard let name = function["name"]?.string else { continue }
            add(.functions, name, path, Self.line(of: "name", in: function))
        }
    }

    private mutating func readTrigger(_ path: String, _ json: JSON) {
        let kinds: [String: ExportFeature.Kind] = [
            "DATABASE": .databaseTriggers, "AUTHENTICATION": .authenticationTriggers, "SCHEDULED": .scheduledTriggers,
        ]
        guard let kind = json["type"]?.string.flatMap({ kinds[$0.uppercased()] }) else { return }
        add(kind, json["name"]?.string ?? "", path, Self.line(of: "type", in: json))
    }

    private static func title(of endpoint: JSON) -> String {
        [endpoint["http_method"]?.string, endpoint["route"]?.string].compactMap { $0 }.joined(separator: " ")
    }

    private static func line(of key: String, in json: JSON?) -> Int { json?.members?.last { $0.key == key }?.line ?? 0 }
}
