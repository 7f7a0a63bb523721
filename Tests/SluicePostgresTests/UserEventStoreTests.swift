import SluiceCore
import SluicePorts
import SluicePostgres
import SluiceValues
import TestSupport
import Testing

@Suite struct `Events of users in the database` {
    private static func account(_ id: String, provider: String = "anon-user") -> UserAccount {
        UserAccount(
            id: id, provider: provider, identities: [["id": .string(id), "provider_type": .string(provider)]], data: ["a": 1],
            customData: ["team": "red"])
    }

    private static let ids = (1...3).map { String(repeating: "\($0)", count: 24) }
    private static let expires: Int64 = 4_000_000_000_000

    private static func finish(_ id: Int64, in events: UserEventStore) async throws {
        #expect(try await events.finish([id], at: .topic, of: [.topic, .triggers]) == [])
        #expect(try await events.finish([id], at: .triggers, of: [.topic, .triggers]) == [id])
    }

    @Test func `are added by every change that is one, in its transaction`() async throws {
        try await StoreFixture.with { fixture in
            let (users, events) = (PostgresUsers(pool: fixture.pool), UserEventStore(pool: fixture.pool))
            let id = Self.ids[0]
            try await users.create(Self.account(id))
            #expect(try await users.add(Login(id: "l1", user: id, expires: Self.expires), .none))
            try await users.setCustomData(id: id, ["team": "blue"])
            try await users.setDisabled(id: id, true)
            try await users.setDisabled(id: id, true)
            try await users.setDisabled(id: id, false)
            try await users.delete(id: id)
            var kinds: [UserEvent.Kind] = []
            var last: UserEvent?
            while let event = try await events.take(10, leaseSeconds: 60).first {
                kinds.append(event.kind)
                last = event
                #expect(try await events.take(10, leaseSeconds: 60).isEmpty)
                try await Self.finish(event.id, in: events)
            }
            #expect(kinds == [.created, .loggedIn, .disabled, .enabled, .deleted])
            #expect(last?.account.data == ["a": 1] && last?.account.customData == ["team": "blue"] && last?.account.id == id)
            #expect(last?.account.identities == Self.account(id).identities && last?.provider == "anon-user")
            #expect(try await events.lag() == 0)
        }
    }

    @Test func `begin with a registration whose address is to be confirmed, once`() async throws {
        try await StoreFixture.with { fixture in
            let (users, events) = (PostgresUsers(pool: fixture.pool), UserEventStore(pool: fixture.pool))
            let pending = PendingUserStore(pool: fixture.pool)
            for (number, id) in Self.ids[..<2].enumerated() {
                _ = try await pending.add(
                    PendingUser(id: id, email: "ada@example.com", passwordHash: "hash", expires: Self.expires),
                    LinkToken(id: "t\(number)", hash: [1], expires: Self.expires))
            }
            let registered = try #require(try await events.takeUnpublished(10, leaseSeconds: 60).first)
            #expect(registered.kind == .registered && registered.account.id == Self.ids[0] && registered.provider == "local-userpass")
            #expect(registered.account.email == "ada@example.com" && registered.account.data == ["email": "ada@example.com"])
            try await Self.finish(registered.id, in: events)
            var account = Self.account(Self.ids[0], provider: "local-userpass")
            account.email = "ada@example.com"
            #expect(try await pending.confirm(account, token: "t0"))
            #expect(try await events.take(10, leaseSeconds: 60).map(\.kind) == [.created])
            #expect(try await users.find(id: Self.ids[0]) != nil)
        }
    }

    @Test func `of logins have the provider of the login`() async throws {
        try await StoreFixture.with { fixture in
            let (users, events) = (PostgresUsers(pool: fixture.pool), UserEventStore(pool: fixture.pool))
            var account = Self.account(Self.ids[0], provider: "custom-token")
            (account.email, account.passwordHash) = ("ada@example.com", "hash")
            try await users.create(account)
            #expect(try await users.add(Login(id: "l1", user: account.id, expires: Self.expires), .password(hash: "hash")))
            #expect(try await users.add(Login(id: "l2", user: account.id, expires: Self.expires), .none))
            var providers: [String] = []
            while let event = try await events.take(1, leaseSeconds: 60).first {
                providers.append(event.provider)
                try await Self.finish(event.id, in: events)
            }
            #expect(providers == ["custom-token", "local-userpass", "custom-token"])
        }
    }

    @Test func `are those of different users at a time, and an expired lease gives one back`() async throws {
        try await StoreFixture.with { fixture in
            let (users, events) = (PostgresUsers(pool: fixture.pool), UserEventStore(pool: fixture.pool))
            for id in Self.ids {
                try await users.create(Self.account(id))
                #expect(try await users.add(Login(id: "l\(id)", user: id, expires: Self.expires), .none))
            }
            let first = try await events.take(2, leaseSeconds: 60)
            #expect(first.map(\.account.id) == Array(Self.ids[..<2]) && first.allSatisfy { $0.kind == .created })
            #expect(try await events.take(10, leaseSeconds: 0).map(\.account.id) == [Self.ids[2]])
            // The lease of no time is over.
            #expect(try await events.take(10, leaseSeconds: 60).map(\.account.id) == [Self.ids[2]])
            #expect(try await events.lag() > 0)
            try await Self.finish(first[0].id, in: events)
            #expect(try await events.take(10, leaseSeconds: 60).map(\.kind) == [.loggedIn])
        }
    }

