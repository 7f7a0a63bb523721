import SluiceCore
import SluicePorts
import SluiceValues
import Testing

@Suite struct `Rules about a write` {
    private static let shared = """
        [{"name": "collaborator", "apply_when": true, "read": true, "write": true, "document_filters": {"read": true, "write": true},
          "fields": {"owner_id": {"immutable": true}},
          "check_write": {"%or": [{"%%prevRoot.owner_id": "%%user.id"}, {"%%prevRoot": {"$exists": false}},
                                  {"%%root.collaborators": "%%prevRoot.collaborators"}],
                          "%%prevRoot.team": {"$ne": "closed"}}}]
        """

    private func verdict(
        _ roles: String, before: [String: Value]?, after: [String: Value]?, user asking: UserContext = user("ann")
    ) async throws -> WriteVerdict {
        let operation: SluiceCore.Operation = before == nil ? .insert : after == nil ? .delete : .update
        let writes = [ProposedWrite(type: App.task, operation: operation, before: before, after: after)]
        return try #require(try await App(roles: roles).verdicts(on: writes, by: asking).first)
    }

    private func rule(_ verdict: WriteVerdict) -> String? { if case .deny(_, let rule, _) = verdict { rule } else { nil } }

    @Test func `an immutable field is set in a new object and never changed`() async throws {
        let bob: [String: Value] = ["owner_id": .string("bob"), "collaborators": .list([.string("ann")])]
        #expect(try await verdict(Self.shared, before: nil, after: bob) == .allow)
        let renamed = bob.merging(["title": .string("x")]) { $1 }
        #expect(try await verdict(Self.shared, before: bob, after: renamed) == .allow)
        let denial = WriteVerdict.deny(
            reason: "Field owner_id of Task cannot be changed any more; the write was undone.",
            rule: "plugin AppServicesRules, role collaborator, fields.owner_id.immutable", fields: ["owner_id"])
        for value: Value in [.string("ann"), .null] {
            let taken = bob.merging(["owner_id": value]) { $1 }
            #expect(try await verdict(Self.shared, before: bob, after: taken) == denial)
        }
        let nobody: [String: Value] = ["owner_id": .null]
        #expect(try await verdict(Self.shared, before: nobody, after: ["owner_id": .string("ann")]) == denial, "null has been set, too")
    }

