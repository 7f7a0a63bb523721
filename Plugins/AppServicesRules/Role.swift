import SluicePluginKit

/// A role as in its file.
struct Role {
    var name: String
    /// The path of the rule file.
    var file = ""
    /// Every field that the role uses.
    var names: [FieldName] = []
    var applyWhen: Expression
    var readFilter: Expression?
    var writeFilter: Expression?
    var read: Permission?
    var write: Permission?
    var insert: Expression = .constant(true)
    var delete: Expression = .constant(true)
    /// The conditions on the documents before and after each write. All must hold.
    var checks: [Clause] = []
    var fields: [String: FieldPermission] = [:]
    var additionalFields = FieldPermission()
}

/// A part of `check_write`, with its text for explanations of rejected writes.
struct Clause {
    var text: String
    var expression: Expression
}

/// `read` or `write`, of a role or of a field.
enum Permission: Hashable {
    case literal(Bool)
    /// Any value other than `true` or `false`.
    case expression
}

struct FieldPermission: Hashable {
    var read: Permission?
    var write: Permission?
    /// `true` if only a new object may set the field.
    var isImmutable = false
    /// Permissions for fields inside an embedded object, and for those of them that are not listed.
    var fields: [String: FieldPermission] = [:]
    var otherRead: Permission?
    var otherWrite: Permission?
}
