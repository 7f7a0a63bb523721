import SluicePluginKit

@c func sluice_plugin_type() -> PluginExport { PluginMain.export(AppServicesRules.self) }

/// Roles as App Services had them, from the rule files of an exported app directory.
///
/// Files are read and checked once, at configure; a session then costs the evaluation of the expressions of its types.
final class AppServicesRules: SessionRules, WriteRules {
    static let name = "AppServicesRules"
    static let version = "1.0"
    static let configKeys: [String: ConfigKey]? = [:]

    private let log: PluginLog
    private var rules = RuleBook()

    init(log: PluginLog) { self.log = log }

    func configure(_ app: AppConfiguration) throws -> [String] {
        var reader = RuleBookReader(app: app)
        let read = reader.read()
        guard reader.problems.isEmpty else { throw PluginDenial(reader.problems.joined(separator: "\n")) }
        rules = read
        log.info("\(read.types.count) types have rules")
        return reader.warnings
    }

    func openSession(user: PluginUser, types: [String]) throws -> [String: TypeRules] {
        let session = rules.context(of: user)
        var plan: [String: TypeRules] = [:]
        for type in types { plan[type] = rules.types[type]?.plan(for: session) }
        return plan
    }

    func checkWrites(user: PluginUser, writes: [PluginWrite]) throws -> [WriteVerdict] {
        var session = rules.context(of: user)
        var taken: [String: PreparedRole] = [:]
        return writes.map { write in
            session.write = write
            let role = taken[write.type] ?? rules.types[write.type]?.role(for: session)
            taken[write.type] = role
            return role?.verdict(in: session) ?? .deny(reason: "No role applies to this user; the write was undone.", rule: "no role")
        }
    }
}

/// The checked rules of an app.
struct RuleBook {
    /// By type name. A type without an entry is denied.
    var types: [String: RolesOfType] = [:]
    var values: [String: PluginValue] = [:]
    /// Values that an export does not hold.
    var secrets: Set<String> = []
    var environment = Environment()

    func context(of user: PluginUser) -> SessionContext {
        SessionContext(user: user, values: values, secrets: secrets, environment: environment)
    }
}

/// `%%environment`.
struct Environment {
    var tag = ""
    var values: [String: PluginValue] = [:]
}

/// What the expressions of a session are evaluated with.
struct SessionContext {
    var user: PluginUser
    var values: [String: PluginValue]
    var secrets: Set<String>
    var environment: Environment
    /// What is checked; nil when the session is opened.
    var write: PluginWrite?
    /// What `insert` and `delete` are about; nil save while they are checked.
    var document: RuleDocument?
}

extension PluginWrite {
    subscript(image: Expansion.Image) -> PluginRow? {
        switch image {
        case .before: before
        case .after: after
        }
    }
}

/// The roles that apply to one type, in order, prepared for its schema.
struct RolesOfType {
    var roles: [PreparedRole]

    /// The first role whose `apply_when` is true is taken (RULE-7), once per session (RULE-8); one that is not known to be, since the
    /// user lacks what it compares with, is passed over. A role that is not sync compatible denies: no later role is tried (RULE-9).
    /// So does one whose `apply_when` nothing here can decide, such as one about a document: a later role might give more.
    func role(for session: SessionContext) -> PreparedRole? {
        roles.first { $0.role.applyWhen.truth(in: session) ?? $0.isUndecidable }
    }

    func plan(for session: SessionContext) -> TypeRules {
        role(for: session)?.rules(for: session) ?? .denied(role: "none: no role applies to this user")
    }
}
