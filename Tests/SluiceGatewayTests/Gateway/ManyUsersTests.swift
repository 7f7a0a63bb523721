import GatewayTestSupport
import SluiceCore
import SluiceWire
import Testing

/// What concerns one user costs the sessions of others nothing.
@Suite(.timeLimit(.minutes(5))) struct `Many users` {
    @Test func `whose data are changed at once disturb nobody else, and each of them has what follows`() async throws {
        let member = NoteApp.role("member", read: #"{ "team": "%%user.custom_data.team" }"#, write: "false")
        try await NoteApp.with(["Note": "[\(member)]"]) { gateway in
            try await gateway.sql(#"INSERT INTO "Note" (_id, owner_id, team) VALUES ('r', 'x', 'red'), ('b', 'x', 'blue')"#)
            try await gateway.sql(
                "INSERT INTO sluice.user_account (id, provider) SELECT 'u' || i, 'anon-user' FROM generate_series(1, 20000) i")
            let red = #"{ "team": "red" }"#
            let other = try await gateway.noteSession(try await gateway.account(customData: red), ["Note"])
            let one = try await gateway.account(customData: red)
            let changed = try await gateway.noteSession(one, ["Note"])
            #expect(other.keys("Note") == ["r"] && changed.keys("Note") == ["r"])
            try await gateway.sql(
                """
                UPDATE sluice.user_account SET custom_data = '{ "team": "blue" }' WHERE id LIKE 'u%' OR id = '\(one.id)'
                """)
            try await changed.receive { $0.keys("Note") == ["b"] }
            try await gateway.sql(#"INSERT INTO "Note" (_id, owner_id, team) VALUES ('r2', 'x', 'red')"#)
            try await other.receive { $0.keys("Note") == ["r", "r2"] }
            #expect(other.bootstraps == 1 && other.error == nil && changed.error == nil)
            other.close()
            changed.close()
        }
    }

    /// AUTH-5: at once, whatever has happened to others before.
    @Test func `whose plugin takes its time over the data of each keep nobody who is disabled`() async throws {
        try await RunningGateway.with(files: try `What waits for a plugin`.files()) { gateway in
            try await gateway.sql(
                "INSERT INTO sluice.user_account (id, provider) SELECT 'u' || i, 'anon-user' FROM generate_series(1, 2500) i")
            let account = try await gateway.account()
            let session = try await gateway.session(token: account.token)
            try await session.hello(["Order"])
            // A sixth of a second each: the plugin is called for more than six minutes.
            try await gateway.sql(#"UPDATE sluice.user_account SET custom_data = '{ "word": "do-slow" }' WHERE id LIKE 'u%'"#)
            try await gateway.sql("UPDATE sluice.user_account SET disabled = true WHERE id = '\(account.id)'")
            try await session.receive(within: 120) { $0.error != nil }
            #expect(session.error?.error.code == .userDisabled)
            session.close()
        }
    }
}
