import SluicePluginKit

/// A role as its file has it.
struct Role {
    var name: String
    /// The rule file.
    var file = ""
    /// Every field that the role names.
    var names: [FieldName] = []
    var applyWhen: Expression
    var readFilter: Expression?
    var writeFilter: Expression?
    var read: Permission?
    var write: Permission?
    var insert: Expression = .constant(true)
    var delete: Expression = .constant(true)
    /// What has to hold of the documents before and after each write; all of it.
    var checks: [Clause] = []
    var fields: [String: FieldPermission] = [:]
    var additionalFields = FieldPermission()
}

/// A part of `check_write`, with its text for those who look up why a write was undone.
struct Clause {
    var text: String
    var expression: Expression
}

/// `read` or `write`, of a role or of a field.
enum Permission: Hashable {
    case literal(Bool)
    /// Anything that is not `true` or `false`.
    case expression
}

struct FieldPermission: Hashable {
    var read: Permission?
    var write: Permission?
    /// Whether it may be set in a new object only.
    var isImmutable = false
    /// Permissions for fields inside an embedded object, and for those of them that are not listed.
    var fields: [String: FieldPermission] = [:]
    var otherRead: Permission?
    var otherWrite: Permission?
}