    @Test func `reach the topic and the triggers independently, each in order for a user`() async throws {
        try await StoreFixture.with { fixture in
            let (users, events) = (PostgresUsers(pool: fixture.pool), UserEventStore(pool: fixture.pool))
            try await users.create(Self.account(Self.ids[0]))
            #expect(try await users.add(Login(id: "l1", user: Self.ids[0], expires: Self.expires), .none))
            let first = try #require(try await events.take(10, leaseSeconds: 60).first)
            #expect(try await events.takeUnpublished(10, leaseSeconds: 60) == [first])
            // The lease of each is its own.
            #expect(try await events.takeUnpublished(10, leaseSeconds: 60).isEmpty)
            #expect(try await events.finish([first.id], at: .topic, of: [.topic, .triggers]).isEmpty)
            let second = try #require(try await events.takeUnpublished(10, leaseSeconds: 60).first)
            #expect(second.kind == .loggedIn)
            #expect(try await events.take(10, leaseSeconds: 60).isEmpty)
            try await events.keep(unpublished: [second.id], seconds: 0)
            #expect(try await events.takeUnpublished(10, leaseSeconds: 60) == [second])
            #expect(try await events.finish([first.id], at: .triggers, of: [.topic, .triggers]) == [first.id])
            #expect(try await events.take(10, leaseSeconds: 60) == [second])
        }
    }

    @Test func `are gone once all destinations of the app have them, unless a gateway with another configuration holds them`() async throws
    {
        try await StoreFixture.with { fixture in
            let (users, events) = (PostgresUsers(pool: fixture.pool), UserEventStore(pool: fixture.pool))
            try await users.create(Self.account(Self.ids[0]))
            let first = try #require(try await events.takeUnpublished(10, leaseSeconds: 60).first)
            #expect(try await events.finish([first.id], at: .topic, of: [.topic]) == [first.id])

            for number in 1...2 { #expect(try await users.add(Login(id: "l\(number)", user: Self.ids[0], expires: Self.expires), .none)) }
            let held = try #require(try await events.take(1, leaseSeconds: 60).first)
            #expect(try await events.takeUnpublished(10, leaseSeconds: 60) == [held])
            #expect(try await events.finish([held.id], at: .topic, of: [.topic]) == [])
            #expect(try await events.discard(10, of: []) == [.loggedIn: 1], "the other event")
            #expect(try await events.discard(10, of: [.topic]) == [:], "its triggers run elsewhere")
            try await events.postpone(held, seconds: 0)
            #expect(try await events.discard(10, of: [.topic, .triggers]) == [:])
            #expect(try await events.discard(10, of: [.topic]) == [.loggedIn: 1])

            try await users.setDisabled(id: Self.ids[0], true)
            try await users.delete(id: Self.ids[0])
            #expect(try await events.discard(1, of: []) == [.disabled: 1])
            #expect(try await events.discard(1, of: [.topic]) == [:], "it is not published")
            #expect(try await events.discard(10, of: []) == [.deleted: 1])
            #expect(try await events.lag() == 0)
        }
    }

    @Test func `keep their progress, and a call that is given up`() async throws {
        try await StoreFixture.with { fixture in
            let (users, events) = (PostgresUsers(pool: fixture.pool), UserEventStore(pool: fixture.pool))
            try await users.create(Self.account(Self.ids[0]))
            var event = try #require(try await events.take(1, leaseSeconds: 60).first)
            #expect(event.done.isEmpty && event.attempts == 0)
            event.done = ["a \"trigger\"", "b"]
            event.attempts = 3
            try await events.bury(event, trigger: "c", reason: "no\0answer")
            try await events.postpone(event, seconds: 0)
            #expect(try await events.take(1, leaseSeconds: 60) == [event])
            let failure = try await fixture.sql("SELECT trigger, attempts, reason, event ->> 'kind' FROM sluice.trigger_failure")
            #expect((0..<4).map { failure[0, $0] } == ["c", "3", "no␀answer", "created"])
        }
    }

    @Test func `are not added for accounts that are imported`() async throws {
        try await StoreFixture.with { fixture in
            _ = try await fixture.pool.withSession { session in
                try session.inTransaction { try UserImport(session).insert(Self.account(Self.ids[0]), created: nil) }
            }
            #expect(try await UserEventStore(pool: fixture.pool).take(10, leaseSeconds: 60).isEmpty)
            try await PostgresUsers(pool: fixture.pool).create(Self.account(Self.ids[1]))
            #expect(try await UserEventStore(pool: fixture.pool).take(10, leaseSeconds: 60).count == 1)
        }
    }
}
