import SluiceCore
import SluicePostgres
import SluiceValues
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
            #expect(try await follower.follow(.init(schema: "public", table: "member", userID: "owner")))
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
            #expect(try await follower.follow(.init(schema: "public", table: "member", userID: "owner")))
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
            #expect(try await follower.follow(.init(schema: "public", table: "other", userID: "_id")))
            #expect(try await Self.data(fixture, "ann") == #"{"_id": "ann", "rank": 9}"#)
            _ = try await fixture.sql("UPDATE member SET level = 5")
            #expect(try await Self.data(fixture, "ann") == #"{"_id": "ann", "rank": 9}"#)
            #expect(try await !follower.follow(.init(schema: "public", table: "other", userID: "nobody")))
            #expect(try await !follower.follow(.init(schema: "public", table: "none", userID: "_id")))
            _ = try await fixture.sql("DELETE FROM other")
            #expect(try await Self.data(fixture, "ann") == #"{"_id": "ann", "rank": 9}"#)
            try await follower.unfollow()
            #expect(try await fixture.sql("SELECT FROM pg_trigger WHERE starts_with(tgname, 'sluice_custom')").count == 0)
        }
    }

    @Test func `have the members of the JSON column, and a column of the same name wins`() async throws {
        try await StoreFixture.with { fixture in
            let follower = CustomDataTable(pool: fixture.pool)
            for statement in try await follower.statements(.init(schema: "app", table: "users", userID: "userId"), planned: nil) {
                _ = try await fixture.sql(statement)
            }
            #expect(try await follower.statements(.init(schema: "app", table: "users", userID: "userId"), planned: nil).isEmpty)
            _ = try await fixture.sql("ALTER TABLE app.users ADD COLUMN rank int, ADD COLUMN team text")
            _ = try await fixture.sql("INSERT INTO sluice.user_account (id, provider) VALUES ('ann', 'anon-user')")
            _ = try await fixture.sql(
                #"INSERT INTO app.users VALUES ('ann', '{"team": "red", "rank": 1, "since": {"$date": "2026-03-01T00:00:00Z"}}', 7)"#)
            #expect(try await follower.follow(.init(schema: "app", table: "users", userID: "userId")))
            let expected = #"{"rank": 7, "team": "red", "since": {"$date": "2026-03-01T00:00:00Z"}, "userId": "ann"}"#
            #expect(try await Self.data(fixture, "ann") == expected)
            _ = try await fixture.sql("UPDATE app.users SET custom_data = '[1]'")
            #expect(try await Self.data(fixture, "ann") == #"{"rank": 7, "userId": "ann", "custom_data": [1]}"#)
            // Any member may be in the document, so names cannot be checked.
            #expect(try await follower.columns(.init(schema: "app", table: "users", userID: "userId")) == nil)
        }
    }

    @Test func `get a missing column, unless the table's class has it`() async throws {
        try await Self.with { _, follower in
            let add = [#"ALTER TABLE "public"."member" ADD COLUMN "user" text COLLATE "C" UNIQUE"#]
            #expect(try await follower.statements(.init(schema: "public", table: "member", userID: "user"), planned: nil) == add)
            #expect(try await follower.statements(.init(schema: "public", table: "member", userID: "owner"), planned: nil) == [])
            #expect(try await follower.statements(.init(schema: "public", table: "none", userID: "user"), planned: ["_id", "user"]) == [])
            let planned = try await follower.statements(.init(schema: "public", table: "none", userID: "user"), planned: ["_id"])
            #expect(planned == [#"ALTER TABLE "public"."none" ADD COLUMN "user" text COLLATE "C" UNIQUE"#])
        }
    }

    @Test func `have the names of properties where a mapping gives the columns others`() async throws {
        try await Self.with { fixture, follower in
            let place = CustomDataTable.Place(
                schema: "public", table: "member", userID: "owner", members: ["owner": "ownerId", "team": "the team", "_id": "id"])
            #expect(try await follower.follow(place))
            #expect(try await Self.data(fixture, "ann") == #"{"id": "1", "level": 3, "ownerId": "ann", "the team": "red"}"#)
            _ = try await fixture.sql("UPDATE member SET team = 'blue' WHERE _id = '1'")
            #expect(try await Self.data(fixture, "ann") == #"{"id": "1", "level": 3, "ownerId": "ann", "the team": "blue"}"#)
            _ = try await fixture.sql("INSERT INTO member VALUES ('5', 'eve', 'blue')")
            _ = try await fixture.sql("INSERT INTO sluice.user_account (id, provider) VALUES ('eve', 'anon-user')")
            #expect(try await Self.data(fixture, "eve") == #"{"id": "5", "ownerId": "eve", "the team": "blue"}"#)
            #expect(try await follower.columns(place) == ["id", "ownerId", "the team", "level", "note"])
            // Another mapping is another trigger.
            #expect(try await follower.follow(.init(schema: "public", table: "member", userID: "owner")))
            #expect(try await Self.data(fixture, "ann") == #"{"_id": "1", "team": "blue", "level": 3, "owner": "ann"}"#)
        }
    }

    @Test func `have one value of a member where a column has its name and another one is mapped to it`() async throws {
        try await Self.with { fixture, follower in
            // The mapped column is before the unmapped one in the table, or behind it.
            _ = try await fixture.sql("ALTER TABLE member RENAME COLUMN team TO first")
            _ = try await fixture.sql("ALTER TABLE member ADD COLUMN team text DEFAULT 'unmapped', ADD COLUMN last text DEFAULT 'blue'")
            for (column, value) in [("first", "red"), ("last", "blue")] {
                let place = CustomDataTable.Place(schema: "public", table: "member", userID: "owner", members: [column: "team"])
                #expect(try await follower.follow(place))
                let data = try JSON.parse(try await Self.data(fixture, "ann") ?? "")
                #expect(data["team"]?.string == value, "\(data.text)")
                #expect(try await follower.columns(place)?.count { $0 == "team" } == 1)
            }
        }
    }

    private static let ids = (ann: "0123456789abcdef01234567", red: "aaaaaaaaaaaaaaaaaaaaaaaa", tag: "01234567-89ab-cdef-0123-456789abcdef")

    /// Values whose types JSON lacks, of which an SQL session may have other ideas than ours.
    private static let typed = """
        CREATE TABLE typed (
            _id sluice.objectid PRIMARY KEY, teams sluice.objectid[], tag uuid, tags uuid[], since timestamptz, shifts timestamptz[],
            wall timestamp, day date, photo bytea, pay numeric, ratio double precision, weight real, level bigint, open boolean,
            "any" jsonb, plain text, nothing uuid, shift interval);
        INSERT INTO sluice.user_account (id, provider) VALUES ('\(ids.ann)', 'anon-user');
        INSERT INTO typed VALUES (
            '\(ids.ann)', '{\(ids.red)}', '\(ids.tag)', '{\(ids.tag)}', '2026-03-01T12:30:00Z', '{"2026-03-01T12:30:00.25Z", "infinity", NULL}',
            '2026-03-01T12:30:00', '2026-03-01', decode(repeat('00ff41', 30), 'hex'), 12.50, 'NaN', '-Infinity', 9007199254740993, true,
            '{"a": {"$oid": "\(ids.red)"}}', '\(ids.red)', NULL, '26 hours');
        """

    /// In a session of another program, with settings of its own.
    private static func script(_ fixture: StoreFixture, _ text: String) async throws {
        let connection = try await PostgresConnection.connect(fixture.conninfo)
        _ = try await connection.script(
            "SET timezone = 'Asia/Kolkata'; SET bytea_output = 'escape'; SET datestyle = 'SQL, DMY'; SET extra_float_digits = 0; SET intervalstyle = 'sql_standard'; \(text)"
        )
        await connection.close()
    }

    @Test func `have the types of the columns, as extended JSON`() async throws {
        try await StoreFixture.with { fixture in
            try await Self.script(fixture, Self.typed)
            let follower = CustomDataTable(pool: fixture.pool)
            #expect(try await follower.follow(.init(schema: "public", table: "typed", userID: "_id")))
            let photo = String(repeating: "AP9B", count: 30)
            let expected: [String: JSON] = [
                "_id": ["$oid": .string(Self.ids.ann)], "any": ["a": ["$oid": .string(Self.ids.red)]],
                "day": ["$date": "2026-03-01T00:00:00Z"], "level": 9_007_199_254_740_993, "open": true,
                "pay": ["$numberDecimal": "12.50"], "photo": ["$binary": ["base64": .string(photo), "subType": "00"]],
                "plain": .string(Self.ids.red), "shift": "PT26H", "ratio": ["$numberDouble": "NaN"],
                "shifts": [["$date": "2026-03-01T12:30:00.250Z"], "infinity", .null], "since": ["$date": "2026-03-01T12:30:00Z"],
                "tag": ["$uuid": .string(Self.ids.tag)], "tags": [["$uuid": .string(Self.ids.tag)]],
                "teams": [["$oid": .string(Self.ids.red)]], "wall": ["$date": "2026-03-01T12:30:00Z"],
                "weight": ["$numberDouble": "-Infinity"],
            ]
            func data() async throws -> [String: JSON] {
                let members = try JSON.parse(try await Self.data(fixture, Self.ids.ann) ?? "").members ?? []
                return Dictionary(uniqueKeysWithValues: members.map { ($0.key, $0.value) })
            }
            #expect(try await data() == expected)
            // Columns may come later; years that a date's text has not are milliseconds.
            let steps = [
                "ALTER TABLE typed ADD COLUMN later uuid DEFAULT '\(Self.ids.tag)'",
                "UPDATE typed SET plain = 'p', pay = NULL, since = '0044-03-15T00:00:00Z BC'",
                "UPDATE typed SET since = '12026-03-01T00:00:00Z'",
            ]
            for step in steps { try await Self.script(fixture, step) }
            let changed = try await data()
            #expect(changed["since"] == ["$date": ["$numberLong": "317341843200000"]] && changed["pay"] == nil)
            #expect(changed["later"] == ["$uuid": .string(Self.ids.tag)] && changed["photo"] == expected["photo"])
        }
    }

    @Test func `are written anew where other triggers followed the table`() async throws {
        try await Self.with { fixture, follower in
            try await Self.script(
                fixture,
                """
                DROP TRIGGER sluice_custom_data ON member;
                CREATE TRIGGER sluice_custom_data AFTER INSERT OR UPDATE OR DELETE ON member
                    FOR EACH ROW EXECUTE FUNCTION sluice.custom_data_changed('owner');
                UPDATE sluice.user_account SET custom_data = '{"stale": true}' WHERE id = 'ann'
                """)
            #expect(try await follower.follow(.init(schema: "public", table: "member", userID: "owner")))
            #expect(try await Self.data(fixture, "ann")?.contains("red") == true)
        }
    }
}
