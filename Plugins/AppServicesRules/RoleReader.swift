import SluicePluginKit

/// Reads the roles of one rule file. Unknown keys are errors, because one may be a misspelt restriction.
struct RoleReader {
    let file: String
    /// Checks that a value exists.
    let checkValue: (String) throws(RuleMistake) -> Void
    private(set) var problems: [String] = []
    /// The fields of the role that is being read.
    private var names: [FieldName] = []

    private static let roleKeys = [
        "name", "apply_when", "document_filters", "read", "write", "insert", "delete", "search", "fields", "additional_fields",
        "check_write",
    ]
    private static let fileKeys = ["_id", "id", "collection", "database", "roles", "filters", "schema", "relationships"]

    init(file: String, checkValue: @escaping (String) throws(RuleMistake) -> Void) {
        self.file = file
        self.checkValue = checkValue
    }

    /// Returns the roles in the file's text. `filters` are ignored, because they never apply to sync.
    mutating func roles(of text: String) -> [Role] {
        let content: PluginValue
        do { content = try PluginValue(parsing: text) } catch {
            problems.append("\(file) \(error)")
            return []
        }
        guard content.members != nil else {
            problem(nil, "the file holds no object")
            return []
        }
        check(content, Self.fileKeys, at: "the file")
        guard let list = content["roles"] else { return [] }
        guard let elements = list.array else {
            problem(content.member("roles"), "\"roles\" is not a list")
            return []
        }
        let roles = elements.enumerated().compactMap { role($1, number: $0 + 1) }
        for (index, role) in roles.enumerated() where roles[..<index].contains(where: { $0.name == role.name }) {
            problem(content.member("roles"), "two roles are called \"\(role.name)\"")
        }
        return roles
    }

    private mutating func role(_ value: PluginValue, number: Int) -> Role? {
        guard value.members != nil else {
            problem(nil, "role \(number) is not an object")
            return nil
        }
        guard let name = value["name"]?.string, (1...100).contains(name.count) else {
            problem(value.members?.first, "role \(number) needs a \"name\" of 1 to 100 characters")
            return nil
        }
        check(value, Self.roleKeys, at: "role \"\(name)\"")
        guard let applyWhen = value.member("apply_when") else {
            problem(value.members?.first, "role \"\(name)\" lacks \"apply_when\"")
            return nil
        }
        names = []
        var role = Role(name: name, file: file, applyWhen: expression(applyWhen))
        if let filters = value.member("document_filters") {
            check(filters.value, ["read", "write"], at: "document_filters of role \"\(name)\"", owner: filters)
            role.readFilter = filters.value.member("read").map { expression($0, in: "document_filters.read") }
            role.writeFilter = filters.value.member("write").map { expression($0, in: "document_filters.write") }
        }
        role.read = value.member("read").map { permission($0, in: "read") }
        role.write = value.member("write").map { permission($0, in: "write") }
        // `search` has no effect in sync, but its fields are checked.
        if let search = value.member("search") { _ = permission(search, in: "search") }
        if let insert = value.member("insert") { role.insert = expression(insert) }
        if let delete = value.member("delete") { role.delete = expression(delete) }
        if let check = value.member("check_write") { role.checks = clauses(check) }
        readFields(value, into: &role)
        role.names = names
        return role
    }

    /// Returns one clause for each member, so that a denial can name the clause that decided.
    private mutating func clauses(_ check: PluginValue.Member) -> [Clause] {
        guard let members = check.value.members else { return [Clause(text: check.value.json, expression: expression(check))] }
        return members.map { member in
            let part = PluginValue.Member(check.key, .object([member]), line: member.line)
            return Clause(text: part.value.json, expression: expression(part))
        }
    }

