import SluicePluginKit

/// A role for one class, checked for sync, with its field masks.
struct PreparedRole {
    let role: Role
    /// The reasons that make the role unusable in sync. If there are any, the role denies.
    let incompatibilities: [String]
    /// The parts of `apply_when` that the plugin cannot evaluate by itself. If the result depends on one without a value, the role denies.
    let undecided: [String]
    /// Those that have no value in any session.
    let unknown: [String]
    /// `true` if `apply_when` depends on such parts, or on values that do not exist when a session starts.
    let isUndecidable: Bool
    let type: PluginObjectType
    let masks: FieldMasks
    /// The fields that only a new object may set.
    let immutable: Set<String>

    init(_ role: Role, typeName: String, app: AppConfiguration, secrets: Set<String>) {
        let type = (app.schema[typeName] ?? PluginObjectType(properties: [:])).comparingLinks(in: app.schema)
        let check = CompatibilityCheck(role: role, typeName: typeName, type: type, app: app, secrets: secrets)
        self.role = role
        self.type = type
        incompatibilities = check.reasons
        undecided = check.undecided
        unknown = check.unknown
        isUndecidable = !check.undecided.isEmpty || !check.missing.isEmpty
        masks = FieldMasks(role, type, app.schema)
        immutable = Set(
            type.properties.keys.filter { $0 != type.primaryKey && (role.fields[$0] ?? role.additionalFields).isImmutable })
    }

    /// The denying rules, with the reasons for the log and for explanations.
    var denied: TypeRules {
        let reasons = incompatibilities.isEmpty ? undecided : incompatibilities
        return .denied(role: "\(role.name) (not sync compatible: \(reasons.joined(separator: "; ")))")
    }

    /// `true` if the role can be used for the session that it was selected for.
    func isUsable(in session: SessionContext) -> Bool {
        incompatibilities.isEmpty && (undecided.isEmpty || role.applyWhen.isTrue(in: session))
    }

    func rules(for session: SessionContext) -> TypeRules {
        guard isUsable(in: session), let readFilter = role.readFilter, let writeFilter = role.writeFilter else { return denied }
        let isAsymmetric = type.kind == "asymmetric"
        let mayWrite = masks.writable?.isEmpty != true
        let mayRead = masks.readable?.isEmpty != true && !isAsymmetric
        let insert = role.insert.predicate(for: type, in: session)
        var write = mayWrite ? writeFilter.predicate(for: type, in: session) : .constant(false)
        // Asymmetric objects are only inserted, so every object must satisfy the conditions of a new one.
        if isAsymmetric { write = .all([write, insert]) }
        // The write filter widens the read filter, also if the latter is literally false.
        let read: Predicate = mayRead ? .any([readFilter.predicate(for: type, in: session), write]) : .constant(false)
        // Deleting requires write permission for all fields.
        let mayDelete = masks.writable == nil && masks.guarded.isEmpty && !isAsymmetric
        let delete = role.delete.predicate(for: type, in: session)
        return TypeRules(
            read: read.queryText, write: write.queryText, insert: mayWrite && !insert.isNever, delete: mayDelete && !delete.isNever,
            readableFields: masks.readable, writableFields: masks.writable, role: role.name,
            checkWrite: mayWrite && checksWrites && !isAsymmetric)
    }
}
