package import SluiceValues

/// A database trigger of an export: a function that is called for changes of a class.
package struct DatabaseTrigger: Hashable, Sendable {
    package var name: String
    /// The class whose changes count.
    package var type: String
    package var operations: Set<ChangeEvent.Operation>
    package var function: String
    package var shape: ChangeEventShape
    /// The filter of events.
    package var match = Condition.constant(true)
    package var projection: ChangeProjection?
    /// `true` if events of an object need no order.
    package var isUnordered = false

    package init(
        _ name: String, on type: String, _ operations: Set<ChangeEvent.Operation>, function: String, shape: ChangeEventShape
    ) {
        self.name = name
        self.type = type
        self.operations = operations
        self.function = function
        self.shape = shape
    }

    /// Returns the call for an event; nil if the event does not count. Its id is the same whenever the call is repeated.
    package func call(for event: ChangeEvent) -> FunctionCall? {
        guard operations.contains(event.operation), !event.isVoid else { return nil }
        let json = shape.json(event)
        guard match.matches(json) else { return nil }
        return FunctionCall(
            function, arguments: [projection?.apply(json) ?? json], caller: .system, id: "change-\(event.position)-\(name)")
    }
}

extension Condition {
    /// The members of an event that a filter may name.
    private static let parts: Set<Substring> = [
        "operationType", "wallTime", "ns", "documentKey", "fullDocument", "fullDocumentBeforeChange", "updateDescription",
    ]

    /// Reads the filter of a database trigger, a query of MongoDB over its events.
    ///
    /// - Throws: `Unsupported` with a part that the gateway would not evaluate as MongoDB does.
    package init(filter json: JSON) throws(Unsupported) {
        guard json.members != nil else { throw Self.unsupported(json.text) }
        self = try Condition(json)
        if let name = names.filter({ !Self.isPath($0) }).min() { throw Self.unsupported(name) }
        try requireComparable()
    }

    private static func isPath(_ name: String) -> Bool {
        let path = name.split(separator: ".", omittingEmptySubsequences: false)
        return path.first.map(parts.contains) == true && !path.contains { $0.isEmpty || $0.hasPrefix("$") }
    }

    /// - Throws: `Unsupported` for an operand without an order, and for an object, whose members MongoDB compares in their order.
    private func requireComparable() throws(Unsupported) {
        switch self {
        case .all(let parts), .any(let parts): for part in parts { try part.requireComparable() }
        case .not(let part): try part.requireComparable()
        case .test(_, let comparison, .value(let operand)):
            guard operand.isComparable(by: comparison) else { throw Self.unsupported(operand.text) }
        case .constant, .exists, .test, .same: break
        }
    }
}

extension JSON {
    fileprivate func isComparable(by comparison: Condition.Comparison) -> Bool {
        switch comparison {
        case .equal, .notEqual: return isValue
        case .among, .notAmong: return array?.allSatisfy(\.isValue) == true
        case .greater, .greaterOrEqual, .less, .lessOrEqual: return isValue && isLess(than: self) != nil
        }
    }

    /// `true` if no part is an object of its own.
    private var isValue: Bool { array.map { $0.allSatisfy(\.isValue) } ?? (members == nil || ExtendedForm(self) != nil) }
}
