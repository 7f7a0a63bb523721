import SluicePluginKit

/// Reads the roles of one rule file, strictly: a key that means nothing may be a misspelt restriction (CFG-3).
struct RoleReader {
    let file: String
    /// Checks that values exist.
    let checkValue: (String) throws(RuleMistake) -> Void
    private(set) var problems: [String] = []

    private static let roleKeys = [
        "name", "apply_when", "document_filters", "read", "write", "insert", "delete", "search", "fields", "additional_fields",
        "check_write",
    ]
    private static let fileKeys = ["_id", "id", "collection", "database", "roles", "filters", "schema", "relationships"]

    init(file: String, checkValue: @escaping (String) throws(RuleMistake) -> Void) {
        self.file = file
        self.checkValue = checkValue
    }

    /// The roles of the file's text. `filters` are read over: they never apply to sync (RULE-5).
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
        var role = Role(name: name, applyWhen: expression(applyWhen))
        if let filters = value.member("document_filters") {
            check(filters.value, ["read", "write"], at: "document_filters of role \"\(name)\"", owner: filters)
            role.readFilter = filters.value.member("read").map { expression($0) }
            role.writeFilter = filters.value.member("write").map { expression($0) }
        }
        role.read = value["read"].map { permission($0) }
        role.write = value["write"].map { permission($0) }
        if let insert = value.member("insert") { role.insert = expression(insert) }
        if let delete = value.member("delete") { role.delete = expression(delete) }
        if let check = value.member("check_write") { role.checks = clauses(check) }
        readFields(value, into: &role)
        return role
    }

    /// The members one by one, so that a refusal can name the one that decided.
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
            for member in members { role.fields[member.key] = field(member, .listed) }
        }
        if let others = value.member("additional_fields") { role.additionalFields = field(others, .others) }
    }

    /// Where permissions for a field stand.
    private enum Place {
        case listed
        case others
        /// Inside an embedded object.
        case inside

        var keys: [String] {
            switch self {
            case .listed: ["read", "write", "immutable", "fields", "additional_fields"]
            case .others: ["read", "write", "immutable"]
            case .inside: ["read", "write", "fields", "additional_fields"]
            }
        }
    }

    private mutating func field(_ member: PluginValue.Member, _ place: Place) -> FieldPermission {
        check(member.value, place.keys, at: "\"\(member.key)\"", owner: member)
        var field = FieldPermission(read: member.value["read"].map { permission($0) }, write: member.value["write"].map { permission($0) })
        if let flag = member.value.member("immutable"), place != .inside {
            field.isImmutable = flag.value.bool ?? true
            if flag.value.bool == nil { problem(flag, "\"immutable\" of \"\(member.key)\" is not true or false") }
        }
        for inner in member.value["fields"]?.members ?? [] { field.fields[inner.key] = self.field(inner, .inside) }
        if place != .others, let others = member.value.member("additional_fields") {
            check(others.value, ["read", "write"], at: "\"additional_fields\" of \"\(member.key)\"", owner: others)
            field.otherRead = others.value["read"].map { permission($0) }
            field.otherWrite = others.value["write"].map { permission($0) }
        }
        return field
    }

    private func permission(_ value: PluginValue) -> Permission { value.bool.map { .literal($0) } ?? .expression }

    private mutating func expression(_ member: PluginValue.Member) -> Expression {
        do throws(RuleMistake) {
            let expression = try Expression(parsing: member.value)
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
