import Foundation
import SluiceCore
import SluicePostgres
import SluiceValues
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite(.serialized, .timeLimit(.minutes(5))) struct `sluice token` {
    private struct Ran {
        var code: Program.Ending
        var out: [String]
        var err: String
    }

    private static func run(_ server: DevelopmentServer, _ app: String, _ words: [String]) async throws -> Ran {
        let program = try Program("sluice", ["token", "--app", app, "--postgres", server.postgres] + words)
        let lines = await program.remainingLines() ?? []
        return Ran(code: await program.end(), out: lines, err: program.said)
    }

    private static func status(_ path: String, _ method: String, _ server: DevelopmentServer, token: String? = nil) async throws -> Int? {
        var request = URLRequest(url: try #require(URL(string: path)))
        request.httpMethod = method
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        return (try await URLSession.shared.data(for: request).1 as? HTTPURLResponse)?.statusCode
    }

    /// Returns the second part of a token.
    private static func claims(_ token: String) throws -> JSON {
        var part = String(token.split(separator: ".")[1]).replacing("-", with: "+").replacing("_", with: "/")
        part += String(repeating: "=", count: (4 - part.count % 4) % 4)
        return try JSON.parse(Array(try #require(Data(base64Encoded: part))))
    }

    @Test func `prints a token that the gateway accepts, alone, and the audit log has its issue`() async throws {
        let folder = try DataFolder()
        let app = try folder.app().path
        let server = try await DevelopmentServer.start(folder, ["--app", app])
        let email = server.users[0].email
        let made = try await Self.run(server, app, ["--email", email, "--ttl", "600", "--claims", #"{"team": "red"}"#])
        #expect(made.code == .exit(0) && made.out.count == 1 && made.err.isEmpty, "\(made)")
        let token = try #require(made.out.first)
        let claims = try Self.claims(token)
        #expect(claims["user_data"]?["team"] == "red" && claims["typ"] == "access")
        #expect((claims["exp"]?.int ?? 0) - (claims["iat"]?.int ?? 0) == 600)
        let profile = server.url + "/api/client/v2.0/auth/profile"
        #expect(try await Self.status(profile, "GET", server, token: token) == 200)
        #expect(try await Self.status(profile, "GET", server, token: token + "x") == 401)

        let id = try #require(claims["sub"]?.string)
        let entry = try await server.sql("SELECT actor, action, subject, after FROM sluice.admin_audit WHERE action = 'sluice token'")
        #expect(entry.count == 1 && entry[0, 0] == "database role sluice_gateway" && entry[0, 2] == "access token of user \(id)")
        #expect(try JSON.parse(entry[0, 3] ?? "") == ["seconds": 600])
        // The stored custom data are as before.
        #expect(try await server.sql("SELECT custom_data ? 'team' FROM sluice.user_account WHERE id = '\(id)'").bool(0, 0) == false)

        #expect(try await Self.status("\(server.adminURL)/admin/v1/users/\(id)/disable", "PUT", server) == 204)
        let disabled = try await Self.run(server, app, ["--user", id])
        #expect(disabled.code == .exit(1) && disabled.out.isEmpty && disabled.err.contains("is disabled"), "\(disabled)")
        #expect(await server.stop() == .exit(0), "\(server.program.said)")
    }

    @Test func `refuses what it cannot issue, with the fix`() async throws {
        let folder = try DataFolder()
        let app = try folder.app().path
        let server = try await DevelopmentServer.start(folder, ["--app", app])
        let email = ["--email", server.users[0].email]
        let cases: [(words: [String], code: Int32, text: String)] = [
            ([], 78, "Pass --user or --email."), (email + ["--user", "1"], 78, "Two users are named."),
            (email + ["--ttl", "59"], 78, "Give 60 to 86400."), (email + ["--ttl", "86401"], 78, "Give 60 to 86400."),
            (email + ["--claims", "[1]"], 78, "no JSON object"), (email + ["--claims", "{"], 78, "no JSON"),
            (email + ["--claims", #"{"a": "\#(String(repeating: "x", count: 17_000))"}"#], 78, "over the limit of 16384"),
            (["--email", "nobody@example.com"], 1, "User nobody@example.com does not exist."),
        ]
        for (words, code, text) in cases {
            let ran = try await Self.run(server, app, words)
            #expect(ran.code == .exit(code) && ran.out.isEmpty && ran.err.contains(text), "\(words.first ?? ""): \(ran)")
        }
        #expect(try await server.sql("SELECT count(*) FROM sluice.admin_audit WHERE action = 'sluice token'").int(0, 0) == 0)
        #expect(await server.stop() == .exit(0), "\(server.program.said)")
    }
}
