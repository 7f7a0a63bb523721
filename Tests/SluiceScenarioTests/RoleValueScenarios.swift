import GatewayTestSupport
import SluiceCore
import SluiceValues
import Testing

/// What roles may name besides the user's own data: who logs in, and the app's values.
@Suite(.timeLimit(.minutes(5))) struct `Values that roles name` {
    private static func fill(_ gateway: RunningGateway, _ name: String) async throws {
        try await gateway.sql("INSERT INTO \"\(name)\" (_id, owner_id, team) VALUES ('r', 'x', 'red'), ('b', 'x', 'blue')")
    }

    @Test func `the account of a server key is of another type than those of end users`() async throws {
        let server = NoteApp.role("server", when: #"{ "%%user.type": "server" }"#)
        let others = NoteApp.role("others", when: #"{ "%%user.type": { "$ne": "server" } }"#, read: #"{ "team": "red" }"#, write: "false")
        try await NoteApp.with(["Note": "[\(server), \(others)]"]) { gateway in
            try await Self.fill(gateway, "Note")
            let made = try await gateway.request("POST", "/admin/v1/api_keys", #"{"name": "pipeline"}"#, admin: true)
            let key = try #require(made.json["key"]?.string, "\(made)")
            let login = try await gateway.request(
                "POST", "/api/client/v2.0/app/\(gateway.app)/auth/providers/api-key/login", #"{"key": "\#(key)"}"#
            ).json
            let account = RunningGateway.Account(
                id: try #require(login["user_id"]?.string, "\(login)"), refreshToken: "", token: login["access_token"]?.string ?? "")
            #expect(try await gateway.noteSession(account, ["Note"]).keys("Note") == ["r", "b"])
            #expect(try await gateway.noteSession(try await gateway.account(), ["Note"]).keys("Note") == ["r"])
        }
    }

    @Test func `a value may stand for a secret, and denies who needs it where the export lacks that`() async throws {
        let role = NoteApp.role("team", read: #"{ "team": "%%values.team" }"#, write: #"{ "team": "%%values.team" }"#)
        var files = NoteApp.files(["Note": "[\(role)]", "Open": "[\(NoteApp.role("all"))]"])
        files["values/team.json"] = #"{ "name": "team", "value": "teamSecret", "from_secret": true }"#
        let without = files
        files["secrets.json"] = #"{ "teamSecret": "blue" }"#
        try await RunningGateway.deploy(NoteApp.tables(["Note", "Open"])) { [files] deployment in
            try await deployment.run(files) { gateway in
                try await Self.fill(gateway, "Note")
                try await Self.fill(gateway, "Open")
                let session = try await gateway.noteSession(try await gateway.account(), ["Note", "Open"])
                #expect(session.keys("Note") == ["b"] && session.keys("Open") == ["r", "b"])
            }
            try await deployment.run(without) { gateway in
                let session = try await gateway.noteSession(try await gateway.account(), ["Note", "Open"])
                #expect(session.keys("Note").isEmpty && session.keys("Open") == ["r", "b"])
            }
        }
    }
}
