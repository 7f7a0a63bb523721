import SluiceCore
import SluicePorts
import SluicePostgres
import SluiceValues
import Testing

@Suite struct `The logins of a user` {
    @Test func `are bounded, and the oldest one ends for live sessions too`() async throws {
        try await StoreFixture.with { fixture in
            let (users, logins) = (UserStore(pool: fixture.pool), LoginStore(pool: fixture.pool, most: 3))
            let changes = UserChangeStore(pool: fixture.pool)
            for id in ["ann", "bob"] { try await users.create(UserAccount(id: id, provider: "anon-user")) }
            #expect(try await logins.add(Login(id: "b", user: "bob", expires: 4_000_000_000_000), .none))
            for number in 1...3 {
                #expect(try await logins.add(Login(id: "a\(number)", user: "ann", expires: 4_000_000_000_000), .none))
                _ = try await fixture.sql(
                    "UPDATE sluice.login SET created_at = now() - interval '1 hour' * \(10 - number) WHERE id = 'a\(number)'")
            }
            #expect(try await changes.last() == 0)
            #expect(try await logins.add(Login(id: "a4", user: "ann", expires: 4_000_000_000_000), .none))
            #expect(try await fixture.sql("SELECT id FROM sluice.login ORDER BY id").column(0) == ["a2", "a3", "a4", "b"])
            let ended = try await changes.changes(after: 0)
            #expect(ended.map(\.user) == ["ann"])
            // A lower bound of a later release applies with the next login.
            #expect(
                try await LoginStore(pool: fixture.pool, most: 1).add(Login(id: "a5", user: "ann", expires: 4_000_000_000_000), .none))
            #expect(try await fixture.sql("SELECT id FROM sluice.login ORDER BY id").column(0) == ["a5", "b"])
            // The identity leads to the same bound.
            let identity = UserIdentityKey(provider: "custom-token", id: "sub")
            try await users.create(UserAccount(id: "cy", provider: "custom-token", identities: [identity.json]))
            for number in 1...4 {
                #expect(try await logins.add("c\(number)", of: identity, expires: 4_000_000_000_000)?.id == "cy")
                _ = try await fixture.sql(
                    "UPDATE sluice.login SET created_at = now() - interval '1 hour' * \(10 - number) WHERE id = 'c\(number)'")
            }
            #expect(try await fixture.sql("SELECT id FROM sluice.login ORDER BY id").column(0) == ["a5", "b", "c2", "c3", "c4"])
        }
    }

    @Test func `note their use by tokens of both kinds`() async throws {
        try await StoreFixture.with { fixture in
            let logins = LoginStore(pool: fixture.pool)
            try await UserStore(pool: fixture.pool).create(UserAccount(id: "ann", provider: "anon-user"))
            for id in ["rotated", "constant", "young"] {
                #expect(try await logins.add(Login(id: id, user: "ann", expires: 4_000_000_000_000), .none))
            }
            _ = try await fixture.sql("UPDATE sluice.login SET used_at = now() - interval '9 days' WHERE id <> 'young'")
            _ = try await fixture.sql("UPDATE sluice.login SET used_at = now() - interval '9 hours' WHERE id = 'young'")
            _ = try await logins.take(login: "rotated", generation: 1, now: 1)
            for id in ["constant", "young"] { _ = try await logins.take(login: id, generation: 0, now: 1) }
            let used = try await fixture.sql("SELECT id FROM sluice.login WHERE used_at > now() - interval '1 hour' ORDER BY id")
            #expect(used.column(0) == ["constant", "rotated"])
        }
    }
}

@Suite struct `Accounts that are out of use` {
    @Test func `are deleted, if no person can miss them`() async throws {
        try await StoreFixture.with { fixture in
            let store = UserStore(pool: fixture.pool)
            let idle = [
                UserAccount(id: "idle", provider: "anon-user"), UserAccount(id: "logged in once", provider: "anon-user"),
                UserAccount(id: "synchronized once", provider: "anon-user"),
                UserAccount(id: "no login", email: "n@example.com", passwordHash: "x", provider: "local-userpass"),
            ]
            let kept = [
                UserAccount(id: "young", provider: "anon-user"), UserAccount(id: "refreshed", provider: "anon-user"),
                UserAccount(id: "synchronized", provider: "anon-user"), UserAccount(id: "of Realm's protocol", provider: "anon-user"),
                UserAccount(id: "claimed", email: "c@example.com", passwordHash: "x", provider: "local-userpass"),
                UserAccount(id: "of an issuer", provider: "custom-token"),
            ]
            for account in idle + kept { try await store.create(account) }
            // As a registration makes it.
            _ = try await fixture.sql("UPDATE sluice.user_account SET unclaimed = true WHERE id = 'no login'")
            _ = try await fixture.sql(
                """
                UPDATE sluice.user_account SET created_at = now() - interval '100 days' WHERE id <> 'young';
                INSERT INTO sluice.login (id, user_id, expires_at, used_at) SELECT id, id, now() + interval '5 years',
                    now() - CASE id WHEN 'refreshed' THEN interval '89 days' ELSE interval '91 days' END
                    FROM unnest(ARRAY['refreshed', 'logged in once']) AS id;
                INSERT INTO sluice.client (user_id, secret, seen_at) VALUES
                    ('synchronized', '', now() - interval '89 days'), ('synchronized once', '', now() - interval '91 days');
                INSERT INTO sluice.realm_file (user_id, salt) VALUES ('of Realm''s protocol', 1)
                """)
            let changes = UserChangeStore(pool: fixture.pool)
            let last = try await changes.last()
            #expect(try await store.deleteIdle(days: 90) == idle.count)
            #expect(try await store.list().map(\.id) == kept.map(\.id).sorted())
            #expect(Set(try await changes.changes(after: last).map(\.user)) == Set(idle.map(\.id)))
            #expect(try await store.deleteIdle(days: 90) == 0)
        }
    }
}
