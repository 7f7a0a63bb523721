import SluiceCore
import SluiceMerge
import SluicePorts
import SluicePostgres
import SluiceValues
import Testing

@Suite struct `The companion schema` {
    @Test func `is made by several gateways at once and kept as it is afterwards`() async throws {
        try await TestPostgres.withDatabase { conninfo in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        let connection = try await PostgresConnection.connect(conninfo)
                        try await CompanionSchema.create(connection)
                        try await CompanionSchema.create(connection)
                        await connection.close()
                    }
                }
                try await group.waitForAll()
            }
            let connection = try await PostgresConnection.connect(conninfo)
            let version = try await connection.query("SELECT value FROM sluice.meta WHERE key = 'version'").int(0, 0)
            #expect(version == Int64(CompanionSchema.version))
            await connection.close()
        }
    }

    /// Releases before version 2 had tokens instead of logins.
    @Test func `of version 1 becomes one of this version, and its users stay logged in`() async throws {
        let shape = """
            SELECT c.relname || '.' || a.attname || ' ' || format_type(atttypid, atttypmod) || attnotnull
                FROM pg_class c JOIN pg_attribute a ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped
                WHERE relnamespace = 'sluice'::regnamespace
            UNION ALL SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'sluice'::regnamespace
            UNION ALL SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid
                WHERE relnamespace = 'sluice'::regnamespace AND NOT tgisinternal
            UNION ALL SELECT pg_get_constraintdef(oid) || conrelid::regclass FROM pg_constraint WHERE connamespace = 'sluice'::regnamespace
            ORDER BY 1
            """
        try await TestPostgres.withConnection { connection in
            try await CompanionSchema.create(connection)
            let fresh = try await connection.query(shape).column(0)
            try await connection.script(Self.versionOne)
            try await connection.script(
                """
                INSERT INTO sluice.user_account (id, provider, identities) VALUES
                    ('ann', 'anon-user', '[{"id": "ann", "provider_type": "anon-user"}]'),
                    ('bob', 'custom-token', '[{"id": "b-1", "provider_type": "custom-token"}, {"id": "b-2"}]'),
                    ('eve', 'custom-token', '[{"id": "b-1", "provider_type": "custom-token"}]');
                INSERT INTO sluice.refresh_token (hash, user_id, expires_at, revoked) VALUES
                    (sha256('an old token'), 'ann', '2090-01-01', false), (sha256('other'), 'ann', '2090-01-01', true);
                """)
            try await CompanionSchema.create(connection)
            #expect(try await connection.query(shape).column(0) == fresh)
            let identities = try await connection.query("SELECT provider || ' ' || id || ' ' || user_id FROM sluice.identity ORDER BY 1")
                .column(0)
            // Two users with one identity cannot both log in by it.
            #expect(
                identities.count == 2 && identities.first == "anon-user ann ann" && identities.last?.hasPrefix("custom-token b-1 ") == true)
            #expect(try await connection.query("SELECT id FROM sluice.login").column(0) == ["e8a63ff171201e35b4df2ced1df2ce36"])
            try await connection.script("UPDATE sluice.user_account SET disabled = true WHERE id = 'ann'")
            let kinds = try await connection.query("SELECT kind FROM sluice.user_change ORDER BY number").column(0)
            #expect(kinds == ["disabled", "logged out"])
            await connection.close()
        }
    }

    /// Turns the schema into that of the last release with version 1.
    private static let versionOne = """
        DROP TRIGGER event_of_life ON sluice.user_account;
        DROP TRIGGER event_of_state ON sluice.user_account;
        DROP TRIGGER event ON sluice.login;
        DROP FUNCTION sluice.users_have_event, sluice.logins_have_event, sluice.add_user_event;
        DROP TABLE sluice.user_event, sluice.trigger_failure, sluice.trigger_cursor;
        DROP TABLE sluice.confirmation, sluice.pending_user;
        DROP FUNCTION sluice.registrations_have_event;
        DROP TRIGGER created ON sluice.user_account;
        DROP FUNCTION sluice.users_created;
        ALTER TABLE sluice.signing_key DROP CONSTRAINT signing_key_pkey, DROP COLUMN id, DROP COLUMN sealed, ADD PRIMARY KEY (name);
        DROP TABLE sluice.identity;
        DROP TRIGGER identities ON sluice.user_account;
        DROP FUNCTION sluice.identities_changed;
        DROP INDEX sluice.user_account_passing;
        ALTER TABLE sluice.user_account DROP COLUMN unclaimed;
        CREATE INDEX user_account_identities ON sluice.user_account USING gin (identities jsonb_path_ops);
        DROP TABLE sluice.login;
        DROP TRIGGER updated ON sluice.api_key;
        DROP FUNCTION sluice.keys_updated, sluice.logins_deleted;
        DROP FUNCTION sluice.note_user_changes(text[], text[], text[]);
        DROP TABLE sluice.password_reset;
        ALTER TABLE sluice.user_change DROP COLUMN login;
        CREATE TABLE sluice.refresh_token (
            hash bytea PRIMARY KEY, user_id text COLLATE "C" NOT NULL REFERENCES sluice.user_account ON DELETE CASCADE,
            created_at timestamptz NOT NULL DEFAULT now(), expires_at timestamptz NOT NULL, revoked boolean NOT NULL DEFAULT false
        );
        CREATE INDEX refresh_token_user ON sluice.refresh_token (user_id);
        CREATE FUNCTION sluice.note_user_changes(ids text[], kinds text[]) RETURNS void LANGUAGE sql AS 'SELECT';
        CREATE OR REPLACE FUNCTION sluice.users_updated() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
        UPDATE sluice.meta SET value = '1' WHERE key = 'version';
        """

    @Test(arguments: ["0", "19", "999", "odd"]) func `of another version is refused`(version: String) async throws {
        try await TestPostgres.withConnection { connection in
            try await CompanionSchema.create(connection)
            try await connection.execute("UPDATE sluice.meta SET value = $1", [.text(version)])
            let error = await #expect(throws: SluiceError.self) { try await CompanionSchema.create(connection) }
            #expect(error?.code == .configInvalid)
            #expect(error?.message == "The schema sluice has version \(version), this release needs version \(CompanionSchema.version).")
            #expect(error?.fix == "Run the release that wrote this version, or name a database without the schema.")
            await connection.close()
        }
    }

    @Test func `numbers properties once and for ever`() async throws {
        try await StoreFixture.with { fixture in
            let numbers = PropertyNumbers(pool: fixture.pool)
            func type(_ names: [String]) -> ObjectType {
                ObjectType(name: "T", properties: names.map { Property(id: 0, name: $0, type: .int) })
            }
            let first = try await numbers.number([type(["_id", "a", "b"])])
            #expect(first[0].properties.map(\.id) == [1, 2, 3])
            _ = try await numbers.number([type(["_id", "c"])])
            let again = try await numbers.number([type(["b", "_id", "d", "a"])])
            #expect(again[0].properties.map(\.id) == [3, 1, 5, 2])
            #expect(again[0].primaryKey == 1)
        }
    }
}

