import GatewayTestSupport
import SluiceCore
import SluiceWire
import Testing

/// Plugins that ship with the gateway, beside roles, as devices find them.
@Suite(.timeLimit(.minutes(3))) struct `Shipped plugins behind a gateway` {
    private static let rows = """
        INSERT INTO "Note" (_id, owner_id, team, text, secret) VALUES
            ('a', 'x', 'red', 't', '1'), ('b', 'x', 'red', 'u', '2'), ('c', 'x', 'blue', 't', '1')
        """

    private static func with(
        _ plugin: String, _ config: String, role: String, _ body: @escaping @Sendable (RunningGateway) async throws -> Void
    ) async throws {
        var files = NoteApp.files(["Note": "[\(role)]"], queryable: ["secret"])
        files["plugins.json"] = #"{ "plugins": [{ "file": "lib\#(plugin).so", "config": \#(config) }] }"#
        try await RunningGateway.deploy(NoteApp.tables(["Note"])) { [files] deployment in
            try await deployment.run(files) { gateway in
                try await gateway.sql(rows)
                try await body(gateway)
            }
        }
    }

    @Test func `FieldRedaction: what it hides comes in no row, selects none and cannot be written, beside what roles leave`() async throws {
        let team = #"{ "team": "%%user.custom_data.team" }"#
        let role = NoteApp.role("member", read: team, write: team)
        let config = #"{ "hide": { "Note": ["secret"] }, "except": "isChief" }"#
        try await Self.with("FieldRedaction", config, role: role) { gateway in
            let clerk = try await gateway.noteSession(try await gateway.account(customData: #"{ "team": "red" }"#), ["Note"])
            let chief = try await gateway.noteSession(
                try await gateway.account(customData: #"{ "team": "red", "isChief": true }"#), ["Note"])
            for session in [clerk, chief] { #expect(session.keys("Note") == ["a", "b"]) }
            let key = Value.string("a")
            #expect(clerk.rows["Note"]?[key]?["text"] == .string("t") && clerk.rows["Note"]?[key]?["secret"] == nil)
            #expect(chief.rows["Note"]?[key]?["secret"] == .string("1"))
            // Nor with what changes.
            try await gateway.sql(#"UPDATE "Note" SET secret = '3', text = 'v' WHERE _id = 'a'"#)
            for session in [clerk, chief] { try await session.receive { $0.rows["Note"]?[key]?["text"] == .string("v") } }
            #expect(clerk.rows["Note"]?[key]?["secret"] == nil && chief.rows["Note"]?[key]?["secret"] == .string("3"))

            #expect(try await clerk.isRefused(1, NoteApp.change("Note", "a", ["secret": .string("mine")])))
            #expect(clerk.compensations.last?.cause == .fields && clerk.compensations.last?.fields == ["secret"])
            #expect(try await clerk.isRefused(2, NoteApp.change("Note", "a", ["text": .string("mine")])) == false)
            #expect(try await chief.isRefused(1, NoteApp.change("Note", "b", ["secret": .string("theirs")])) == false)
            #expect(try await gateway.texts(#"SELECT _id || text || secret FROM "Note" ORDER BY _id"#) == ["amine3", "butheirs", "ct1"])

            try await clerk.subscribe(2, [("Note", "secret == '3'")])
            try await chief.subscribe(2, [("Note", "secret == '3'")])
            #expect(clerk.keys("Note").isEmpty && chief.keys("Note") == ["a"])
            for session in [clerk, chief] { session.close() }
        }
    }

    @Test func `FreezeC: what is written to a frozen class is undone, and it is read on`() async throws {
        try await Self.with("FreezeC", #"{ "types": ["Note"] }"#, role: NoteApp.role("everybody")) { gateway in
            let session = try await gateway.noteSession(try await gateway.account(), ["Note"])
            #expect(session.keys("Note") == ["a", "b", "c"])
            let made: [String: Value] = ["owner_id": .string("x"), "team": .string("red")]
            for (number, change, cause) in [
                (1, NoteApp.change("Note", "new", made, .create), RejectionCause.insert),
                (2, NoteApp.change("Note", "a", ["text": .string("mine")]), .writeRule),
                (3, NoteApp.change("Note", "b", [:], .delete), .delete),
            ] as [(UInt64, ObjectChange, RejectionCause)] {
                #expect(try await session.isRefused(number, change))
                #expect(session.compensations.last?.cause == cause, "\(change)")
            }
            try await gateway.sql(#"UPDATE "Note" SET text = 'new' WHERE _id = 'c'"#)
            try await session.receive { $0.rows["Note"]?[.string("c")]?["text"] == .string("new") }
            #expect(try await gateway.texts(#"SELECT _id || text FROM "Note" ORDER BY _id"#) == ["at", "bu", "cnew"])
            #expect(session.error == nil)
            session.close()
        }
    }

    @Test func `FreezeC: an object that is closed stays as it is, by the plugin's own word`() async throws {
        let config = #"{ "types": ["Note"], "closed_field": "closed" }"#
        var files = NoteApp.files(["Note": "[\(NoteApp.role("everybody"))]"])
        let schema = ShopApp.table("Note", "schema")
        files[schema] = files[schema]?.replacing(#""secret": { "bsonType": "string" }"#, with: #""closed": { "bsonType": "bool" }"#)
        files["plugins.json"] = #"{ "plugins": [{ "file": "libFreezeC.so", "config": \#(config) }] }"#
        let table = NoteApp.tables(["Note"]).replacing("secret text", with: "closed boolean")
        try await RunningGateway.deploy(table) { [files] deployment in
            try await deployment.run(files) { gateway in
                try await gateway.sql(
                    #"INSERT INTO "Note" (_id, owner_id, team, closed) VALUES ('open', 'x', 'red', false), ('shut', 'x', 'red', true)"#)
                let session = try await gateway.noteSession(try await gateway.account(), ["Note"])
                let changes = [
                    NoteApp.change("Note", "open", ["closed": .bool(true)]), NoteApp.change("Note", "shut", ["closed": .bool(false)]),
                    NoteApp.change("Note", "shut", [:], .delete), NoteApp.change("Note", "open", ["text": .string("late")]),
                ]
                for (index, change) in changes.enumerated() {
                    #expect(try await session.isRefused(UInt64(index + 1), change) == (index > 0), "\(change)")
                }
                #expect(session.compensations.map(\.cause) == [.plugin, .plugin, .plugin])
                #expect(session.compensations.allSatisfy { $0.error.message.contains("It is closed, and stays as it is.") })
                let kept = "SELECT count(*) FROM sluice.rejected_write WHERE rule LIKE 'plugin FreezeC, closed_field%'"
                #expect(try await gateway.count(kept) == 3)
                #expect(
                    try await gateway.texts(#"SELECT _id || closed || coalesce(text, '') FROM "Note" ORDER BY _id"#) == [
                        "opentrue", "shuttrue",
                    ])
                session.close()
            }
        }
    }
}
