package import SluiceCore
package import SluicePorts
import SluiceQuery
import SluiceValues

/// A user's rights to insert into an asymmetric class, bound once for each answer of the rules and checked against each object.
///
/// Costs nothing if the role's write filter accepts everything and all fields are writable.
package struct IngestRights: Sendable {
    private let type: ObjectType
    private let role: String
    /// `true` if the role permits any insert.
    package var mayInsert: Bool { isGranted && unusable == nil }
    private let isGranted: Bool
    /// The reason why no object may be inserted: the rule's predicate is invalid or does not fit the class. Nil if it fits.
    package let unusable: Rejection?
    /// The write filter; nil if every object passes.
    private let filter: Predicate?
    /// The properties that may not be set, by index.
    private let forbidden: [Int]

    package init(_ plan: TypePlan, type: ObjectType, schema: Schema) {
        self.init(plan, type: type, write: Result { () throws(SluiceError) in try Query.parse(plan.write).predicate(on: type, in: schema) })
    }

    /// - Parameter write: The bound predicate of `plan.write`, or the reason why it is no query of the class.
    init(_ plan: TypePlan, type: ObjectType, write: Result<Predicate, SluiceError>) {
        self.type = type
        role = plan.role
        isGranted = plan.insert && plan.write != TypePlan.denied.write
        do throws(SluiceError) {
            filter = !isGranted || plan.write == TypePlan.open.write ? nil : try write.get()
            unusable = nil
        } catch {
            filter = nil
            unusable = Rejection(unasked: error, about: "role \(plan.role), write predicate \(plan.write): ", type: type.name)
        }
        forbidden =
            plan.fields.writable.map { fields in
                type.properties.indices.filter { $0 != type.primaryKey && !fields.contains(bytesOf: type.properties[$0].name) }
            } ?? []
    }

    /// The reason why an object may not be inserted.
    package struct Rejection: Sendable {
        /// The error for the user.
        package var error: SluiceError
        /// The part of the role that decided, for operators only.
        package var rule: String
    }

    /// `true` if objects must be checked one by one.
    var isConditional: Bool { !mayInsert || filter != nil || !forbidden.isEmpty }

    /// Checks one object.
    /// - Returns: nil if the object may be inserted.
    func refusal(of row: RowView) -> Rejection? {
        if let unusable { return unusable }
        guard isGranted else {
            return refused("Not allowed to insert into \(type.name).", "insert")
        }
        if let filter, !filter.matches(row) {
            return refused("Not allowed to insert this object into \(type.name).", "write, not met: \(filter.canonicalText)")
        }
        let set = forbidden.filter { Self.isSet(row.value($0)) }.map { type.properties[$0].name }.sorted()
        guard let first = set.first else { return nil }
        let rule = "writable fields without \(set.joined(separator: ", "))"
        return refused("Not allowed to write field \(first) of \(type.name).", rule)
    }

    func refusal(of values: [String: Value], key: Value) -> Rejection? {
        guard isConditional else { return nil }
        var buffer = RowBuffer()
        let row = buffer.append(Row(values: values, key: key, type: type))
        return buffer.withView(row) { refusal(of: $0) }
    }

    private func refused(_ message: String, _ rule: String) -> Rejection {
        Rejection(error: SluiceError(.writeNotAllowed, message), rule: "role \(role), \(rule)")
    }

    /// Returns `false` for null and an empty collection, which are defaults and so do not count as set.
    private static func isSet(_ value: Value?) -> Bool {
        switch value ?? .null {
        case .null: false
        case .list(let elements): !elements.isEmpty
        case .dictionary(let members): !members.isEmpty
        default: true
        }
    }
}

extension IngestRights.Rejection {
    /// Creates the rejection of an object that the rules could not judge. It hides the cause from the user.
    /// - Parameter subject: A prefix for operators.
    fileprivate init(unasked error: SluiceError, about subject: String, type: String) {
        self.init(
            error: SluiceError(
                .writeNotAllowed, "The rules of the server could not be asked about an object of class \(type), so it was refused."),
            rule: "\(subject)\(error.code.name) (\(error.code.rawValue)): \(error.operatorText)")
    }
}
