import SluicePluginKit

/// Finds the reasons that make a role unusable in sync.
struct CompatibilityCheck {
    let role: Role
    let typeName: String
    let type: PluginObjectType
    let app: AppConfiguration
    let secrets: Set<String>

    /// The names in `apply_when` that have no value when a session starts.
    var missing: [String] {
        role.applyWhen.fields.sorted()
            + role.applyWhen.expansions.compactMap { expansion -> String? in
                if case .function = expansion { nil } else { expansion.unavailable }
            }
    }

    /// The parts of `apply_when` that the plugin cannot evaluate by itself: values that it lacks, and results of functions.
    var undecided: [String] {
        let functions = role.applyWhen.expansions.compactMap { if case .function(let name, _) = $0 { name } else { nil } }
        return unknown + Set(functions).sorted().map { "apply_when: the function \"\($0)\" has no result" }
    }

    /// The parts of `apply_when` that have no value in any session.
    var unknown: [String] { secretReasons(role.applyWhen).map { "apply_when: \($0)" } }

    private func secretReasons(_ expression: Expression) -> [String] {
        let names = expression.expansions.compactMap { if case .value(let name, _) = $0, secrets.contains(name) { name } else { nil } }
        return Set(names).sorted().map {
            "value \"\($0)\" is a secret, which an export does not hold: write it into secrets.json"
        }
    }

    /// The reasons that make the role unusable. Empty if it is compatible with sync.
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
            reasons += filterReasons(expression).map { "\(name): \($0)" }
        }
        if !role.checks.isEmpty, type.kind == "asymmetric" {
            reasons.append("check_write: objects of \(typeName) are asymmetric, so insert and the write filter have to say it")
        }
        if !missing.isEmpty { reasons.append("apply_when: there is no \(missing.joined(separator: ", ")) when a session starts") }
        return reasons + role.checks.flatMap { checkReasons($0.expression) } + permissionReasons
    }

    /// Returns the reasons against a check of writes, for which both documents are available.
    private func checkReasons(_ expression: Expression) -> [String] {
        let names = expression.expansions.compactMap { if case .document(_, let path) = $0 { path.first } else { nil } }
        let unknown = Set(names).sorted().filter { type.property(named: $0) == nil }.map { "\(typeName) has no field \($0)\(meant($0))" }
        let bare = expression.fields.sorted().map { "field \($0) is to be %%root.\($0) or %%prevRoot.\($0)" }
        let foreign = expression.expansions.compactMap { expansion -> String? in
            if case .document = expansion { return nil }
            return expansion.unavailable.map { "\($0) is not available in sync" }
        }
        return (foreign + secretReasons(expression) + bare + unknown).map { "check_write: \($0)" }
    }

    private func meant(_ name: String) -> String {
        Suggestion.closest(to: name, among: Array(type.properties.keys)).map { "; did you mean \"\($0)\"?" } ?? ""
    }

    private func filterReasons(_ filter: Expression) -> [String] {
        let missing = filter.expansions.compactMap(\.unavailable).map { "\($0) is not available in sync" } + secretReasons(filter)
        let fields = filter.fields.sorted().compactMap { fieldReason($0) }
        return missing + (fields.isEmpty ? filter.mismatches(with: type) : fields)
    }

    private func fieldReason(_ name: String) -> String? {
        guard let property = type.property(named: name) else {
            if name.contains(".") { return "\(name) is inside an embedded object or a link, which cannot be queried" }
            return "\(typeName) has no field \(name)\(meant(name))"
        }
        if LinkKey(property) == nil, property.type.contains(":") || property.collection == "dictionary" {
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
        if field.otherRead == .expression || field.otherWrite == .expression {
            reasons.append("\(place).additional_fields is not true or false")
        }
        for (name, inner) in field.fields.sorted(by: { $0.key < $1.key }) { reasons += fieldReasons("\(place).fields.\(name)", inner) }
        return reasons
    }
}

extension Expansion {
    /// The expansion's name, or nil if it has a value in sync.
    fileprivate var unavailable: String? {
        switch self {
        case .document(let image, let path): ([image.rawValue] + path).joined(separator: ".")
        case .foreign(let name): name
        case .function(let name, _): "%function \"\(name)\""
        case .constant, .user, .value, .environmentTag, .environmentValue: nil
        }
    }
}

extension Expression {
    /// Comparisons with literals that can never hold because the types differ.
    fileprivate func mismatches(with type: PluginObjectType) -> [String] {
        switch self {
        case .constant, .exists: return []
        case .all(let parts), .any(let parts): return parts.flatMap { $0.mismatches(with: type) }
        case .not(let part): return part.mismatches(with: type)
        case .test(.expansion, _, _): return []
        case .test(.field(let name), let comparison, let operand):
            guard let property = type.property(named: name) else { return [] }
            if let link = LinkKey(property), comparison.isOrdering { return ["\(name) is a link to \(link.target), which has no order"] }
            let isListed = comparison.takesList
            return operand.literals(isListed: isListed).filter { QueryLiteral.text($0, for: property) == nil }
                .map { "\(name) is \(property.comparedType) and is compared with \($0.typeName)" }
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
        case .expansion, .converted, .joined: return []
        }
    }
}
