package import SluiceCore
package import SluiceValues

/// A change of a row, as database triggers receive it: App Services' change event.
package struct ChangeEvent: Hashable, Sendable {
    package enum Operation: String, Hashable, Sendable, CaseIterable {
        case insert, update, delete
    }

    package var operation: Operation
    package var position: Position
    /// The commit time, in microseconds since 1970.
    package var microseconds: Int64
    /// The primary key, in extended JSON.
    package var key: JSON
    /// The members of the row before the change; nil for an insert. Each property has one, which is null without a value.
    package var before: [JSON.Member]?
    /// The members of the row after the change, in the order of `before`; nil for a delete.
    package var after: [JSON.Member]?

    package init(
        _ operation: Operation, at position: Position, microseconds: Int64, key: JSON, before: [JSON.Member]?, after: [JSON.Member]?
    ) {
        self.operation = operation
        self.position = position
        self.microseconds = microseconds
        self.key = key
        self.before = before
        self.after = after
    }

    /// The properties that an update changed, with their new values.
    package var updatedFields: [JSON.Member] {
        guard let after, let before else { return [] }
        return zip(before, after).compactMap { old, new in old == new ? nil : new }
    }

    /// `true` for an update that changed nothing, of which App Services makes no event.
    package var isVoid: Bool { operation == .update && before == after }
}

/// The parts of an event that a trigger asks for, and the names of its collection.
package struct ChangeEventShape: Hashable, Sendable {
    package var database: String
    package var collection: String
    /// `true` if events of updates have the whole row. Those of inserts always have it.
    package var hasFullDocument = false
    /// `true` if events of updates and deletes have the row before the change.
    package var hasPreImage = false

    package init(database: String, collection: String) {
        self.database = database
        self.collection = collection
    }

    /// Returns the event in extended JSON.
    func json(_ event: ChangeEvent) -> JSON {
        var members: [JSON.Member] = [
            .init("_id", ["_data": .string(event.position.description)]), .init("operationType", .string(event.operation.rawValue)),
            .init("clusterTime", ["$timestamp": ["t": .int(event.microseconds / 1_000_000), "i": 1]]),
            .init("wallTime", ExtendedForm.timestamp(Timestamp(milliseconds: event.microseconds / 1_000)).json),
            .init("ns", ["db": .string(database), "coll": .string(collection)]), .init("documentKey", ["_id": event.key]),
        ]
        if let after = event.after, event.operation == .insert || hasFullDocument { members.append(.init("fullDocument", .object(after))) }
        if let before = event.before, hasPreImage { members.append(.init("fullDocumentBeforeChange", .object(before))) }
        if event.operation == .update {
            members.append(.init("updateDescription", ["updatedFields": .object(event.updatedFields), "removedFields": []]))
        }
        return .object(members)
    }
}
