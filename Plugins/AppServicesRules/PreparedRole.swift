import SluicePluginKit

/// A role for one type: checked for sync (COMPAT-1 to COMPAT-5), field masks worked out.
struct PreparedRole {
    let role: Role
    /// Why the role cannot be used in sync; it then denies.
    let incompatibilities: [String]
    /// Whether `apply_when` refers to a document (COMPAT-5).
    let needsDocument: Bool

    let type: PluginObjectType
    /// The fields that only a new object may set.
    let immutable: Set<String>
    /// Nil is all fields.
    private let readable: Set<String>?
    private let writable: Set<String>?

    init(_ role: Role, typeName: String, app: AppConfiguration) {
        let type = app.schema[typeName] ?? PluginObjectType(properties: [:])
        let check = CompatibilityCheck(role: role, typeName: typeName, type: type, app: app)
        self.role = role
        self.type = type
        incompatibilities = check.reasons
        needsDocument = check.applyWhenNeedsDocument
        immutable = Set(
            type.properties.keys.filter { $0 != type.primaryKey && (role.fields[$0] ?? role.additionalFields).isImmutable })
        writable = Self.mask(role, type, whole: role.write) { $0.write }
        let readable = Self.mask(role, type, whole: role.read) { $0.read }
        // Write permission implies read permission (RULE-2).
        self.readable = writable.flatMap { writable in readable.map { $0.union(writable) } }
    }

    /// The fields for which a kind of permission is given; nil is all. The primary key belongs to every permission that
    /// covers anything, since nothing can be said of an object without it.
    private static func mask(
        _ role: Role, _ type: PluginObjectType, whole: Permission?, _ permission: (FieldPermission) -> Permission?
    ) -> Set<String>? {
        if case .literal(let isAllowed)? = whole { return isAllowed ? nil : [] }
        let others = permission(role.additionalFields) == .literal(true)
        let names = type.properties.keys.filter { $0 != type.primaryKey }
        let allowed = names.filter { name in
            guard let field = role.fields[name] else { return others }
            return permission(field) == .literal(true)
        }
        if allowed.isEmpty { return [] }
        return allowed.count == names.count ? nil : Set(allowed).union([type.primaryKey ?? "_id"])
    }

    /// For the log and for explanations.
    var denied: TypeRules { .denied(role: "\(role.name) (not sync compatible: \(incompatibilities.joined(separator: "; ")))") }

    func rules(for session: SessionContext) -> TypeRules {
        guard incompatibilities.isEmpty, let readFilter = role.readFilter, let writeFilter = role.writeFilter else { return denied }
        let mayWrite = writable?.isEmpty != true
        let mayRead = readable?.isEmpty != true && type.kind != "asymmetric"
        let write = mayWrite ? writeFilter.predicate(for: type, in: session) : .constant(false)
        // The write filter widens the read filter (RULE-2), whether or not the latter is literally false.
        let read: Predicate = mayRead ? .any([readFilter.predicate(for: type, in: session), write]) : .constant(false)
        // Deleting takes write permission for all the fields there are (RULE-4).
        let mayDelete = writable == nil && type.kind != "asymmetric"
        return TypeRules(
            read: read.queryText, write: write.queryText, insert: mayWrite && role.insert.isTrue(in: session),
            delete: mayDelete && role.delete.isTrue(in: session), readableFields: readable, writableFields: writable, role: role.name,
            checkWrite: mayWrite && checksWrites)
    }
}

/// Finds what keeps a role from being used in sync.
struct CompatibilityCheck {
    let role: Role
    let typeName: String
    let type: PluginObjectType
    let app: AppConfiguration

    var applyWhenNeedsDocument: Bool { !role.applyWhen.fields.isEmpty || !Self.unavailable(in: role.applyWhen).isEmpty }

    var reasons: [String] {
        var reasons: [String] = []
        for (name, filter) in [("read", role.readFilter), ("write", role.writeFilter)] {
            guard let filter else {
                reasons.append("document_filters.\(name) is missing")
                continue
            }
            reasons += filterReasons(filter).map { "document_filters.\(name): \($0)" }
        }
        for (name, expression) in [("insert", role.insert), ("delete", role.delete)] {
            reasons += Self.unavailable(in: expression).map { "\(name): \($0) is not available in sync" }
            reasons += expression.fields.sorted().map { "\(name): it depends on field \($0) of the document" }
        }
        if applyWhenNeedsDocument {
            let names = role.applyWhen.fields.sorted() + Self.unavailable(in: role.applyWhen)
            reasons.append("apply_when: there is no \(names.joined(separator: ", ")) when a session starts")
        }
        return reasons + role.checks.flatMap { checkReasons($0.expression) } + permissionReasons
    }

