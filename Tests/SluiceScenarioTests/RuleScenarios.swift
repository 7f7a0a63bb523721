import GatewayTestSupport
import SluiceCore
import SluicePostgres
import SluiceWire
import TestSupport
import Testing

/// Which objects and fields a role gives, as sessions of users see it. The plugin AppServicesRules reads the roles.
@Suite(.timeLimit(.minutes(5))) struct `Roles of an app` {
    private static let everybody = NoteApp.role("everybody")

    @Test func `Scenario 22: the first role that applies counts, and default roles count only where a class has none`() async throws {
        let keeper = NoteApp.role(
            "keeper", when: #"{ "%%user.custom_data.team": { "%exists": true } }"#, read: Self.team, write: Self.team)
        let blind = NoteApp.role("blind", read: "false", write: "false")
        let boss = NoteApp.role("boss", when: #"{ "%%user.custom_data.isBoss": true }"#)
        let roles = ["Ordered": "[\(keeper), \(blind), \(Self.everybody)]", "Listed": "[\(boss)]", "Plain": ""]
        try await NoteApp.with(roles, defaults: "[\(Self.everybody)]") { gateway in
            for name in roles.keys {
                try await gateway.sql("INSERT INTO \"\(name)\" (_id, owner_id, team) VALUES ('r', 'x', 'red'), ('b', 'x', 'blue')")
            }
            let keeper = try await gateway.noteSession(try await gateway.account(customData: #"{ "team": "red" }"#), roles.keys.sorted())
            #expect(keeper.keys("Ordered") == ["r"] && keeper.keys("Listed").isEmpty && keeper.keys("Plain") == ["r", "b"])
            let nobody = try await gateway.noteSession(try await gateway.account(), roles.keys.sorted())
            #expect(nobody.keys("Ordered").isEmpty, "no falling through to a later role")
            #expect(nobody.keys("Listed").isEmpty, "no default role where there are others")
            #expect(nobody.keys("Plain") == ["r", "b"])
            let boss = try await gateway.noteSession(try await gateway.account(customData: #"{ "isBoss": true }"#), roles.keys.sorted())
            #expect(boss.keys("Ordered").isEmpty && boss.keys("Listed") == ["r", "b"])
            for session in [keeper, nobody, boss] { session.close() }
        }
    }

    @Test func `Scenario 23: a role that sync cannot have denies, and later ones are not tried`() async throws {
        let filters = #""document_filters": { "read": true, "write": true }"#
        let rest = #""insert": true, "delete": true"#
        let incompatible = [
            "NoFilters": #"{ "name": "a", "apply_when": {}, "read": true, "write": true, \#(rest) }"#,
            "NoReadFilter":
                #"{ "name": "a", "apply_when": {}, "document_filters": { "write": true }, "read": true, "write": true, \#(rest) }"#,
            "NoFilter": #"{ "name": "a", "apply_when": {}, "document_filters": { "read": true }, "read": true, "write": true, \#(rest) }"#,
            "NotQueryable": NoteApp.role("a", read: #"{ "secret": "x" }"#),
            "NotQueryableWrite": NoteApp.role("a", write: #"{ "secret": "x" }"#),
            "NotQueryableInsert": """
            {
                "name": "a", "apply_when": {}, \(filters), "read": true, "write": true, "insert": { "secret": "x" }, "delete": true
            }
            """,
            "NotQueryableDelete": """
            {
                "name": "a", "apply_when": {}, \(filters), "read": true, "write": true, "insert": true, "delete": { "secret": "x" }
            }
            """,
            "OtherExpansion": NoteApp.role("a", read: #"{ "owner_id": "%%request.remoteIPAddress" }"#),
            "Conditional": #"{ "name": "a", "apply_when": {}, \#(filters), "read": { "owner_id": "x" }, "write": true, \#(rest) }"#,
            "ConditionalWrite": #"{ "name": "a", "apply_when": {}, \#(filters), "read": true, "write": { "owner_id": "x" }, \#(rest) }"#,
            "FieldConditionWrite": """
            {
                "name": "a", "apply_when": {}, \(filters), "fields": { "text": { "read": true, "write": { "owner_id": "x" } } },
                "additional_fields": { "read": true, "write": true }, \(rest)
            }
            """,
            "FieldCondition": """
            {
                "name": "a", "apply_when": {}, \(filters), "fields": { "text": { "read": { "owner_id": "x" }, "write": true } },
                "additional_fields": { "read": true, "write": true }, \(rest)
            }
            """,
            "KeyField": """
            {
                "name": "a", "apply_when": {}, \(filters), "fields": { "_id": { "read": true, "write": true } },
                "additional_fields": { "read": true, "write": true }, \(rest)
            }
            """,
            "NeedsDocument": NoteApp.role("a", when: #"{ "owner_id": "%%user.id" }"#),
        ]
        var roles = incompatible.mapValues { "[\($0), \(Self.everybody)]" }
        roles["Fine"] = "[\(Self.everybody)]"
        let types = roles.keys.sorted()
        try await NoteApp.with(roles) { gateway in
            for name in types { try await gateway.sql("INSERT INTO \"\(name)\" (_id, owner_id, team) VALUES ('1', 'x', 'red')") }
            let session = try await gateway.noteSession(try await gateway.account(), types)
            for name in types { #expect(session.keys(name) == (name == "Fine" ? ["1"] : []), "\(name)") }
            for (number, name) in types.enumerated() {
                let isRefused = try await session.isRefused(
                    UInt64(number + 1), NoteApp.change(name, "2", ["owner_id": .string("x"), "team": .string("red")], .create))
                #expect(isRefused == (name != "Fine"), "\(name)")
            }
            session.close()
        }
    }

    private static let own = #"{ "owner_id": "%%user.id" }"#

    /// The roles that App Services' documentation gave for what apps wanted.
    private static let strategies = [
        "OwnOnly": "[\(NoteApp.role("own", read: own, write: own))]",
        "ReadAll": "[\(NoteApp.role("own", write: own))]",
        "Admins": """
        [\(NoteApp.role("admin", when: #"{ "%%user.custom_data.isGlobalAdmin": true }"#)), \(NoteApp.role("own", read: own, write: own))]
        """,
        "Feed": "[\(NoteApp.role("reader", read: #"{ "owner_id": { "$in": "%%user.custom_data.subscribedTo" } }"#, write: own))]",
        "Shared": "[\(NoteApp.role("both", read: shared, write: shared))]",
        "Tiered": """
        [\(NoteApp.role("lead", when: #"{ "%%user.custom_data.isTeamAdmin": true }"#, read: team, write: team)),
         \(NoteApp.role("member", read: team, write: own))]
        """,
    ]
    private static let shared = #"{ "$or": [{ "owner_id": "%%user.id" }, { "collaborators": "%%user.id" }] }"#
    private static let team = #"{ "team": "%%user.custom_data.team" }"#

    @Test func `Scenario 24: each of the documented strategies gives what it should`() async throws {
        let types = Self.strategies.keys.sorted()
        try await NoteApp.with(Self.strategies) { gateway in
            let bob = try await gateway.account(customData: #"{ "team": "red" }"#)
            let eve = try await gateway.account(customData: #"{ "team": "blue", "isTeamAdmin": true, "isGlobalAdmin": true }"#)
            let ann = try await gateway.account(customData: #"{ "team": "blue", "subscribedTo": ["\#(bob.id)"] }"#)
            // One object of each user: ann's and eve's in the blue team, bob's in the red; bob works on ann's.
            for name in types {
                try await gateway.sql(
                    """
                    INSERT INTO "\(name)" (_id, owner_id, team, collaborators) VALUES
                    ('ann', '\(ann.id)', 'blue', '{\(bob.id)}'), ('bob', '\(bob.id)', 'red', '{}'), ('eve', '\(eve.id)', 'blue', '{}')
                    """)
            }
            /// What each user sees, and may write of that; without a second set: all of it.
            let wanted: [(user: RunningGateway.Account, name: String, sees: [String: Set<String>], writes: [String: Set<String>])] = [
                (
                    ann, "ann",
                    [
                        "OwnOnly": ["ann"], "ReadAll": ["ann", "bob", "eve"], "Admins": ["ann"], "Feed": ["ann", "bob"], "Shared": ["ann"],
                        "Tiered": ["ann", "eve"],
                    ], ["ReadAll": ["ann"], "Feed": ["ann"], "Tiered": ["ann"]]
                ),
                (
                    bob, "bob",
                    [
                        "OwnOnly": ["bob"], "ReadAll": ["ann", "bob", "eve"], "Admins": ["bob"], "Feed": ["bob"], "Shared": ["ann", "bob"],
                        "Tiered": ["bob"],
                    ], ["ReadAll": ["bob"]]
                ),
                (
                    eve, "eve",
                    [
                        "OwnOnly": ["eve"], "ReadAll": ["ann", "bob", "eve"], "Admins": ["ann", "bob", "eve"], "Feed": ["eve"],
                        "Shared": ["eve"], "Tiered": ["ann", "eve"],
                    ], ["ReadAll": ["eve"]]
                ),
            ]
            for user in wanted {
                let session = try await gateway.noteSession(user.user, types)
                var number: UInt64 = 0
                for name in types {
                    #expect(session.keys(name) == user.sees[name], "\(user.name) of \(name)")
                    for key in ["ann", "bob", "eve"] {
                        number += 1
                        let change = NoteApp.change(name, key, ["text": .string("by \(user.name)")])
                        let mayWrite = (user.writes[name] ?? user.sees[name])?.contains(key) == true
                        let isRefused = try await session.isRefused(number, change)
                        #expect(isRefused == !mayWrite, "\(user.name) writes \(name) \(key)")
                    }
                }
                session.close()
            }
        }
    }

    @Test func `Scenario 25: what may be written may be read, objects and fields`() async throws {
        let fields = """
            {
                "name": "fields", "apply_when": {}, "document_filters": { "read": true, "write": true },
                "fields": { "text": { "read": false, "write": true }, "secret": { "read": false, "write": false } },
                "additional_fields": { "read": true, "write": false }
            }
            """
        let roles = ["Objects": "[\(NoteApp.role("own", read: "false", write: Self.own))]", "Fields": "[\(fields)]"]
        try await NoteApp.with(roles) { gateway in
            let ann = try await gateway.account()
            for name in roles.keys {
                try await gateway.sql(
                    """
                    INSERT INTO "\(name)" (_id, owner_id, team, text, secret) VALUES
                    ('ann', '\(ann.id)', 'red', 't', 's'), ('bob', 'bob', 'red', 't', 's')
                    """)
            }
            let session = try await gateway.noteSession(ann, ["Fields", "Objects"])
            #expect(session.keys("Objects") == ["ann"])
            #expect(session.keys("Fields") == ["ann", "bob"])
            let values = session.rows["Fields"]?[.string("bob")]
            #expect(values?["text"] == .string("t") && values?["team"] == .string("red"))
            #expect([nil, .null].contains(values?["secret"]))
            #expect(try await !session.isRefused(1, NoteApp.change("Fields", "bob", ["text": .string("new")])))
            #expect(try await session.isRefused(2, NoteApp.change("Fields", "bob", ["team": .string("blue")])))
            #expect(try await gateway.count("SELECT count(*) FROM \"Fields\" WHERE text = 'new' AND team = 'red' AND secret = 's'") == 1)
            session.close()
        }
    }

    // MARK: Changes

    /// Rows that are older than every transaction of the server: what a difference counts as old.
    private static func fill(_ conninfo: String) async throws {
        let connection = try await PostgresConnection.connect(conninfo)
        _ = try await connection.script(
            """
            INSERT INTO "Note" (_id, owner_id, team)
            SELECT 'n' || g, 'x', (ARRAY['red', 'blue', 'green', 'red'])[g % 4 + 1] FROM generate_series(1, 40) g
            """)
        let last = try #require(try await connection.query("SELECT pg_current_xact_id()::text::bigint").int(0, 0))
        let oldest = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
        try #require(try await eventually { try await connection.query(oldest).int(0, 0) ?? 0 > last })
        await connection.close()
    }

    @Test func `Scenario 26: an edited role concerns those who have it, without a reset, and an equal one brings nothing`() async throws {
        func roles(_ team: String) -> [String: String] {
            let member = NoteApp.role("member", when: #"{ "%%user.custom_data.isMember": true }"#, read: team, write: "false")
            return ["Note": "[\(member), \(NoteApp.role("guest", read: #"{ "team": "red" }"#, write: "false"))]"]
        }
        let (before, after) = (roles(#"{ "team": { "$in": ["red", "blue"] } }"#), roles(#"{ "team": { "$in": ["red", "green"] } }"#))
        try await RunningGateway.deploy(NoteApp.tables(["Note"])) { deployment in
            try await Self.fill(deployment.conninfo)
            let (first, held) = try await deployment.run(NoteApp.files(before)) { gateway in
                let accounts = [
                    try await gateway.account(customData: #"{ "isMember": true }"#), try await gateway.account(),
                ]
                var held: [Held] = []
                for (account, count) in zip(accounts, [30, 20]) {
                    let session = try await gateway.noteSession(account, ["Note"])
                    #expect(session.brought == (count, 0))
                    held.append(Held(session))
                    session.close()
                }
                return (accounts, held)
            }
            let again = try await deployment.run(NoteApp.files(before)) { gateway in
                try await Self.resume(gateway, first, held, brought: [(0, 30), (0, 20)], teams: [["red", "blue"], ["red"]])
            }
            // Ten green ones come and ten blue ones go; of the red ones the keys are enough, and the guest's role is as it was.
            _ = try await deployment.run(NoteApp.files(after)) { gateway in
                try await Self.resume(gateway, first, again, brought: [(10, 20), (0, 20)], teams: [["red", "green"], ["red"]])
            }
        }
    }

    /// What a client had when its session ended.
    private struct Held: Sendable {
        let file: TestSession.File

        /// Without its position, so that the tables are read and not the log.
        init(_ session: TestSession) {
            var file = session.file
            file.applied = .zero
            self.file = file
        }
    }

    private static func resume(
        _ gateway: RunningGateway, _ accounts: [RunningGateway.Account], _ held: [Held], brought: [(rows: Int, kept: Int)],
        teams wanted: [[String]]
    ) async throws -> [Held] {
        var after: [Held] = []
        for (number, account) in accounts.enumerated() {
            let session = try await gateway.session(token: account.token)
            session.goOn(from: held[number].file)
            try await session.hello(["Note"])
            try await session.subscribe(1, [("Note", "TRUEPREDICATE")])
            #expect(session.brought == brought[number], "user \(number)")
            let teams = Set(session.rows["Note"]?.values.compactMap { $0["team"] } ?? [])
            #expect(teams == Set(wanted[number].map { .string($0) }), "user \(number)")
            #expect(session.keys("Note").count == brought[number].rows + brought[number].kept)
            #expect(session.error == nil)
            after.append(Held(session))
            session.close()
        }
        return after
    }

    @Test func `Scenario 27: changed custom data bring the exact difference to their user, and disturb no other`() async throws {
        let member = NoteApp.role("member", read: #"{ "team": "%%user.custom_data.team" }"#, write: "false")
        try await RunningGateway.deploy(NoteApp.tables(["Note"])) { deployment in
            try await Self.fill(deployment.conninfo)
            try await deployment.run(NoteApp.files(["Note": "[\(member)]"])) { gateway in
                let ann = try await gateway.account(customData: #"{ "team": "red" }"#)
                let bob = try await gateway.noteSession(try await gateway.account(customData: #"{ "team": "green" }"#), ["Note"])
                let session = try await gateway.noteSession(ann, ["Note"])
                #expect(session.brought == (20, 0) && bob.brought == (10, 0))
                try await gateway.setCustomData(#"{ "team": "blue" }"#, of: ann.id)
                // In the same session, and not by a reset.
                try await session.receive { $0.bootstraps == 2 }
                #expect(session.brought == (10, 0) && session.rows["Note"]?.values.allSatisfy { $0["team"] == .string("blue") } == true)
                // Equal data change nothing.
                try await gateway.setCustomData(#"{ "team": "blue" }"#, of: ann.id)
                try await gateway.sql("UPDATE sluice.user_account SET data = data, disabled = false")
                try await gateway.sql("INSERT INTO \"Note\" (_id, owner_id, team) VALUES ('b', 'x', 'blue'), ('g', 'x', 'green')")
                try await bob.receive { $0.keys("Note").contains("g") }
                try await session.receive { $0.keys("Note").contains("b") }
                #expect(session.bootstraps == 2 && bob.bootstraps == 1)
                // So do those of another gateway, or of whoever else writes them.
                try await gateway.sql(
                    "UPDATE sluice.user_account SET custom_data = custom_data || '{ \"team\": \"red\" }' WHERE id = '\(ann.id)'")
                try await session.receive { $0.bootstraps == 3 }
                #expect(session.brought == (20, 0) && session.keys("Note").count == 20)
                session.close()
                bob.close()
            }
        }
    }
}
