package import SluicePorts
import SluiceValues

extension TypePlan {
    /// Returns the permissions that two plugins allow together: never more than either allows.
    /// - Parameter isQuery: Returns `true` if a text is a query by itself.
    package func intersected(with other: TypePlan, isQuery: (String) -> Bool) -> TypePlan {
        TypePlan(
            read: Self.both(read, other.read, isQuery), write: Self.both(write, other.write, isQuery), insert: insert && other.insert,
            delete: delete && other.delete,
            fields: FieldRights(
                readable: Self.both(fields.readable, other.fields.readable), writable: Self.both(fields.writable, other.fields.writable)),
            role: "\(role) & \(other.role)", checkWrite: checkWrite || other.checkWrite, grants: grants || other.grants)
    }

    /// Joins two predicates with AND.
    /// Returns a text that is no query unchanged, so that it is rejected later. In parentheses it could disable the other predicate.
    private static func both(_ left: String, _ right: String, _ isQuery: (String) -> Bool) -> String {
        if left.hasSameBytes(as: right) || right == "TRUEPREDICATE" { return left }
        if left == "TRUEPREDICATE" { return right }
        if left == "FALSEPREDICATE" || right == "FALSEPREDICATE" { return "FALSEPREDICATE" }
        guard isQuery(left) else { return left }
        guard isQuery(right) else { return right }
        return "(\(left)) AND (\(right))"
    }

    /// Intersects two field lists; nil means all fields.
    private static func both(_ left: Set<String>?, _ right: Set<String>?) -> Set<String>? {
        guard let left, let right else { return left ?? right }
        return left.intersection(right)
    }
}

extension SessionPlan {
    /// Returns the permissions that both plans grant. A class that one of the plans lacks is denied.
    package func intersected(with other: SessionPlan, isQuery: (String) -> Bool) -> SessionPlan {
        var both: [String: TypePlan] = [:]
        for (type, plan) in types {
            if let theirs = other.types[type] { both[type] = plan.intersected(with: theirs, isQuery: isQuery) }
        }
        return SessionPlan(types: both)
    }
}
