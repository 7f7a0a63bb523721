import SluicePostgres
import Testing

@Suite struct `Custom data that follow a table` {
    private static let table = """
        CREATE TABLE member (_id text PRIMARY KEY, owner text, team text, level int, note text);
        INSERT INTO sluice.user_account (id, provider, custom_data) VALUES
            ('ann', 'anon-user', '{"old": true}'), ('bob', 'anon-user', '{"old": true}'), ('key', 'api-key', '{"kept": true}');
        INSERT INTO member VALUES ('1', 'ann', 'red', 3, NULL), ('2', 'key', 'red', 3, NULL), ('3', NULL, 'red', 3, NULL);
        """

    private static func with(_ body: (StoreFixture, CustomDataTable) async throws -> Void) async throws {
        try await StoreFixture.with { fixture in
            for statement in table.split(separator: ";\n") { _ = try await fixture.sql(String(statement)) }
            let follower = CustomDataTable(pool: fixture.pool)
            #expect(try await follower.follow(schema: "public", table: "member", userID: "owner"))
            try await body(fixture, follower)
        }
    }

    private static func data(_ fixture: StoreFixture, _ user: String) async throws -> String? {
        try await fixture.sql("SELECT custom_data FROM sluice.user_account WHERE id = '\(user)'")[0, 0]
    }

    /// Of Ann, Bob, and the server key.
    private static func all(_ fixture: StoreFixture) async throws -> [String?] {
        [try await data(fixture, "ann"), try await data(fixture, "bob"), try await data(fixture, "key")]
    }

    private static let kept = #"{"kept": true}"#

    @Test func `are what the row has, whoever writes it, and empty without a row`() async throws {
        try await Self.with { fixture, follower in
            let ann = #"{"_id": "1", "team": "red", "level": 3, "owner": "ann"}"#
            #expect(try await Self.all(fixture) == [ann, "{}", Self.kept])
            // Nothing is done twice.
            #expect(try await follower.follow(schema: "public", table: "member", userID: "owner"))
            let steps: [(sql: String, ann: String, bob: String)] = [
                ("UPDATE member SET level = 4 WHERE _id = '1'", #"{"_id": "1", "team": "red", "level": 4, "owner": "ann"}"#, "{}"),
                ("UPDATE member SET owner = 'bob' WHERE _id = '1'", "{}", #"{"_id": "1", "team": "red", "level": 4, "owner": "bob"}"#),
                ("UPDATE member SET note = repeat('n', 17000) WHERE _id = '1'", "{}", "{}"),
                (
                    "UPDATE member SET note = 'n' WHERE _id = '1'", "{}",
                    #"{"_id": "1", "note": "n", "team": "red", "level": 4, "owner": "bob"}"#
                ),
                ("DELETE FROM member WHERE _id = '1'", "{}", "{}"),
                ("INSERT INTO member VALUES ('4', 'ann')", #"{"_id": "4", "owner": "ann"}"#, "{}"), ("TRUNCATE member", "{}", "{}"),
            ]
            for step in steps {
                _ = try await fixture.sql(step.sql)
                #expect(try await Self.all(fixture) == [step.ann, step.bob, Self.kept], "\(step.sql)")
            }
            // What happened is told to gateways.
            #expect(try await fixture.sql("SELECT count(*) FROM sluice.user_change WHERE user_id = 'ann' AND kind = 'data'").int(0, 0) == 5)
        }
    }

    @Test func `are there for users who are made after their row`() async throws {
        try await Self.with { fixture, _ in
            _ = try await fixture.sql("INSERT INTO member VALUES ('5', 'eve', 'blue')")
            _ = try await fixture.sql("INSERT INTO sluice.user_account (id, provider) VALUES ('eve', 'anon-user')")
            #expect(try await Self.data(fixture, "eve") == #"{"_id": "5", "team": "blue", "owner": "eve"}"#)
        }
    }

    @Test func `follow one table at a time, or none`() async throws {
        try await Self.with { fixture, follower in
            _ = try await fixture.sql("CREATE TABLE other (_id text PRIMARY KEY, rank int)")
            _ = try await fixture.sql("INSERT INTO other VALUES ('ann', 9)")
            #expect(try await follower.follow(schema: "public", table: "other", userID: "_id"))
            #expect(try await Self.data(fixture, "ann") == #"{"_id": "ann", "rank": 9}"#)
            _ = try await fixture.sql("UPDATE member SET level = 5")
            #expect(try await Self.data(fixture, "ann") == #"{"_id": "ann", "rank": 9}"#)
            #expect(try await !follower.follow(schema: "public", table: "other", userID: "nobody"))
            #expect(try await !follower.follow(schema: "public", table: "none", userID: "_id"))
            _ = try await fixture.sql("DELETE FROM other")
            #expect(try await Self.data(fixture, "ann") == #"{"_id": "ann", "rank": 9}"#)
            try await follower.unfollow()
            #expect(try await fixture.sql("SELECT FROM pg_trigger WHERE starts_with(tgname, 'sluice_custom')").count == 0)
        }
    }
}
