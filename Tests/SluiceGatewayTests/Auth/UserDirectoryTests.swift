import GatewayTestSupport
import SluiceCore
import SluicePorts
import SluicePostgres
import SluiceValues
import TestSupport
import Testing

/// The promises of the directories. The adapter to PostgreSQL keeps them, and so does the double that other tests use.
@Suite struct `A directory of users` {
    enum Kind: CaseIterable, Sendable { case postgres, memory }

    private struct Directory: Sendable {
        let users: any UserDirectory
        let keys: any APIKeyDirectory
        let resets: any PasswordResetDirectory
        let addReset: @Sendable (_ id: String, _ hash: [UInt8], _ user: String, _ expires: Int64) async throws -> Void
        /// Empty for the double.
        var conninfo = ""

        func add(_ id: String, of user: String, _ proof: Login.Proof = .none, expires: Int64 = far) async throws -> Bool {
            try await users.add(Login(id: id, user: user, expires: expires), proof)
        }

        /// Logs in by an identity.
        /// - Returns: The account that has it; nil for none.
        func login(by identity: UserIdentityKey) async throws -> UserAccount? {
            try await users.add("login-\(UInt64.random(in: 0 ... .max))", of: identity, expires: far)
        }

        /// The ids of the logins among these that have not ended.
        func open(_ ids: [String], of user: String) async throws -> [String] {
            var open: [String] = []
            for id in ids where try await users.find(id: user, login: id)?.isLoggedIn == true { open.append(id) }
            return open
        }

        func code(_ body: () async throws -> some Any) async -> ErrorCode? {
            do { _ = try await body() } catch { return (error as? SluiceError)?.code }
            return nil
        }
    }

    /// A time that does not come.
    private static let far: Int64 = 4_000_000_000_000

    private static func with(_ kind: Kind, _ body: @escaping @Sendable (Directory) async throws -> Void) async throws {
        func run(_ directory: Directory) async throws {
            for id in ["ann", "bob"] {
                try await directory.users.create(
                    UserAccount(id: id, email: "\(id)@example.com", passwordHash: "old", provider: "local-userpass"))
            }
            try await body(directory)
        }
        switch kind {
        case .memory:
            let memory = MemoryDirectory()
            try await run(
                Directory(users: memory, keys: memory, resets: memory) { memory.addReset($0, hash: $1, user: $2, expires: $3) })
        case .postgres:
            try await GatewayDatabase.with { conninfo in
                let connection = try await PostgresConnection.connect(conninfo)
                try await CompanionSchema.create(connection)
                await connection.close()
                let pool = PostgresPool(conninfo, name: "test", size: 4)
                let resets: @Sendable (String, [UInt8], String, Int64) async throws -> Void = { id, hash, user, expires in
                    try await pool.withConnection { connection in
                        _ = try await connection.execute(
                            "INSERT INTO sluice.password_reset VALUES ($1, $2, $3, now(), to_timestamp($4::bigint / 1000.0))",
                            [.text(id), .text(user), .bytes(hash), .int(expires)])
                    }
                }
                let directory = Directory(
                    users: PostgresUsers(pool: pool), keys: APIKeyStore(pool: pool), resets: PasswordResetStore(pool: pool),
                    addReset: resets,
                    conninfo: conninfo)
                do { try await run(directory) } catch {
                    await pool.close()
                    throw error
                }
                await pool.close()
            }
        }
    }

    @Test(arguments: Kind.allCases) func `keeps a login until it or all logins of its user end`(kind: Kind) async throws {
        try await Self.with(kind) { directory in
            for (id, user) in [("a1", "ann"), ("a2", "ann"), ("a3", "ann"), ("b1", "bob")] {
                #expect(try await directory.add(id, of: user))
            }
            #expect(try await directory.open(["a1", "a2", "a3", "b1"], of: "ann") == ["a1", "a2", "a3"], "bob's login is not hers")
            try await directory.users.end(login: "a2")
            try await directory.users.end(login: "a2")
            #expect(try await directory.open(["a1", "a2", "a3"], of: "ann") == ["a1", "a3"])
            try await directory.users.endLogins(of: "ann")
            #expect(try await directory.open(["a1", "a2", "a3"], of: "ann") == [])
            #expect(try await directory.open(["b1"], of: "bob") == ["b1"])
            #expect(try await directory.users.find(id: "nobody", login: "b1") == nil)
            #expect(try await !directory.add("n1", of: "nobody"))
        }
    }

