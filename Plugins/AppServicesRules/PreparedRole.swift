import SluicePluginKit

/// A role for one type: checked for sync (COMPAT-1 to COMPAT-5), field masks worked out.
struct PreparedRole {
    let role: Role
    /// Why the role cannot be used in sync; it then denies.
    let incompatibilities: [String]
    /// What in `apply_when` nothing here can tell, such as a function; where that matters, the role denies.
    let undecided: [String]
    /// Whether `apply_when` depends on that, or on what there is not when a session starts (COMPAT-5).
    let isUndecidable: Bool
    let type: PluginObjectType
    let masks: FieldMasks
    /// The fields that only a new object may set.
    let immutable: Set<String>

    init(_ role: Role, typeName: String, app: AppConfiguration, secrets: Set<String>) {
        let type = app.schema[typeName] ?? PluginObjectType(properties: [:])
        let check = CompatibilityCheck(role: role, typeName: typeName, type: type, app: app, secrets: secrets)
        self.role = role
        self.type = type
        incompatibilities = check.reasons
        undecided = check.undecided
        isUndecidable = !check.undecided.isEmpty || !check.missing.isEmpty
        masks = FieldMasks(role, type, app.schema)
        immutable = Set(
            type.properties.keys.filter { $0 != type.primaryKey && (role.fields[$0] ?? role.additionalFields).isImmutable })
    }

    /// For the log and for explanations.
    var denied: TypeRules {
        let reasons = incompatibilities.isEmpty ? undecided : incompatibilities
        return .denied(role: "\(role.name) (not sync compatible: \(reasons.joined(separator: "; ")))")
    }

    /// Whether the role can be used as it is for the session that it was taken for.
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
        // Such objects are only inserted, so what has to hold of a new one has to hold of each.
        if isAsymmetric { write = .all([write, insert]) }
        // The write filter widens the read filter (RULE-2), whether or not the latter is literally false.
        let read: Predicate = mayRead ? .any([readFilter.predicate(for: type, in: session), write]) : .constant(false)
        // Deleting takes write permission for all the fields there are (RULE-4).
        let mayDelete = masks.writable == nil && masks.guarded.isEmpty && !isAsymmetric
        let delete = role.delete.predicate(for: type, in: session)
        return TypeRules(
            read: read.queryText, write: write.queryText, insert: mayWrite && !insert.isNever, delete: mayDelete && !delete.isNever,
            readableFields: masks.readable, writableFields: masks.writable, role: role.name,
            checkWrite: mayWrite && checksWrites && !isAsymmetric)
    }
}
