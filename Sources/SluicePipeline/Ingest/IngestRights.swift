package import SluiceCore
import SluiceQuery

/// What a role lets a user insert into an asymmetric class (ING-9): bound once for a request or a message, held against each object.
///
/// Free where the role's write filter lets everything through and all fields may be written.
package struct IngestRights: Sendable {
    private let type: ObjectType
    private let role: String
    /// Whether the role lets the user insert anything at all.
    package let mayInsert: Bool
    /// Nil when every object passes.
    private let filter: Predicate?
    /// The properties that may not be set.
    private let forbidden: [Int]

    /// - Throws: an error of the query language when the rule's predicate does not fit the schema: nothing may be inserted then.
    package init(_ plan: TypePlan, type: ObjectType) throws(SluiceError) {
        self.type = type
        role = plan.role
        mayInsert = plan.insert && plan.write != TypePlan.denied.write
        filter = !mayInsert || plan.write == TypePlan.open.write ? nil : try Query.parse(plan.write).bind(to: type)
        forbidden =
            plan.writableFields.map { fields in
                type.properties.indices.filter { $0 != type.primaryKey && !fields.contains(type.properties[$0].name) }
            } ?? []
    }

    /// Why an object may not be inserted.
    struct Refusal {
        /// For the user.
        var error: SluiceError
        /// The part of the role that decided, for operators alone.
        var rule: String
    }

    /// Whether objects have to be looked at one by one.
    var isConditional: Bool { !mayInsert || filter != nil || !forbidden.isEmpty }

    /// - Returns: nil when the object may be inserted.
    func refusal(of row: RowView) -> Refusal? {
        guard mayInsert else {
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

    func refusal(of values: [String: Value], key: Value) -> Refusal? {
        guard isConditional else { return nil }
        var buffer = RowBuffer()
        let row = buffer.append(Row(values: values, key: key, type: type))
        return buffer.withView(row) { refusal(of: $0) }
    }

    private func refused(_ message: String, _ rule: String) -> Refusal {
        Refusal(error: SluiceError(.writeNotAllowed, message), rule: "role \(role), \(rule)")
    }

    /// Null and an empty collection are what an object has of itself.
    private static func isSet(_ value: Value?) -> Bool {
        switch value ?? .null {
        case .null: false
        case .list(let elements): !elements.isEmpty
        case .dictionary(let members): !members.isEmpty
        default: true
        }
    }
}