    /// Of a check of writes, which has both documents.
    private func checkReasons(_ expression: Expression) -> [String] {
        let names = expression.expansions.compactMap { if case .document(_, let path) = $0 { path.first } else { nil } }
        let unknown = Set(names).sorted().filter { type.properties[$0] == nil }.map { "\(typeName) has no field \($0)\(meant($0))" }
        let bare = expression.fields.sorted().map { "field \($0) is to be %%root.\($0) or %%prevRoot.\($0)" }
        let foreign = expression.expansions.compactMap {
            if case .foreign(let name) = $0 { "\(name) is not available in sync" } else { nil }
        }
        return (foreign + bare + unknown).map { "check_write: \($0)" }
    }

    private func meant(_ name: String) -> String {
        Suggestion.closest(to: name, among: Array(type.properties.keys)).map { "; did you mean \"\($0)\"?" } ?? ""
    }

    private static func unavailable(in expression: Expression) -> [String] {
        expression.expansions.compactMap {
            switch $0 {
            case .document(let image, let path): ([image.rawValue] + path).joined(separator: ".")
            case .foreign(let name): name
            case .constant, .user, .value, .environmentTag, .environmentValue: nil
            }
        }
    }

    private func filterReasons(_ filter: Expression) -> [String] {
        let missing = Self.unavailable(in: filter).map { "\($0) is not available in sync" }
        let fields = filter.fields.sorted().compactMap { fieldReason($0) }
        return missing + (fields.isEmpty ? filter.mismatches(with: type) : fields)
    }

    private func fieldReason(_ name: String) -> String? {
        guard let property = type.properties[name] else {
            if name.contains(".") { return "\(name) is inside an embedded object or a link, which cannot be queried" }
            return "\(typeName) has no field \(name)\(meant(name))"
        }
        if property.type.contains(":") || property.collection == "dictionary" {
            return "\(name) is \(property.type), which cannot be queried"
        }
        if QueryLiteral.name(name) == nil { return "\(name) cannot be named in a query" }
        return app.isQueryable(name, of: typeName) ? nil : "\(name) is not a queryable field"
    }

    private var permissionReasons: [String] {
        var reasons: [String] = []
        if role.read == .expression { reasons.append("read is not true or false") }
        if role.write == .expression { reasons.append("write is not true or false") }
        for (name, field) in role.fields.sorted(by: { $0.key < $1.key }) {
            if name == "_id" || name == type.primaryKey { reasons.append("fields.\(name): the primary key has no permissions of its own") }
            reasons += fieldReasons("fields.\(name)", field)
        }
        return reasons + fieldReasons("additional_fields", role.additionalFields)
    }

    private func fieldReasons(_ place: String, _ field: FieldPermission) -> [String] {
        var reasons: [String] = []
        if field.read == .expression { reasons.append("\(place).read is not true or false") }
        if field.write == .expression { reasons.append("\(place).write is not true or false") }
        // A permission of the embedded object itself would override those inside (RULE-3).
        let isWhole = field.read != nil || field.write != nil
        if field.hasNestedFields, !isWhole { reasons.append("\(place).fields: permissions inside an embedded object are not available") }
        return reasons
    }
}

extension Expression {
    /// Comparisons with literals that can never hold since the types differ.
    fileprivate func mismatches(with type: PluginObjectType) -> [String] {
        switch self {
        case .constant, .exists: return []
        case .all(let parts), .any(let parts): return parts.flatMap { $0.mismatches(with: type) }
        case .not(let part): return part.mismatches(with: type)
        case .test(.expansion, _, _): return []
        case .test(.field(let name), let comparison, let operand):
            guard let property = type.properties[name] else { return [] }
            let isListed = comparison == .among || comparison == .notAmong
            return operand.literals(isListed: isListed).filter { QueryLiteral.text($0, for: property) == nil }
                .map { "\(name) is \(property.type) and is compared with \($0.typeName)" }
        }
    }
}

extension Expression.Operand {
    /// The values that do not depend on the session.
    fileprivate func literals(isListed: Bool) -> [RuleValue] {
        switch self {
        case .value(let value): return [value]
        case .list(let operands) where isListed: return operands.flatMap { $0.literals(isListed: false) }
        case .list: return [.list([])]
        case .expansion, .converted: return []
        }
    }
}
