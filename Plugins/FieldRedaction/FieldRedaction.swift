import SluicePluginKit

@c func sluice_plugin_type() -> PluginExport { PluginMain.export(FieldRedaction.self) }

/// Hides fields from users.
///
/// A hidden field never leaves the gateway, and cannot be written.
final class FieldRedaction: SessionRules {
    static let name = "FieldRedaction"
    static let version = "1.0"
    static let configKeys: [String: ConfigKey]? = [
        "hide": ConfigKey(.map(of: .list(of: .text)), required: true, help: "Fields by type."),
        "except": ConfigKey(.text, help: "A member of custom data that shows a user all fields if it is true."),
    ]

    private var except: String?
    /// The remaining fields, by class.
    private var visible: [String: Set<String>] = [:]

    init(log: PluginLog) {}

    func configure(_ app: AppConfiguration) throws -> [String] {
        var (visible, warnings, mistakes) = ([String: Set<String>](), [String](), [String]())
        for entry in app.config["hide"]?.members ?? [] {
            guard let type = app.schema[entry.key] else {
                warnings.append("hide.\(entry.key): the app has no such type")
                continue
            }
            let hidden = Set((entry.value.array ?? []).compactMap(\.string))
            // A misspelt name would reveal a field that should be hidden.
            for field in hidden.sorted() where type.properties[field] == nil {
                mistakes.append("hide.\(entry.key): there is no field \"\(field)\"")
            }
            if let key = type.primaryKey, hidden.contains(key) { mistakes.append("hide.\(entry.key): the primary key cannot be hidden") }
            visible[entry.key] = Set(type.properties.keys).subtracting(hidden)
        }
        guard mistakes.isEmpty else { throw PluginDenial(mistakes.joined(separator: "; ")) }
        self.visible = visible
        except = app.config["except"]?.string
        return warnings
    }

    func openSession(user: PluginUser, types: [String]) throws -> [String: TypeRules] {
        let seesAll = except.map { user.customData[$0]?.bool == true } ?? false
        var plan: [String: TypeRules] = [:]
        for type in types {
            let fields = seesAll ? nil : visible[type]
            plan[type] = TypeRules(
                read: "TRUEPREDICATE", write: "TRUEPREDICATE", insert: true, delete: true, readableFields: fields, writableFields: fields,
                role: fields == nil ? "all fields" : "redacted", grants: false)
        }
        return plan
    }
}
