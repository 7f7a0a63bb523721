package import SluiceCore

extension TypePlan {
    /// What two plugins allow together: no more than either does.
    package func intersected(with other: TypePlan) -> TypePlan {
        TypePlan(
            read: Self.both(read, other.read), write: Self.both(write, other.write), insert: insert && other.insert,
            delete: delete && other.delete, readableFields: Self.both(readableFields, other.readableFields),
            writableFields: Self.both(writableFields, other.writableFields), role: "\(role) & \(other.role)",
            checkWrite: checkWrite || other.checkWrite)
    }

    private static func both(_ left: String, _ right: String) -> String {
        if left == right || right == "TRUEPREDICATE" { return left }
        if left == "TRUEPREDICATE" { return right }
        if left == "FALSEPREDICATE" || right == "FALSEPREDICATE" { return "FALSEPREDICATE" }
        return "(\(left)) AND (\(right))"
    }

    private static func both(_ left: Set<String>?, _ right: Set<String>?) -> Set<String>? {
        guard let left, let right else { return left ?? right }
        return left.intersection(right)
    }
}

extension SessionPlan {
    /// A type that one of the plans lacks is denied by it.
    package func intersected(with other: SessionPlan) -> SessionPlan {
        var both: [String: TypePlan] = [:]
        for (type, plan) in types {
            if let theirs = other.types[type] { both[type] = plan.intersected(with: theirs) }
        }
        return SessionPlan(types: both)
    }
}