    private mutating func readFields(_ value: PluginValue, into role: inout Role) {
        if let fields = value.member("fields") {
            guard let members = fields.value.members else {
                problem(fields, "\"fields\" of role \"\(role.name)\" is not an object")
                return
            }
            for member in members { role.fields[member.key] = field(member, .listed, [member.key]) }
        }
        if let others = value.member("additional_fields") { role.additionalFields = field(others, .others, []) }
    }

    /// The place of a field's permissions in the file.
    private enum Place {
        case listed
        case others
        /// Permissions inside an embedded object.
        case inside

        var keys: [String] {
            switch self {
            case .listed: ["read", "write", "immutable", "fields", "additional_fields"]
            case .others: ["read", "write", "immutable"]
            case .inside: ["read", "write", "fields", "additional_fields"]
            }
        }
    }

    /// - Parameter path: The path to the field. Empty for `additional_fields`.
    private mutating func field(_ member: PluginValue.Member, _ place: Place, _ path: [String]) -> FieldPermission {
        check(member.value, place.keys, at: "\"\(member.key)\"", owner: member)
        if !path.isEmpty { names.append(FieldName(path: path, place: "fields", line: member.line)) }
        let key = path.isEmpty ? "additional_fields" : "fields.\(path.joined(separator: "."))"
        var field = FieldPermission()
        field.read = member.value.member("read").map { permission($0, in: "\(key).read") }
        field.write = member.value.member("write").map { permission($0, in: "\(key).write") }
        if let flag = member.value.member("immutable"), place != .inside {
            field.isImmutable = flag.value.bool ?? true
            if flag.value.bool == nil { problem(flag, "\"immutable\" of \"\(member.key)\" is not true or false") }
        }
        for inner in member.value["fields"]?.members ?? [] { field.fields[inner.key] = self.field(inner, .inside, path + [inner.key]) }
        if place != .others, let others = member.value.member("additional_fields") {
            check(others.value, ["read", "write"], at: "\"additional_fields\" of \"\(member.key)\"", owner: others)
            field.otherRead = others.value.member("read").map { permission($0, in: "\(key).additional_fields.read") }
            field.otherWrite = others.value.member("write").map { permission($0, in: "\(key).additional_fields.write") }
        }
        return field
    }

    private mutating func permission(_ member: PluginValue.Member, in place: String) -> Permission {
        if let flag = member.value.bool { return .literal(flag) }
        // Sync does not support expressions here, so an invalid one is not an error.
        if (try? Expression(parsing: member.value)) != nil {
            names += FieldName.all(in: member.value, place: place, line: member.line)
        }
        return .expression
    }

    /// - Parameter place: The path to the key. Default: the key itself.
    private mutating func expression(_ member: PluginValue.Member, in place: String? = nil) -> Expression {
        do throws(RuleMistake) {
            let expression = try Expression(parsing: member.value)
            names += FieldName.all(in: member.value, place: place ?? member.key, line: member.line)
            for case .value(let name, _) in expression.expansions { try checkValue(name) }
            return expression
        } catch {
            let place = error.message.hasPrefix("line ") ? "\(file) \(error.message)" : "\(file) line \(member.line): \(error.message)"
            problems.append("\(place) (in \(member.key))")
            return .constant(false)
        }
    }

    private mutating func check(_ value: PluginValue, _ keys: [String], at place: String, owner: PluginValue.Member? = nil) {
        guard let members = value.members else {
            problem(owner, "\(place) is not an object")
            return
        }
        for member in members where !keys.contains(member.key) {
            let mistake = RuleMistake("\(place) has an unknown key \"\(member.key)\"", meant: member.key, among: keys)
            problem(member, mistake.message)
        }
    }

    private mutating func problem(_ member: PluginValue.Member?, _ message: String) {
        let line = member.map { $0.line > 0 ? " line \($0.line)" : "" } ?? ""
        problems.append("\(file)\(line): \(message)")
    }
}

extension PluginValue {
    fileprivate func member(_ key: String) -> Member? { members?.last { $0.key == key } }
}