    @Test(arguments: Kind.allCases) func `ends logins with the account, and restores none`(kind: Kind) async throws {
        try await Self.with(kind) { directory in
            for (id, user) in [("a1", "ann"), ("b1", "bob")] { #expect(try await directory.add(id, of: user)) }
            try await directory.users.setDisabled(id: "ann", true)
            #expect(try await !directory.add("a2", of: "ann"))
            #expect(await directory.code { try await directory.users.take(login: "a1", generation: 0, now: 0) } == .invalidSession)
            try await directory.users.setDisabled(id: "ann", false)
            #expect(try await directory.open(["a1", "a2"], of: "ann") == [])
            try await directory.users.delete(id: "bob")
            #expect(await directory.code { try await directory.users.take(login: "b1", generation: 0, now: 0) } == .invalidSession)
            #expect(try await directory.users.find(id: "bob", login: "b1") == nil)
        }
    }

    @Test(arguments: Kind.allCases) func `adds no login for a password that was changed meanwhile`(kind: Kind) async throws {
        try await Self.with(kind) { directory in
            #expect(try await directory.add("a1", of: "ann", .password(hash: "old")))
            try await directory.addReset("r", [1], "ann", 1_000)
            #expect(try await directory.resets.setPassword("new", resetToken: "r", hash: [1], now: 0))
            #expect(try await !directory.add("a2", of: "ann", .password(hash: "old")))
            #expect(try await directory.add("a3", of: "ann", .password(hash: "new")))
            #expect(try await directory.open(["a1", "a2", "a3"], of: "ann") == ["a3"])
        }
    }

    @Test(arguments: Kind.allCases) func `sets a password once for a token, until it expires`(kind: Kind) async throws {
        try await Self.with(kind) { directory in
            try await directory.addReset("late", [1], "ann", 1_000)
            #expect(try await directory.resets.user(resetToken: "late", hash: [1], now: 999) == "ann")
            #expect(try await directory.resets.user(resetToken: "late", hash: [1], now: 1_000) == nil)
            #expect(try await directory.resets.user(resetToken: "late", hash: [2], now: 0) == nil)
            #expect(try await !directory.resets.setPassword("p", resetToken: "late", hash: [1], now: 1_000))
            try await directory.addReset("r", [1], "ann", 1_000)
            let done = try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<4 {
                    group.addTask { try await directory.resets.setPassword("p\(number)", resetToken: "r", hash: [1], now: 0) }
                }
                return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            #expect(done == 1)
            #expect(try await directory.users.find(id: "ann")?.passwordHash?.hasPrefix("p") == true)
            #expect(try await !directory.resets.setPassword("x", resetToken: "late", hash: [1], now: 0), "all tokens of the user are used")
        }
    }

    @Test(arguments: Kind.allCases) func `ends the logins of an API key that is disabled or deleted`(kind: Kind) async throws {
        try await Self.with(kind) { directory in
            for id in ["k1", "k2"] {
                let key = APIKey(id: id, user: "ann", name: id, isDisabled: false, isServer: false)
                try await directory.keys.add(key, hash: Array(id.utf8), most: 9)
            }
            for (id, proof) in [("a1", Login.Proof.apiKey(id: "k1")), ("a2", .apiKey(id: "k2")), ("a3", .none)] {
                #expect(try await directory.add(id, of: "ann", proof))
            }
            try await directory.keys.setDisabled(key: "k1", of: "ann", true)
            #expect(try await directory.open(["a1", "a2", "a3"], of: "ann") == ["a2", "a3"])
            #expect(try await !directory.add("a4", of: "ann", .apiKey(id: "k1")))
            try await directory.keys.setDisabled(key: "k1", of: "ann", false)
            #expect(try await directory.open(["a1"], of: "ann") == [])
            #expect(try await directory.add("a5", of: "ann", .apiKey(id: "k1")))
            try await directory.keys.delete(key: "k2", of: "ann")
            #expect(try await directory.open(["a2", "a3", "a5"], of: "ann") == ["a3", "a5"])
            #expect(try await !directory.add("a6", of: "ann", .apiKey(id: "k2")))
        }
    }

    @Test(arguments: Kind.allCases) func `ends a login whose replaced refresh token is used again`(kind: Kind) async throws {
        try await Self.with(kind) { (directory: Directory) async throws in
            for id in ["a1", "a2", "a3"] { #expect(try await directory.add(id, of: "ann", expires: 10_000)) }
            func take(_ login: String, _ generation: Int64, now: Int64 = 0) async -> ErrorCode? {
                await directory.code { try await directory.users.take(login: login, generation: generation, now: now) }
            }
            // The answers with generation 1 were lost.
            for generation: Int64 in [0, 0, 1, 1, 2, 3] { #expect(await take("a1", generation) == nil, "\(generation)") }
            #expect(await take("a1", 2) == .invalidSession)
            #expect(await take("a1", 3) == .invalidSession, "the login has ended for the newest one too")
            #expect(try await directory.open(["a1", "a2"], of: "ann") == ["a2"])
            #expect(await take("a2", 0, now: 9_999) == nil)
            #expect(await take("a2", 0, now: 10_000) == .invalidSession)
            // Two processes of an app that refresh at once have two tokens of one generation.
            async let (first, second) = (take("a3", 1), take("a3", 1))
            #expect(await first == nil)
            #expect(await second == nil)
        }
    }

    // MARK: Identities

    private static let ada = UserIdentityKey(provider: "custom-token", id: "ada")

    /// An account with one identity.
    private static func account(_ id: String, _ identity: UserIdentityKey) -> UserAccount {
        UserAccount(id: id, provider: identity.provider, identities: [identity.json])
    }

    @Test(arguments: Kind.allCases) func `gives an identity to one account`(kind: Kind) async throws {
        try await Self.with(kind) { directory in
            #expect(try await directory.login(by: Self.ada) == nil)
            let outcomes = await withTaskGroup(of: ErrorCode?.self) { group in
                for number in 0..<4 {
                    group.addTask {
                        await directory.code { try await directory.users.create(Self.account("u\(number)", Self.ada)) }
                    }
                }
                return await group.reduce(into: [ErrorCode?]()) { $0.append($1) }
            }
            #expect(outcomes.count { $0 == nil } == 1 && outcomes.count { $0 == .identityInUse } == 3, "\(outcomes)")
            let owner = try #require(try await directory.login(by: Self.ada))
            #expect(try await directory.login(by: .init(provider: "oauth2-apple", id: "ada")) == nil)
            try await directory.users.delete(id: owner.id)
            #expect(try await directory.login(by: Self.ada) == nil)
            try await directory.users.create(Self.account("again", Self.ada))
        }
    }

    @Test(arguments: Kind.allCases) func `adds an identity to an account, once`(kind: Kind) async throws {
        try await Self.with(kind) { directory in
            let users = directory.users
            let anonymous = UserIdentityKey(provider: "anon-user", id: "an")
            try await users.create(Self.account("an", anonymous))
            for _ in 0..<2 { try await users.link(IdentityLink(Self.ada, data: ["name": "Ada"]), to: "an") }
            let linked = try #require(try await directory.login(by: Self.ada))
            #expect(linked.id == "an" && linked.provider == "custom-token" && linked.data == ["name": "Ada"])
            #expect(linked.identities == [anonymous.json, Self.ada.json])
            #expect(await directory.code { try await users.link(IdentityLink(Self.ada, data: [:]), to: "bob") } == .identityInUse)
            #expect(try await users.find(id: "bob")?.identities == .array([]))
        }
    }

    @Test(arguments: Kind.allCases) func `moves an unclaimed e-mail to another account, and no other one`(kind: Kind) async throws {
        try await Self.with(kind) { directory in
            let users = directory.users
            func link(_ email: String, hash: String = "h") -> IdentityLink {
                IdentityLink(.init(provider: "local-userpass", id: email), data: [:], password: .init(email: email, hash: hash))
            }
            var registered = Self.account("new", .init(provider: "local-userpass", id: "eve@example.com"))
            (registered.email, registered.passwordHash, registered.isUnclaimed) = ("eve@example.com", "h", true)
            try await users.create(registered)
            try await users.create(Self.account("an", .init(provider: "anon-user", id: "an")))
            #expect(
                await directory.code { try await users.link(link("eve@example.com"), to: "bob") } == .identityInUse, "bob has an e-mail")
            try await users.link(link("eve@example.com"), to: "an")
            #expect(try await users.find(email: "eve@example.com")?.id == "an")
            #expect(try await users.find(id: "an")?.passwordHash == "h")
            #expect(try await users.find(id: "new") == nil)

            try await users.create(Self.account("an2", .init(provider: "anon-user", id: "an2")))
            #expect(await directory.code { try await users.link(link("ann@example.com", hash: "old"), to: "an2") } == .identityInUse)
            (registered.id, registered.email) = ("new2", "kim@example.com")
            registered.identities = [["id": "kim@example.com", "provider_type": "local-userpass"]]
            try await users.create(registered)
            #expect(try await directory.add("l", of: "new2", .password(hash: "h")))
            #expect(
                await directory.code { try await users.link(link("kim@example.com"), to: "an2") } == .identityInUse, "kim has logged in")
        }
    }

    @Test(arguments: Kind.allCases) func `removes an identity with the logins, and keeps the last one`(kind: Kind) async throws {
        try await Self.with(kind) { directory in
            let users = directory.users
            let anonymous = UserIdentityKey(provider: "anon-user", id: "an")
            try await users.create(Self.account("an", anonymous))
            try await users.link(IdentityLink(Self.ada, data: [:]), to: "an")
            #expect(await directory.code { try await users.unlink(Self.ada, from: "an") } == .badRequest, "she could not log in again")
            let apple = UserIdentityKey(provider: "oauth2-apple", id: "apple-ada")
            try await users.link(IdentityLink(apple, data: [:]), to: "an")
            #expect(try await directory.add("l", of: "an", .identity(Self.ada)))
            try await users.unlink(Self.ada, from: "an")
            #expect(try await directory.open(["l"], of: "an") == [])
            #expect(try await directory.login(by: Self.ada) == nil)
            #expect(try await !directory.add("l2", of: "an", .identity(Self.ada)), "the identity is not hers any more")
            #expect(await directory.code { try await users.unlink(Self.ada, from: "an") } == .badRequest)
            try await users.unlink(anonymous, from: "an")
            #expect(await directory.code { try await users.unlink(apple, from: "an") } == .badRequest)
            #expect(try await directory.login(by: apple)?.id == "an")
        }
    }

    @Test(arguments: Kind.allCases) func `adds a login to the account of an identity, and claims it`(kind: Kind) async throws {
        try await Self.with(kind) { directory in
            let users = directory.users
            func add(_ login: String, _ identity: UserIdentityKey = Self.ada) async throws -> UserAccount? {
                try await users.add(login, of: identity, expires: Self.far)
            }
            #expect(try await add("l0") == nil)
            var account = Self.account("u1", Self.ada)
            (account.data, account.customData, account.isUnclaimed) = (["name": "Ada"], ["team": 4], true)
            try await users.create(account)
            #expect(try await add("l0", .init(provider: "oauth2-apple", id: "ada")) == nil)
            #expect(try await directory.open(["l0"], of: "u1") == [])
            #expect(try await add("l1")?.id == "u1")
            #expect(try await users.find(id: "u1")?.isUnclaimed == false)
            account.isUnclaimed = false
            #expect(try await add("l2") == account)
            #expect(try await directory.open(["l1", "l2"], of: "u1") == ["l1", "l2"])
            try await users.setDisabled(id: "u1", true)
            #expect(try await add("l3")?.isDisabled == true)
            try await users.setDisabled(id: "u1", false)
            #expect(try await directory.open(["l1", "l2", "l3"], of: "u1") == [])
        }
    }

    @Test func `lets a login by an identity wait for its removal that is under way`() async throws {
        try await Self.with(.postgres) { directory in
            try await directory.users.create(Self.account("u1", Self.ada))
            let connection = try await PostgresConnection.connect(directory.conninfo)
            try await connection.script("BEGIN; UPDATE sluice.user_account SET identities = '[]' WHERE id = 'u1'")
            async let found = directory.users.add("l1", of: Self.ada, expires: Self.far)
            #expect(try await Self.waits(for: connection))
            try await connection.script("COMMIT")
            #expect(try await found == nil)
            #expect(try await directory.open(["l1"], of: "u1") == [])
            await connection.close()
        }
    }

    @Test func `lets a login wait for a change of the password that is under way`() async throws {
        try await Self.with(.postgres) { directory in
            let connection = try await PostgresConnection.connect(directory.conninfo)
            try await connection.script("BEGIN; UPDATE sluice.user_account SET password_hash = 'new' WHERE id = 'ann'")
            async let isAdded = directory.add("a1", of: "ann", .password(hash: "old"))
            #expect(try await Self.waits(for: connection))
            try await connection.script("COMMIT")
            #expect(try await !isAdded)
            #expect(try await directory.open(["a1"], of: "ann") == [])
            await connection.close()
        }
    }

    /// Waits until a session waits for a lock of the connection.
    private static func waits(for connection: PostgresConnection) async throws -> Bool {
        try await eventually(every: .milliseconds(20)) {
            let waiting = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            return try await !connection.query(waiting).isEmpty
        }
    }
}