@Suite struct `Client replicas` {
    @Test func `are allotted ascending numbers and open with their secret`() async throws {
        try await StoreFixture.with { fixture in
            let store = ClientStore(pool: fixture.pool)
            let first = try await store.allot(user: "ann", secret: [1, 2, 3])
            let second = try await store.allot(user: "ann", secret: [4])
            #expect(first.id < second.id)
            try await store.recordIngest(id: first.id, number: 7)
            try await store.recordIngest(id: first.id, number: 5)
            let opened = try await store.open(id: first.id, secret: [1, 2, 3], user: "ann")
            #expect(opened.ingest == 7 && opened.changeset == 0)
        }
    }

    @Test func `whose numbers somebody made negative begin anew`() async throws {
        try await StoreFixture.with { fixture in
            let store = ClientStore(pool: fixture.pool)
            let file = try await store.allot(user: "ann", secret: [1])
            try await fixture.pool.withConnection { connection in
                try await connection.script("UPDATE sluice.client SET last_changeset = -1, session = -5")
                try await connection.script("INSERT INTO sluice.ingest_number SELECT id, -9 FROM sluice.client")
                try await connection.script("INSERT INTO sluice.app_schema (version, definition) VALUES (-1, '{}')")
            }
            let opened = try await store.open(id: file.id, secret: [1], user: "ann")
            #expect(opened.changeset == 0 && opened.ingest == 0 && opened.session == 0)
            #expect(try await AppSchemaStore(pool: fixture.pool).newestVersion() == 0)
        }
    }

