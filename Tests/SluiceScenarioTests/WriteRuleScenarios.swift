import GatewayTestSupport
import SluiceCore
import SluiceWire
import Testing

/// What a role says about single writes, with both documents at hand, as sessions of users meet it.
@Suite(.timeLimit(.minutes(5))) struct `Roles about writes` {
    private static let shared = #"{ "$or": [{ "owner_id": "%%user.id" }, { "collaborators": "%%user.id" }] }"#

    private static let roles = """
        [{
            "name": "collaborator", "apply_when": {}, "document_filters": { "read": \(shared), "write": \(shared) },
            "read": true, "write": true, "insert": true, "delete": true, "fields": { "owner_id": { "immutable": true } },
            "check_write": {
                "%or": [
                    { "%%prevRoot": { "$exists": false } }, { "%%prevRoot.owner_id": "%%user.id" },
                    { "%%root.collaborators": "%%prevRoot.collaborators" }
                ]
            }
        }]
        """

    @Test func `keep a collaborator from taking an object over, and from inviting others`() async throws {
        try await NoteApp.with(["Note": Self.roles]) { gateway in
            let (ann, bob) = (try await gateway.account(), try await gateway.account())
            let owner = try await gateway.noteSession(ann, ["Note"])
            let made: [String: Value] = [
                "owner_id": .string(ann.id), "team": .string("red"), "collaborators": .list([.string(bob.id)]),
            ]
            // One for each refusal: a device writes an object again once it has heard of it.
            for (number, key) in [(UInt64(1), "n"), (2, "m"), (3, "o")] {
                #expect(try await !owner.isRefused(number, NoteApp.change("Note", key, made, .create)))
            }
            let session = try await gateway.noteSession(bob, ["Note"])
            #expect(session.keys("Note") == ["m", "n", "o"])

            #expect(try await session.isRefused(1, NoteApp.change("Note", "n", ["owner_id": .string(bob.id)])))
            #expect(
                session.compensations.last?.error.message == "Field owner_id of Note cannot be changed any more; the write was undone.")
            #expect(session.compensations.last?.fields == ["owner_id"] && session.compensations.last?.cause == .plugin)
            #expect(session.rows["Note"]?[.string("n")]?["owner_id"] == .string(ann.id))
            let more: Value = .list([.string(bob.id), .string("eve")])
            #expect(try await session.isRefused(2, NoteApp.change("Note", "m", ["collaborators": more])))
            #expect(
                session.compensations.last?.error.message
                    == "Not allowed to change Note in this way; the write was undone.")
            for (rule, count) in [
                ("plugin AppServicesRules, role collaborator, fields.owner_id.immutable", 1),
                (#"plugin AppServicesRules, role collaborator, check_write, not met: {"%or":%"#, 1),
            ] {
                let query = "SELECT count(*) FROM sluice.rejected_write WHERE rule LIKE '\(rule)'"
                #expect(try await gateway.eventually(query, is: Int64(count)))
            }

            // What is left to a collaborator, and what is the owner's.
            #expect(try await !session.isRefused(3, NoteApp.change("Note", "o", ["text": .string("by bob")])))
            #expect(try await !owner.isRefused(4, NoteApp.change("Note", "o", ["collaborators": more])))
            #expect(try await owner.isRefused(5, NoteApp.change("Note", "o", ["owner_id": .string(bob.id)])), "nobody changes it")
            let kept =
                "SELECT count(*) FROM \"Note\" WHERE _id = 'o' AND owner_id = '\(ann.id)' AND text = 'by bob' AND 'eve' = ANY (collaborators)"
            #expect(try await gateway.count(kept) == 1)
            for session in [owner, session] { session.close() }
        }
    }

    @Test func `let users make and delete what is theirs, and change what is not`() async throws {
        let role = """
            [{
                "name": "member", "apply_when": {}, "document_filters": { "read": true, "write": true }, "read": true, "write": true,
                "insert": { "owner_id": "%%user.id" }, "delete": { "owner_id": "%%user.id", "team": { "$ne": "kept" } }
            }]
            """
        try await NoteApp.with(["Note": role]) { gateway in
            let ann = try await gateway.account()
            try await gateway.sql("INSERT INTO \"Note\" (_id, owner_id, team) VALUES ('c', 'bob', 'red'), ('d', '\(ann.id)', 'kept')")
            let session = try await gateway.noteSession(ann, ["Note"])
            func made(_ owner: String) -> [String: Value] { ["owner_id": .string(owner), "team": .string("red")] }
            #expect(try await !session.isRefused(1, NoteApp.change("Note", "a", made(ann.id), .create)))
            #expect(try await session.isRefused(2, NoteApp.change("Note", "b", made("bob"), .create)))
            #expect(session.compensations.last?.error.message == "Not allowed to create this Note; the write was undone.")
            #expect(try await !session.isRefused(3, NoteApp.change("Note", "c", ["text": .string("by ann")])))
            #expect(try await session.isRefused(4, NoteApp.change("Note", "c", [:], .delete)))
            #expect(try await session.isRefused(5, NoteApp.change("Note", "d", [:], .delete)))
            #expect(try await !session.isRefused(6, NoteApp.change("Note", "a", [:], .delete)))
            let (kept, all) = (
                try await gateway.count("SELECT count(*) FROM \"Note\" WHERE _id IN ('c', 'd')"),
                try await gateway.count("SELECT count(*) FROM \"Note\"")
            )
            #expect((kept, all) == (2, 2))
            let rules = "SELECT count(*) FROM sluice.rejected_write WHERE rule IN ('plugin AppServicesRules, role member, "
            #expect(try await gateway.eventually(rules + "insert', 'plugin AppServicesRules, role member, delete')", is: 3))
            session.close()
        }
    }
}
