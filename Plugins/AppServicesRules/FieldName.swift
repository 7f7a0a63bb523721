import SluicePluginKit

/// A field that a rule file names, with its place.
struct FieldName {
    /// The document that has the field.
    enum Owner {
        /// An object of the class, also as `%%root` and `%%prevRoot`.
        case object
        /// `%%user.custom_data`.
        case customData
    }

    var owner = Owner.object
    /// The field, and those inside embedded objects.
    var path: [String]
    /// The key of the role that holds it, such as `document_filters.read`.
    var place: String
    /// From 1; 0 if it is not known.
    var line: Int

    /// Returns every field that an expression names. The expression has been parsed, so its keys mean something.
    static func all(in value: PluginValue, place: String, line: Int) -> [FieldName] {
        switch value {
        case .object(let members):
            // A literal such as {"$binary": {"base64": …}} has keys that are no fields.
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

    /// Returns why the class has no such field, with a suggestion; nil if it has, or if the field is inside a value of any form, such as a
    /// dictionary, a mixed value or a linked object.
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
                // A place in a list of embedded objects.
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

/// Holds the fields that roles name against the classes that the roles are for.
///
/// A misspelt field is a mistake like any other: the role would deny, or show what it was to hide. While an app is developed a field may come
/// with the next client, so it is a warning there. A default role is for many classes: a field that one of them has is no mistake, and the
/// role denies for the others, with a warning.
struct FieldNameCheck {
    let app: AppConfiguration
    private(set) var problems: [String] = []
    private(set) var warnings: [String] = []

    init(app: AppConfiguration) { self.app = app }

    /// - Parameter types: the classes that the roles are for.
    mutating func check(_ roles: [Role], of types: [String]) {
        let types = types.filter { app.schema[$0] != nil }.sorted()
        for role in roles {
            for name in role.names {
                let mistakes = types.compactMap { name.mistake(for: $0, app) }
                guard let first = mistakes.first else { continue }
                let place = "\(role.file)\(name.line > 0 ? " line \(name.line)" : "")"
                let texts = types.count == mistakes.count ? [first] : mistakes
                let found = texts.map { "\(place): \($0) (in \(name.place) of role \"\(role.name)\")" }
                // Custom data of server keys are no rows of the table, so a role may be for those.
                if name.owner == .object, types.count == mistakes.count, !app.isDevelopment {
                    problems += found.filter { !problems.contains($0) }
                } else {
                    warnings += found.filter { !warnings.contains($0) }
                }
            }
        }
    }
}