    @Test func `a field that is written anew with what it has is not changed`() async throws {
        let roles = #"""
            [{"name": "r", "apply_when": true, "write": true, "document_filters": {"read": true, "write": true},
              "additional_fields": {"immutable": true}, "fields": {"title": {"read": true}}}]
            """#
        let row: [String: Value] = [
            "size": .int(3), "account": .double(.nan), "collaborators": .list([.string("a"), .null]), "title": .string("x"),
            "place": .dictionary(["city": .string("Oslo"), "street": .null]), "day": .timestamp(Timestamp(milliseconds: 5)),
        ]
        let after = row.merging(["title": .string("y")]) { $1 }
        #expect(try await verdict(roles, before: row, after: after) == .allow)
        let moved = row.merging(["place": .dictionary(["city": .string("Rome"), "street": .null])]) { $1 }
        #expect(rule(try await verdict(roles, before: row, after: moved)) == "plugin AppServicesRules, role r, fields.place.immutable")
    }

    @Test func `a check sees both documents, and a refusal names the clause`() async throws {
        let row: [String: Value] = ["owner_id": .string("bob"), "collaborators": .list([.string("ann")]), "team": .null]
        let added = row.merging(["collaborators": .list([.string("ann"), .string("eve")])]) { $1 }
        let refused = try await verdict(Self.shared, before: row, after: added)
        guard case .deny(let reason, let rule, _) = refused else { throw Unexpected() }
        #expect(reason == "Not allowed to change Task in this way; the write was undone.")
        #expect(rule.hasPrefix(#"plugin AppServicesRules, role collaborator, check_write, not met: {"%or":"#), "\(rule)")
        #expect(!rule.contains("closed"), "the other clause is met")
        #expect(try await verdict(Self.shared, before: row, after: added, user: user("bob")) == .allow, "the owner may")

        let closed = row.merging(["team": .string("closed")]) { $1 }
        let late = try await verdict(Self.shared, before: closed, after: closed)
        #expect(self.rule(late)?.hasSuffix(#"not met: {"%%prevRoot.team":{"$ne":"closed"}}"#) == true, "\(late)")
    }

    private struct Unexpected: Error {}

    @Test(arguments: [
        (#""507f1f77bcf86cd799439011""#, true), (#"{"$oid": "507f1f77bcf86cd799439011"}"#, true), (#""507f1f77bcf86cd799439012""#, false),
        (#""x""#, false), ("null", false),
    ])
    func `custom data meet a field of a written object by its type`(custom: String, isAllowed: Bool) async throws {
        let row: [String: Value] = ["ref": .objectId(try #require(ObjectIdentifierBytes(hex: "507f1f77bcf86cd799439011")))]
        let asking = user("ann", #"{"v": \#(custom)}"#)
        for condition in [#""insert": {"ref": "%%user.custom_data.v"}"#, #""check_write": {"%%root.ref": "%%user.custom_data.v"}"#] {
            let roles = """
                [{"name": "r", "apply_when": true, "document_filters": {"read": true, "write": true}, "read": true, "write": true,
                  "insert": true, \(condition)}]
                """
            let roleOfInsert = roles.replacing(#""insert": true, "insert""#, with: #""insert""#)
            #expect((try await verdict(roleOfInsert, before: nil, after: row, user: asking) == .allow) == isAllowed, "\(condition)")
        }
    }

    @Test(arguments: [
        // What a document lacks is null, and of one that is not there everything is.
        (#"{"%%root.team": "%%prevRoot.team"}"#, [true, true, true]),
        (#"{"%%prevRoot": {"$exists": false}}"#, [true, false, false]), (#"{"%%root": {"$exists": true}}"#, [true, true, false]),
        (#"{"%%root.size": {"$gt": "%%prevRoot.size"}}"#, [false, true, false]),
        (#"{"%%user.id": {"$in": "%%prevRoot.collaborators"}}"#, [false, true, true]),
        (#"{"%%root.collaborators": "%%user.id"}"#, [true, true, false]),
        (#"{"%%root.place.city": "%%prevRoot.place.city"}"#, [false, true, false]),
        (#"{"%%root.team": {"$exists": false}}"#, [true, true, true]),
        // What is not known of the user lets nobody write.
        (#"{"%%root.team": "%%user.custom_data.team"}"#, [false, false, false]),
        (#"{"%not": {"%%root.team": "%%user.custom_data.team"}}"#, [false, false, false]),
        ("false", [false, false, false]), ("true", [true, true, true]), (#""%%true""#, [true, true, true]),
    ])
    func `are evaluated for an insert, an update and a delete`(check: String, allowed: [Bool]) async throws {
        let roles = """
            [{"name": "r", "apply_when": true, "write": true, "document_filters": {"read": true, "write": true}, "check_write": \(check)}]
            """
        let before: [String: Value] = [
            "size": .int(1), "team": .null, "collaborators": .list([.string("ann")]), "place": .dictionary(["city": .string("Oslo")]),
        ]
        let after = before.merging(["size": .int(2)]) { $1 }
        let verdicts = [
            try await verdict(roles, before: nil, after: after), try await verdict(roles, before: before, after: after),
            try await verdict(roles, before: before, after: nil),
        ]
        #expect(verdicts.map { $0 == .allow } == allowed, "\(verdicts)")
    }

    @Test func `are asked for only where the role has some`() async throws {
        #expect(try await App(roles: Self.shared).task(for: user("ann")).checkWrite)
        let plain = App.filters(read: "true", write: "true", more: #", "fields": {"title": {"immutable": false}}"#)
        #expect(try await !plain.task(for: user("ann")).checkWrite)
        let reader = App.filters(read: "true", write: "true", more: #", "write": false, "check_write": true"#)
        #expect(await reader.refusal?.contains("is given twice") == true)
    }

    @Test func `deny where no role applies any more`() async throws {
        let roles = Self.shared.replacing(#""apply_when": true"#, with: #""apply_when": {"%%user.id": "bob"}"#)
        let refused = try await verdict(roles, before: nil, after: ["owner_id": .string("ann")])
        #expect(rule(refused) == "plugin AppServicesRules, no role")
    }

    @Test(arguments: [
        (#""check_write": {"owner_id": "x"}"#, "check_write: field owner_id is to be %%root.owner_id or %%prevRoot.owner_id"),
        (#""check_write": {"%%this": "x"}"#, "check_write: %%this is not available in sync"),
        (#""check_write": {"%function": {"name": "f"}}"#, "check_write: %function \"f\" is not available in sync"),
    ])
    func `that cannot be meant make the role deny`(members: String, reason: String) async throws {
        let app = App.filters(read: "true", write: "true", more: ", " + members)
        let plan = try await app.task(for: user("ann"))
        #expect(plan.write == "FALSEPREDICATE" && plan.role.contains(reason), "\(plan.role)")
        #expect(try await app.warnings.contains { $0.contains(reason) })
    }

    @Test(arguments: [
        (#""check_writes": true"#, #"unknown key "check_writes"; did you mean "check_write"?"#),
        (#""fields": {"title": {"imutable": true}}"#, #"unknown key "imutable"; did you mean "immutable"?"#),
        (#""fields": {"title": {"immutable": "yes"}}"#, #""immutable" of "title" is not true or false"#),
        (#""fields": {"place": {"read": true, "fields": {"city": {"immutable": true}}}}"#, #"unknown key "immutable""#),
        (#""check_write": {"%%rot.title": 1}"#, #"did you mean "%%root"?"#), (#""check_write": 3"#, "an expression is true, false or"),
    ])
    func `that are misspelt are refused`(members: String, text: String) async {
        let message = await App.filters(read: "true", write: "true", more: ",\n" + members).refusal ?? "not refused"
        #expect(message.contains(text) && message.contains("\(App.rulesPath) line 2"), "\(message)")
    }
}
