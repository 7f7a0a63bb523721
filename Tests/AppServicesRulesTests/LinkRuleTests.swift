import SluiceCore
import SluicePorts
import SluiceQuery
import SluiceValues
import Testing

/// Links in roles. App Services stored a link as the key of its target, and compared it as such.
@Suite struct `A link in a role` {
    private static let parent = "507f1f77bcf86cd799439011"

    /// Filters of Task, their queries, and whether they hold for `rows`.
    static let filters: [(filter: String, query: String, holds: [Bool])] = [
        (#"{"note": "%%user.id"}"#, #"note == obj("Note", "ann")"#, [true, false, false]),
        (#"{"note": {"$ne": "ann"}}"#, #"note != obj("Note", "ann")"#, [false, true, true]),
        (#"{"note": {"$in": ["ann", "eve"]}}"#, #"note == obj("Note", "ann") OR note == obj("Note", "eve")"#, [true, false, false]),
        (
            #"{"note": {"$nin": ["ann", "eve"]}}"#, #"NOT (note == obj("Note", "ann") OR note == obj("Note", "eve"))"#,
            [false, true, true]
        ),
        (#"{"note": {"$exists": true}}"#, "note != NULL", [true, true, false]), (#"{"note": null}"#, "note == NULL", [false, false, true]),
        (#"{"notes": "%%user.id"}"#, #"ANY notes == obj("Note", "ann")"#, [false, true, false]),
        (
            #"{"notes": {"$all": ["ann", "bob"]}}"#, #"ANY notes == obj("Note", "ann") AND ANY notes == obj("Note", "bob")"#,
            [false, true, false]
        ),
        (#"{"parent": {"$oid": "\#(parent)"}}"#, #"parent == obj("Task", oid(\#(parent)))"#, [true, false, false]),
        // Plain JSON has ObjectIds as text.
        (#"{"parent": "%%user.custom_data.parent"}"#, #"parent == obj("Task", oid(\#(parent)))"#, [true, false, false]),
        (#"{"parent": {"%stringToOid": "\#(parent)"}}"#, #"parent == obj("Task", oid(\#(parent)))"#, [true, false, false]),
        // A value of another type than the key.
        (#"{"parent": "%%user.id"}"#, "FALSEPREDICATE", [false, false, false]),
    ]

    private static func rows() throws -> [[String: Value]] {
        let id = Value.objectId(try #require(ObjectIdentifierBytes(hex: parent)))
        return [
            ["note": .string("ann"), "parent": id, "notes": .list([])],
            ["note": .string("bob"), "parent": .null, "notes": .list([.string("bob"), .string("ann")])],
            ["note": .null, "parent": .null, "notes": .list([])],
        ]
    }

    @Test(arguments: filters)
    func `is compared by the key of its target, in filters and about a write alike`(
        test: (filter: String, query: String, holds: [Bool])
    ) async throws {
        let asking = user("ann", #"{"parent": "\#(Self.parent)"}"#)
        #expect(try await App.query(test.filter, for: asking) == test.query)
        let predicate = try Query.parse(test.query).predicate(on: App.task, in: App.schema)
        let rows = try Self.rows()
        let found = rows.map { values in
            predicate.matches(values)
        }
        #expect(found == test.holds)
        let role =
            #"[{"name": "r", "apply_when": {}, "read": true, "write": true, "insert": \#(test.filter), "#
            + #""document_filters": {"read": true, "write": true}}]"#
        let writes = rows.map { ProposedWrite(type: App.task, operation: .insert, before: nil, after: $0) }
        #expect(try await App(roles: role).verdicts(on: writes, by: asking).map { $0 == .allow } == test.holds)
    }

    @Test func `has no order, which is said, and the role denies`() async throws {
        let warnings = try await App.filters(read: #"{"note": {"$gt": "ann"}}"#, write: "false").warnings
        #expect(warnings.contains { $0.contains("note is a link to Note, which has no order") }, "\(warnings)")
    }

    @Test func `is not compared with a value of another type than the key`() async throws {
        let warnings = try await App.filters(read: #"{"note": 3}"#, write: "false").warnings
        #expect(warnings.contains { $0.contains("note is string and is compared with a number") }, "\(warnings)")
    }
}
