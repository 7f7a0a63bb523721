import SluicePluginKit

/// A role as its file has it.
struct Role {
    var name: String
    var applyWhen: Expression
    var readFilter: Expression?
    var writeFilter: Expression?
    var read: Permission?
    var write: Permission?
    var insert: Expression = .constant(true)
    var delete: Expression = .constant(true)
    var fields: [String: FieldPermission] = [:]
    var additionalFields = FieldPermission()
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
    /// Whether it has permissions for fields inside an embedded object.
    var hasNestedFields = false
}