    @Test func `a session of a file refuses the writes of the session before, once it has begun`() async throws {
        try await StoreFixture.with { fixture in
            let store = ClientStore(pool: fixture.pool)
            let file = try await store.allot(user: "ann", secret: [1])
            let origin = Origin(client: file.id, changeset: 1)
            // A write that is under way is waited for, and what the new session is told holds it.
            let (begun, begin) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
            async let opening: ClientFile = {
                for await _ in begun { break }
                return try await store.open(id: file.id, secret: [1], user: "ann")
            }()
            _ = try await fixture.rows.waitingTransaction { transaction, connection in
                _ = try await connection.withSession { try transaction.open($0, origin, session: file.session) }
                begin.yield()
                try await fixture.waitForBlocked("UPDATE sluice.client%")
                transaction.finish(origin, time: .zero, base: .zero)
            }
            let opened = try await opening
            #expect(opened.changeset == 1 && opened.session == file.session + 1)
            let next = Origin(client: file.id, changeset: 2)
            let error = await #expect(throws: SluiceError.self) {
                try await fixture.rows.transaction { try $0.open($1, next, session: file.session) }
            }
            #expect(error?.code == .resync)
            let (accepted, _) = try await fixture.rows.transaction { try $0.open($1, next, session: opened.session) }
            #expect(accepted.changeset == 1)
        }
    }

    @Test func `do not open for a file that has seen what the database never had`() async throws {
        try await StoreFixture.with { fixture in
            let store = ClientStore(pool: fixture.pool)
            let client = try await store.allot(user: "ann", secret: [1])
            func witness() async throws -> HistoryAnchor {
                let now = try await fixture.sql(
                    "SELECT xid, (extract(epoch FROM timestamp) * 1000000)::bigint FROM pg_last_committed_xact()")
                return HistoryAnchor(transaction: UInt32(try #require(now.int(0, 0))), commitTime: try #require(now.int(0, 1)))
            }
            func open(_ position: HistoryAnchor?, _ point: HistoryAnchor?) async throws -> ClientFile {
                try await store.open(id: client.id, secret: [1], user: "ann", seen: SeenHistory(position: position, point: point))
            }
            let seen = try await witness()
            var another = seen
            another.commitTime += 1
            var future = seen
            future.transaction += 1_000_000
            // One that failed has no time.
            let connection = try await PostgresConnection.connect(fixture.conninfo)
            _ = try await connection.script("BEGIN")
            let failed = try await connection.query("SELECT pg_current_xact_id()::text::bigint")
            _ = try await connection.script("ROLLBACK")
            await connection.close()
            let nobody = HistoryAnchor(transaction: UInt32(try #require(failed.int(0, 0))), commitTime: seen.commitTime)
            for (position, point, found) in [
                (seen, seen, (true, true)), (seen, another, (true, false)), (seen, future, (true, false)), (nobody, nobody, (false, false)),
                (nil, nil, (false, false)),
            ] {
                let opened = try await open(position, point)
                #expect((opened.proven.position, opened.proven.point) == found)
            }
            for position in [another, future] {
                let error = await #expect(throws: SluiceError.self) { try await open(position, seen) }
                #expect(error?.code == .badClientFile && error?.message.contains("restored from an older backup") == true)
                #expect(try await History.find(position, fixture.pool) == .unseen)
            }
            #expect(try await History.find(seen, fixture.pool) == .seen)
            #expect(try await History.find(nobody, fixture.pool) == .forgotten)
        }
    }

    @Test func `do not open for others`() async throws {
        try await StoreFixture.with { fixture in
            let store = ClientStore(pool: fixture.pool)
            let client = try await store.allot(user: "ann", secret: [1, 2, 3])
            let attempts: [(ClientID, [UInt8], String, ErrorCode)] = [
                (client.id, [1, 2, 4], "ann", .badClientFile), (client.id, [], "ann", .badClientFile),
                (ClientID(rawValue: 999), [1, 2, 3], "ann", .badClientFile), (ClientID(rawValue: .max), [1, 2, 3], "ann", .badClientFile),
                (client.id, [1, 2, 3], "bob", .userMismatch),
            ]
            for (id, secret, user, code) in attempts {
                let error = await #expect(throws: SluiceError.self) { try await store.open(id: id, secret: secret, user: user) }
                #expect(error?.code == code)
            }
        }
    }
}

@Suite struct `Users and tokens` {
    @Test func `are found by id, e-mail and identity`() async throws {
        try await StoreFixture.with { fixture in
            let store = UserStore(pool: fixture.pool)
            let user = UserAccount(
                id: "u1", email: "Ann@example.org", passwordHash: "h", provider: "local-userpass",
                identities: [["id": "ext", "provider_type": "local-userpass"]], data: ["a": 1], customData: ["team": ["x", "y"]])
            try await store.create(user)
            #expect(try await store.find(id: "u1") == user)
            #expect(try await store.find(email: "Ann@example.org") == user)
            #expect(try await store.find(email: "ann@example.org") == nil)
            let logins = LoginStore(pool: fixture.pool)
            #expect(try await logins.add("l1", of: .init(provider: "local-userpass", id: "ext"), expires: 4_000_000_000_000) == user)
            #expect(try await logins.add("l2", of: .init(provider: "anon-user", id: "ext"), expires: 4_000_000_000_000) == nil)
            #expect(try await store.list().map(\.id) == ["u1"])
        }
    }

    @Test func `have unique e-mails`() async throws {
        try await StoreFixture.with { fixture in
            let store = UserStore(pool: fixture.pool)
            try await store.create(UserAccount(id: "u1", email: "a@b.c", provider: "local-userpass"))
            try await store.create(UserAccount(id: "u2", provider: "anon-user"))
            try await store.create(UserAccount(id: "u3", provider: "anon-user"))
            let error = await #expect(throws: SluiceError.self) {
                try await store.create(UserAccount(id: "u4", email: "a@b.c", provider: "local-userpass"))
            }
            #expect(error == SluiceError(.nameInUse, "The name a@b.c is in use."))
        }
    }

    @Test func `change, and are missed when they are gone`() async throws {
        try await StoreFixture.with { fixture in
            let store = UserStore(pool: fixture.pool)
            try await store.create(UserAccount(id: "u1", provider: "anon-user"))
            try await store.setCustomData(id: "u1", ["k": .null])
            let user = try #require(try await store.find(id: "u1"))
            #expect(user.customData == ["k": .null])
            try await store.delete(id: "u1")
            let error = await #expect(throws: SluiceError.self) { try await store.setCustomData(id: "u1", ["k": 1]) }
            #expect(error?.code == .userNotFound)
        }
    }

    @Test func `what happens to them is noted in order, by whomever, and nothing that is as it was`() async throws {
        try await StoreFixture.with { fixture in
            let (users, logins, changes) = (
                UserStore(pool: fixture.pool), LoginStore(pool: fixture.pool), UserChangeStore(pool: fixture.pool)
            )
            for id in ["ann", "bob", "cleo"] { try await users.create(UserAccount(id: id, provider: "anon-user", customData: ["n": 1])) }
            #expect(try await changes.last() == 0)
            try await users.setCustomData(id: "ann", ["n": 1])
            for (id, user) in [("a1", "ann"), ("b1", "bob"), ("c1", "cleo"), ("c2", "cleo")] {
                #expect(try await logins.add(Login(id: id, user: user, expires: 4_000_000_000_000), .none))
            }
            // A first password is a new one for nobody.
            _ = try await fixture.sql("UPDATE sluice.user_account SET password_hash = 'first' WHERE id = 'ann'")
            _ = try await fixture.sql("UPDATE sluice.user_account SET password_hash = 'new' WHERE id = 'ann'")
            try await users.setCustomData(id: "ann", ["n": 2])
            try await users.setDisabled(id: "bob", true)
            try await users.setDisabled(id: "bob", false)
            try await logins.end("c1")
            try await logins.endAll(of: "cleo")
            #expect(
                try await changes.changes(after: 0).map(\.said) == [
                    "ann logged out of a1", "ann data", "bob disabled", "bob logged out of b1", "cleo logged out of c1",
                    "cleo logged out of c2",
                ])
            // The end of an account is one change, whatever logins it has. A login that expires is none.
            #expect(try await logins.add(Login(id: "c3", user: "cleo", expires: 4_000_000_000_000), .none))
            #expect(try await logins.add(Login(id: "a2", user: "ann", expires: 1), .none))
            _ = try await fixture.sql("INSERT INTO sluice.password_reset VALUES ('r', 'ann', '', now(), 'epoch')")
            #expect(try await logins.prune(now: 2) == 2)
            let last = try await changes.last()
            _ = try await fixture.sql("UPDATE sluice.user_account SET custom_data = '{\"n\": 2}'; DELETE FROM sluice.user_account")
            let bulk = try await changes.changes(after: last)
            #expect(bulk.prefix(2).map(\.said).sorted() == ["bob data", "cleo data"])
            #expect(bulk.dropFirst(2).map(\.said).sorted() == ["ann deleted", "bob deleted", "cleo deleted"])
            #expect(bulk.map(\.number) == bulk.map(\.number).sorted())
            _ = try await fixture.sql("UPDATE sluice.user_change SET at = now() - interval '2 hours'")
            try await changes.prune()
            #expect(try await changes.changes(after: 0).isEmpty)
        }
    }

    @Test func `all gateways get one signing key`() async throws {
        try await StoreFixture.with { fixture in
            let tokens = SigningKeyStore(pool: fixture.pool)
            let keys = try await withThrowingTaskGroup(of: [UInt8].self) { group in
                for number in 0..<4 { group.addTask { try await tokens.signingKey("jwt", proposed: [UInt8(number)]) } }
                return try await group.reduce(into: Set<[UInt8]>()) { $0.insert($1) }
            }
            #expect(keys.count == 1)
            #expect(try await tokens.signingKey("jwt", proposed: [99]) == keys.first)
        }
    }

    /// A cipher with a key of one byte. It refuses another context, as the real one does.
    private struct TestSealer: Sealer {
        let key: UInt8

        private func tag(_ context: [UInt8]) -> UInt8 { context.reduce(key) { $0 &* 31 &+ $1 } }

        func seal(_ content: [UInt8], context: [UInt8]) -> [UInt8] { [tag(context)] + content.map { $0 ^ key } }

        func open(_ sealed: [UInt8], context: [UInt8]) -> [UInt8]? {
            sealed.first == tag(context) ? sealed.dropFirst().map { $0 ^ key } : nil
        }
    }

    @Test func `signing keys are encrypted with a sealer, also those that were not`() async throws {
        try await StoreFixture.with { fixture in
            func store(_ keys: UInt8...) -> SigningKeyStore {
                SigningKeyStore(pool: fixture.pool, sealers: keys.map { TestSealer(key: $0) })
            }
            func stored() async throws -> [String?] {
                try await fixture.sql("SELECT encode(key, 'escape') FROM sluice.signing_key ORDER BY created_at").column(0)
            }
            func code(_ store: SigningKeyStore) async -> ErrorCode? {
                do { _ = try await store.keys("jwt") } catch { return (error as? SluiceError)?.code }
                return nil
            }
            let secret = Array("secret".utf8)
            #expect(try await store().signingKey("jwt", proposed: secret) == secret)
            #expect(try await stored() == ["secret"])
            #expect(try await store(7).signingKey("jwt", proposed: [1]) == secret)
            #expect(try await stored() != ["secret"])
            #expect(await code(store()) == .configMissing)
            #expect(await code(store(8)) == .configInvalid)
            // A change of the secret: the key is encrypted anew.
            #expect(try await store(8, 7).signingKey("jwt", proposed: [1]) == secret)
            #expect(await code(store(8)) == nil)
            #expect(await code(store(7)) == .configInvalid)
            try await store(8).add("jwt", id: "k2", key: Array("other".utf8))
            #expect(try await store(8).keys("jwt").map(\.key) == [secret, Array("other".utf8)])
            // The ciphertext of one row is of no use in another.
            _ = try await fixture.sql(
                "UPDATE sluice.signing_key SET key = (SELECT key FROM sluice.signing_key WHERE id = 'k2') WHERE id = ''")
            #expect(await code(store(8)) == .configInvalid)
        }
    }

    @Test func `the newest signing key signs, and only older ones are removed`() async throws {
        try await StoreFixture.with { fixture in
            let store = SigningKeyStore(pool: fixture.pool)
            _ = try await store.signingKey("jwt", proposed: [0])
            for id in ["b", "a"] { try await store.add("jwt", id: id, key: Array(id.utf8)) }
            try await store.add("other", id: "c", key: [3])
            #expect(try await store.keys("jwt").map(\.id) == ["", "b", "a"])
            #expect(try await store.signingKey("jwt")?.id == "a")
            #expect(try await store.signingKey("jwt", proposed: [9]) == Array("a".utf8))
            #expect(try await !store.remove("jwt", id: "a"))
            #expect(try await !store.remove("jwt", id: "none"))
            #expect(try await store.remove("jwt", id: ""))
            #expect(try await store.keys("jwt").map(\.id) == ["b", "a"])
            // A start of a gateway does not bring the first key back.
            _ = try await store.signingKey("jwt", proposed: [0])
            #expect(try await store.keys("jwt").map(\.id) == ["b", "a"])
        }
    }

    @Test func `quarantine keeps the last reason of a row`() async throws {
        try await StoreFixture.with { fixture in
            let store = QuarantineStore(pool: fixture.pool)
            func unfit(_ reason: String, _ ordinal: UInt32) -> UnfitRow {
                UnfitRow(position: Position(lsn: LSN(rawValue: 5), ordinal: ordinal), type: 1, key: "k\0", reason: reason)
            }
            try await store.record([unfit("first", 0), unfit("second", 1)], types: ["Store", "Item"])
            let all = try await store.list()
            #expect(all.count == 1 && all[0].type == "Item" && all[0].key == "k␀" && all[0].reason == "second")
        }
    }
}

@Suite struct HorizonTests {
    @Test func `deletions are forgotten once every client that counts has seen them`() async throws {
        try await StoreFixture.with { fixture in
            let clients = ClientStore(pool: fixture.pool)
            let (one, two) = (try await clients.allot(user: "a", secret: [1]), try await clients.allot(user: "b", secret: [2]))
            _ = try await fixture.sql("UPDATE sluice.client SET position = '0/100'")
            _ = try await fixture.sql("INSERT INTO sluice.row_clock VALUES ('T', 'gone', '', '0/150'), ('T', 'here', '', NULL)")
            func remembered(for days: Int = Limits.clientMemoryDays) async throws -> Int {
                try await withSession(fixture) { session in
                    try ClientHorizon.advance(session, days: days, every: 0)
                    return try session.query("SELECT key FROM sluice.row_clock").count
                }
            }
            #expect(try await remembered() == 2)
            _ = try await clients.open(id: one.id, secret: [1], user: "a", oldestBase: LSN(rawValue: 0x200))
            #expect(try await remembered() == 2)
            // The other has not come for too long.
            _ = try await fixture.sql("UPDATE sluice.client SET seen_at = now() - interval '61 days' WHERE id = \(two.id)")
            #expect(try await remembered(for: 62) == 2)
            #expect(try await remembered() == 1)
            #expect(try await withSession(fixture) { try ClientHorizon.read($0) } == LSN(rawValue: 0x200))
            // It never goes back.
            _ = try await clients.open(id: two.id, secret: [2], user: "b", oldestBase: LSN(rawValue: 0x180))
            _ = try await remembered()
            #expect(try await withSession(fixture) { try ClientHorizon.read($0) } == LSN(rawValue: 0x200))
        }
    }

    @Test func `what another program deleted is remembered as deleted, unless it was written since`() async throws {
        try await StoreFixture.with { fixture in
            let memory = PostgresExternalDeletes(pool: fixture.pool)
            func microseconds() async throws -> Int64 {
                try await fixture.sql("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").int(0, 0) ?? 0
            }
            func insert(_ keys: [String]) async throws {
                for key in keys { _ = try await fixture.sql("INSERT INTO sluice.row_clock VALUES ('Item', '\(key)', '', NULL)") }
            }
            func deleted() async throws -> [String] {
                let rows = try await fixture.sql(
                    "SELECT key || ' ' || deleted_lsn || ' ' || encode(clocks, 'hex') FROM sluice.row_clock WHERE deleted_lsn IS NOT NULL ORDER BY 1"
                )
                return (0..<rows.count).compactMap { rows[$0, 0] }
            }
            try await insert(["7", "a \"quoted\"", "stays"])
            _ = try await fixture.sql("INSERT INTO sluice.row_clock VALUES ('Item', 'device', '', '0/10'), ('Other', '7', '', NULL)")
            let time = try await microseconds()
            try await insert(["again"])
            let keys: [Value] = [.int(7), .string("a \"quoted\""), .string("again"), .string("device"), .string("never there")]
            // The clocks of a deletion by the server, one below the commit.
            func clocks(_ lsn: UInt64) -> String {
                let stamp = WriteStamp(time: HybridTime(milliseconds: time / 1_000), client: .server)
                return Hex.encode(ObjectClocks(deletion: Deletion(stamp: stamp, lsn: LSN(rawValue: lsn)), isDeleted: true).encoded)
            }
            let (objects, all) = (clocks(0x20), clocks(0x30))
            for _ in 0..<2 {
                try await memory.remember(
                    keys.map { ExternalDelete(type: "Item", key: $0, lsn: LSN(rawValue: 0x21), commitTime: time) })
                #expect(try await deleted() == ["7 0/20 \(objects)", "a \"quoted\" 0/20 \(objects)", "device 0/10 "])
            }
            try await memory.remember([ExternalDelete(type: "Item", key: nil, lsn: LSN(rawValue: 0x31), commitTime: time)])
            #expect(
                try await deleted() == ["7 0/20 \(objects)", "a \"quoted\" 0/20 \(objects)", "device 0/10 ", "stays 0/30 \(all)"])
        }
    }

    private func withSession<R: Sendable>(
        _ fixture: StoreFixture, _ body: @escaping @Sendable (PostgresSession) throws -> R
    ) async throws -> R {
        try await fixture.pool.withConnection { try await $0.withSession(body) }
    }
}

extension UserChange {
    fileprivate var said: String {
        if case .loggedOut(let login) = kind { return "\(user) logged out of \(login)" }
        return "\(user) \(kind)"
    }
}
