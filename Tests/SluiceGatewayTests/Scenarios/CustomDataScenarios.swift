import SluiceCore
import Testing

/// Users' custom data that are objects of the app themselves.
@Suite(.timeLimit(.minutes(5))) struct `Custom data in a class of the app` {
    @Test func `decide what a user sees, and what is written to them applies to open sessions`() async throws {
        let member = NoteApp.role("member", read: #"{ "team": "%%user.custom_data.text" }"#, write: "false")
        var files = NoteApp.files(["Note": "[\(member)]", "Member": "[\(NoteApp.role("all"))]"])
        files["auth/custom_user_data.json"] = #"""
            {
                "enabled": true, "mongo_service_name": "postgres", "database_name": "public", "collection_name": "Member",
                "user_id_field": "owner_id"
            }
            """#
        try await RunningGateway.deploy(NoteApp.tables(["Note", "Member"])) { [files] deployment in
            try await deployment.run(files) { gateway in
                try await gateway.sql("INSERT INTO \"Note\" (_id, owner_id, team) VALUES ('r', 'x', 'red'), ('b', 'x', 'blue')")
                let account = try await gateway.account()
                let session = try await gateway.noteSession(account, ["Note", "Member"])
                #expect(session.keys("Note").isEmpty)
                // The user joins a team by an object of the app.
                let joined = NoteApp.change(
                    "Member", "m", ["owner_id": .string(account.id), "team": .string("members"), "text": .string("red")], .create)
                #expect(try await !session.isRefused(1, joined))
                try await session.receive { $0.keys("Note") == ["r"] }
                try await gateway.sql("UPDATE \"Member\" SET text = 'blue'")
                try await session.receive { $0.keys("Note") == ["b"] }
                try await gateway.sql("DELETE FROM \"Member\"")
                try await session.receive { $0.keys("Note").isEmpty }
                #expect(session.error == nil)
            }
        }
    }
}
