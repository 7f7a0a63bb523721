package import SluiceCore
package import SluiceValues

/// The schema of a plugin's configuration, as declared in `config_schema` of sluice_plugin.h.
package struct ConfigSchema: Sendable {
    /// One fault of a configuration.
    package struct Finding: Hashable, Sendable {
        package var code: ErrorCode
        /// The line of the key, from 1; 0 if the tree was not parsed from text.
        package var line: Int
        package var column: Int
        package var message: String
        package var fix: String
    }

    fileprivate enum Kind: String, CaseIterable { case bool, int, number, text, list, map, object, any }

    /// The declaration of one key.
    private struct Key: Sendable {
        var kind: Kind
        var isRequired = false
        var oneOf: [String] = []
        var least: Double?
        var most: Double?
        var element: [Key] = []
        var members: [String: Key] = [:]
    }

    private let keys: [String: Key]

    /// Parses a declaration.
    /// - Throws: `pluginBadAnswer` with the fault of the declaration.
    package init(_ text: String, plugin: String) throws(SluiceError) {
        do {
            keys = try Self.keys(try JSON.parse(Array(text.utf8)), at: "")
        } catch {
            throw SluiceError(.pluginBadAnswer, "\(plugin) declares a configuration that cannot be understood: \(error.message)")
        }
    }

    /// Returns all faults of a configuration, in its order. Null counts as an empty object.
    package func findings(in config: JSON) -> [Finding] {
        var findings: [Finding] = []
        check(config == .null ? .object([]) : config, keys, at: "config", place: (0, 0), &findings)
        return findings
    }

    // MARK: Reading

    private static func keys(_ json: JSON, at place: String) throws(SluiceError) -> [String: Key] {
        guard let members = json.members else { throw SluiceError(.pluginBadAnswer, "\(place.isEmpty ? "it" : place) is not an object") }
        var keys: [String: Key] = [:]
        for member in members { keys[member.key] = try key(member.value, at: place + member.key) }
        return keys
    }

    private static func key(_ json: JSON, at place: String) throws(SluiceError) -> Key {
        let known = ["type", "required", "of", "keys", "one_of", "min", "max", "help"]
        if let odd = json.members?.first(where: { !known.contains($0.key) }) {
            throw SluiceError(.pluginBadAnswer, "\(place) has an unknown member \"\(odd.key)\"")
        }
        guard let word = json["type"]?.string, let kind = Kind(rawValue: word) else {
            throw SluiceError(.pluginBadAnswer, "\(place) has no type out of \(Kind.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        var key = Key(kind: kind, isRequired: json["required"]?.bool ?? false)
        key.oneOf = (json["one_of"]?.array ?? []).compactMap(\.string)
        key.least = json["min"]?.asNumber
        key.most = json["max"]?.asNumber
        if let element = json["of"] { key.element = [try self.key(element, at: "\(place).of")] }
        if kind == .object { key.members = try keys(json["keys"] ?? .object([]), at: "\(place).") }
        return key
    }

    // MARK: Checking

    private func check(
        _ json: JSON, _ keys: [String: Key], at path: String, place: (Int, Int), _ findings: inout [Finding]
    ) {
        guard let members = json.members else {
            return findings.append(wrong("'\(path)' must be an object.", place))
        }
        for member in members {
            let place = (member.line, member.column)
            if let key = keys[member.key] {
                check(member.value, key, at: "\(path).\(member.key)", place: place, &findings)
            } else {
                let near = Suggestion.nearest(to: member.key, in: keys.keys.sorted())
                let known = keys.isEmpty ? "Remove it: the plugin takes none." : "Known are \(keys.keys.sorted().joined(separator: ", "))."
                findings.append(
                    Finding(
                        code: .configUnknownKey, line: member.line, column: member.column,
                        message: "'\(member.key)' is not a known key of '\(path)'.", fix: near.map { "Did you mean '\($0)'?" } ?? known))
            }
        }
        for (name, key) in keys.sorted(by: { $0.key < $1.key }) where key.isRequired && json[name] == nil {
            findings.append(
                Finding(code: .configMissing, line: place.0, column: place.1, message: "'\(path).\(name)' is missing.", fix: "Add it."))
        }
    }

    private func check(_ json: JSON, _ key: Key, at path: String, place: (Int, Int), _ findings: inout [Finding]) {
        switch (key.kind, json) {
        case (.any, _), (.bool, .bool): break
        case (.int, .int(let value)): range(Double(value), key, at: path, place, &findings)
        case (.number, .int), (.number, .double): range(json.asNumber ?? 0, key, at: path, place, &findings)
        case (.text, .string(let text)):
            guard !key.oneOf.isEmpty, !key.oneOf.contains(text) else { break }
            let near = Suggestion.nearest(to: text, in: key.oneOf)
            let fix = near.map { "Did you mean '\($0)'?" } ?? "Known are \(key.oneOf.joined(separator: ", "))."
            findings.append(wrong("'\(path)' cannot be '\(text)'.", place, fix: fix))
        case (.list, .array(let elements)):
            guard let element = key.element.first else { break }
            // An element has no position of its own; the list's is the nearest.
            for (index, value) in elements.enumerated() { check(value, element, at: "\(path)[\(index)]", place: place, &findings) }
        case (.map, .object(let members)):
            guard let element = key.element.first else { break }
            for member in members {
                check(member.value, element, at: "\(path).\(member.key)", place: (member.line, member.column), &findings)
            }
        case (.object, .object): check(json, key.members, at: path, place: place, &findings)
        default: findings.append(wrong("'\(path)' must be \(key.kind.name).", place))
        }
    }

    private func range(_ value: Double, _ key: Key, at path: String, _ place: (Int, Int), _ findings: inout [Finding]) {
        if let least = key.least, value < least { findings.append(wrong("'\(path)' must be at least \(Self.short(least)).", place)) }
        if let most = key.most, value > most { findings.append(wrong("'\(path)' must be at most \(Self.short(most)).", place)) }
    }

    private func wrong(_ message: String, _ place: (Int, Int), fix: String? = nil) -> Finding {
        Finding(code: .configInvalid, line: place.0, column: place.1, message: message, fix: fix ?? ErrorCode.configInvalid.fix)
    }

    private static func short(_ number: Double) -> String { Int64(exactly: number).map { "\($0)" } ?? "\(number)" }
}

extension ConfigSchema.Kind {
    fileprivate var name: String {
        switch self {
        case .bool: "true or false"
        case .int: "a whole number"
        case .number: "a number"
        case .text: "a text"
        case .list: "a list"
        case .map, .object: "an object"
        case .any: "anything"
        }
    }
}

extension JSON {
    fileprivate var asNumber: Double? {
        switch self {
        case .int(let value): Double(value)
        case .double(let value): value
        default: nil
        }
    }
}

extension PluginSpec {
    /// Checks the configuration against the plugin's declaration.
    /// - Throws: the first fault with file and line, and the number of further ones.
    func checkConfig(_ info: PluginInfo) throws(SluiceError) {
        guard let declared = info.configSchema else { return }
        let findings = try ConfigSchema(declared, plugin: info.name).findings(in: config)
        guard let first = findings.first else { return }
        let place = first.line == 0 ? configFile : "\(configFile):\(first.line):\(first.column)"
        let more = findings.count > 1 ? " (and \(findings.count - 1) more)" : ""
        throw SluiceError(first.code, "\(place): \(info.name): \(first.message)\(more)", fix: first.fix)
    }
}
