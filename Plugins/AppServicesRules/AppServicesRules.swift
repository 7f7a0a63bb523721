import SluicePluginKit

@c func sluice_plugin_type() -> PluginExport { PluginMain.export(AppServicesRules.self) }

/// App Services' roles, from the rule files of an exported app directory.
///
/// `configure` reads and checks the files once. A session then costs the evaluation of the expressions of its classes.
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
    /// The roles by class name. A class without an entry is denied.
    var types: [String: RolesOfType] = [:]
    var values: [String: PluginValue] = [:]
    /// Names of values that the export does not contain.
    var secrets: Set<String> = []
    var environment = Environment()

    func context(of user: PluginUser) -> SessionContext {
        SessionContext(user: user, values: values, secrets: secrets, environment: environment)
    }
}

/// The values of `%%environment`.
struct Environment {
    var tag = ""
    var values: [String: PluginValue] = [:]
}

/// The inputs for the evaluation of expressions in a session.
struct SessionContext {
    var user: PluginUser
    var values: [String: PluginValue]
    var secrets: Set<String>
    var environment: Environment
    /// The write to check. Nil when the session is opened.
    var write: PluginWrite?
    /// The subject of `insert` and `delete`. Nil except while they are checked.
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

/// The roles for one class, in order, prepared for its schema.
struct RolesOfType {
    var roles: [PreparedRole]

    /// Returns the first role with a true `apply_when`, as a session uses one role per class. A role is skipped if its `apply_when` is
    /// unknown because the user lacks a value that it compares with. A role that is incompatible with sync is returned and denies, without
    /// a try of later roles. The same applies to an undecidable `apply_when`, such as one about a document, because a later role might
    /// permit more.
    func role(for session: SessionContext) -> PreparedRole? {
        roles.first { $0.role.applyWhen.truth(in: session) ?? $0.isUndecidable }
    }

    func plan(for session: SessionContext) -> TypeRules {
        role(for: session)?.rules(for: session) ?? .denied(role: "none: no role applies to this user")
    }
}
