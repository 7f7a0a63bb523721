import SluicePluginKit

/// A field name in a rule file, with its place.
struct FieldName {
    /// The document that has the field.
    enum Owner {
        /// An object of the class, also as `%%root` and `%%prevRoot`.
        case object
        /// The document `%%user.custom_data`.
        case customData
    }

    var owner = Owner.object
    /// The field, and those inside embedded objects.
    var path: [String]
    /// The key of the role that contains the name, such as `document_filters.read`.
    var place: String
    /// The line from 1, or 0 if unknown.
    var line: Int

    /// Returns every field that an expression uses. The expression has been parsed, so its keys are valid.
    static func all(in value: PluginValue, place: String, line: Int) -> [FieldName] {
        switch value {
        case .object(let members):
            // A literal such as {"$binary": {"base64": …}} has keys that are not fields.
            if RuleValue(extended: value) != nil { return [] }
            return members.flatMap { member -> [FieldName] in
                let line = member.line > 0 ? member.line : line
                if member.key == "%function" { return [] }
                return named(member.key, isKey: true, place: place, line: line) + all(in: member.value, place: place, line: line)
            }
        case .array(let elements): return elements.flatMap { all(in: $0, place: place, line: line) }
        case .string(let text): return named(text, isKey: false, place: place, line: line)
        default: return []
        }
    }

    private static func named(_ text: String, isKey: Bool, place: String, line: Int) -> [FieldName] {
        if text.hasPrefix("%%") {
            switch try? Expansion(text) {
            case .document(_, let path) where !path.isEmpty: return [FieldName(path: path, place: place, line: line)]
            case .user("custom_data", let path) where !path.isEmpty:
                return [FieldName(owner: .customData, path: path, place: place, line: line)]
            default: return []
            }
        }
        guard isKey, !text.hasPrefix("$"), !text.hasPrefix("%") else { return [] }
        let path = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        return [FieldName(path: path, place: place, line: line)]
    }

    /// Returns the error for a field that the class does not have, with a suggestion. Returns nil for an existing field, and for one inside
    /// a value of any form, such as a dictionary, a mixed value or a linked object.
    func mistake(for typeName: String, _ app: AppConfiguration) -> String? {
        let text = path.joined(separator: ".")
        switch owner {
        case .customData:
            guard let fields = app.customDataFields, !fields.contains(path[0]) else { return nil }
            return RuleMistake(
                "the table of custom user data has no column \(path[0])", meant: path[0], among: Array(fields),
                prefix: "%%user.custom_data."
            ).message
        case .object:
            guard var type = app.schema[typeName], type.property(named: text) == nil else { return nil }
            for (place, step) in path.enumerated() {
                // An index into a list of embedded objects.
                if place > 0, Int(step) != nil { continue }
                guard let property = type.property(named: step) else {
                    let before = path[..<place].map { "\($0)." }.joined()
                    return RuleMistake(
                        "\(typeName) has no field \(text)", meant: step, among: Array(type.properties.keys), prefix: before
                    ).message
                }
                guard property.type.hasPrefix("embedded:"), property.collection != "dictionary",
                    let inner = app.schema[String(property.type.dropFirst("embedded:".count))]
                else { return nil }
                type = inner
            }
            return nil
        }
    }
}

/// Checks the fields of roles against the classes of the roles.
///
/// A misspelt field is an error: the role would deny, or reveal data that it should hide. In development mode it is a warning, because the
/// next client may add the field. A default role applies to many classes, so a field that one of them has is valid. For the other classes
/// the role denies, with a warning.
struct FieldNameCheck {
    let app: AppConfiguration
    private(set) var problems: [String] = []
    private(set) var warnings: [String] = []

    init(app: AppConfiguration) { self.app = app }

    /// - Parameter types: The classes of the roles.
    mutating func check(_ roles: [Role], of types: [String]) {
        let types = types.filter { app.schema[$0] != nil }.sorted()
        for role in roles {
            for name in role.names {
                let mistakes = types.compactMap { name.mistake(for: $0, app) }
                guard let first = mistakes.first else { continue }
                let place = "\(role.file)\(name.line > 0 ? " line \(name.line)" : "")"
                let texts = types.count == mistakes.count ? [first] : mistakes
                let found = texts.map { "\(place): \($0) (in \(name.place) of role \"\(role.name)\")" }
                // The custom data of server keys are not rows of the table, and the role may be for those.
                if name.owner == .object, types.count == mistakes.count, !app.isDevelopment {
                    problems += found.filter { !problems.contains($0) }
                } else {
                    warnings += found.filter { !warnings.contains($0) }
                }
            }
        }
    }
}
