import GatewayTestSupport
import SluiceCore
import SluicePorts
import SluicePostgres
import Testing

/// The promises of the directory of pending users. The adapter to PostgreSQL keeps them, and so does the double that other tests use.
@Suite struct `A directory of pending users` {
    enum Kind: CaseIterable, Sendable { case postgres, memory }

    private struct Directory: Sendable {
        let pending: any PendingUserDirectory
        let users: any UserDirectory

        func add(_ id: String, _ email: String, password: String, token: LinkToken) async throws -> PendingUser {
            try await pending.add(PendingUser(id: id, email: email, passwordHash: password, expires: 5_000), token)
        }

        func confirm(_ user: PendingUser, token: String?) async throws -> Bool {
            try await pending.confirm(
                UserAccount(id: user.id, email: user.email, passwordHash: user.passwordHash, provider: "local-userpass"), token: token)
        }
    }

    private static func token(_ id: String, expires: Int64 = 1_000) -> LinkToken {
        LinkToken(id: id, hash: Array(id.utf8), expires: expires)
    }

    private static func with(_ kind: Kind, _ body: @escaping @Sendable (Directory) async throws -> Void) async throws {
        guard kind == .postgres else {
            let memory = MemoryDirectory()
            return try await body(Directory(pending: MemoryPendingUsers(memory), users: memory))
        }
        try await GatewayDatabase.with { conninfo in
            let connection = try await PostgresConnection.connect(conninfo)
            try await CompanionSchema.create(connection)
            await connection.close()
            let pool = PostgresPool(conninfo, name: "test", size: 4)
            do { try await body(Directory(pending: PendingUserStore(pool: pool), users: PostgresUsers(pool: pool))) } catch {
                await pool.close()
                throw error
            }
            await pool.close()
        }
    }

    @Test(arguments: Kind.allCases) func `has one user of an address, and each token has its own password`(kind: Kind) async throws {
        try await Self.with(kind) { directory in
            let first = try await directory.add("a", "ann@example.com", password: "p1", token: Self.token("t1"))
            let second = try await directory.add("b", "ann@example.com", password: "p2", token: Self.token("t2"))
            #expect(first.id == "a" && second.id == "a" && second.passwordHash == "p2")
            let again = try await directory.pending.add(Self.token("t3"), email: "ann@example.com", expires: 6_000)
            #expect(again?.id == "a" && again?.expires == 6_000)
            for (token, password) in [("t1", "p1"), ("t2", "p2"), ("t3", nil)] as [(String, String?)] {
                let user = try await directory.pending.pendingUser(token: token, hash: Array(token.utf8), now: 999)
                #expect(user?.passwordHash == password && user?.email == "ann@example.com")
                #expect(try await directory.pending.pendingUser(token: token, hash: [0], now: 999) == nil)
                #expect(try await directory.pending.pendingUser(token: token, hash: Array(token.utf8), now: 1_000) == nil)
            }
            #expect(try await directory.pending.add(Self.token("t4"), email: "bob@example.com", expires: 6_000) == nil)
        }
    }

    @Test(arguments: Kind.allCases) func `makes one account by the first token that is used`(kind: Kind) async throws {
        try await Self.with(kind) { directory in
            for number in 1...4 {
                _ = try await directory.add("a", "ann@example.com", password: "p\(number)", token: Self.token("t\(number)"))
            }
            let users = try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 1...4 {
                    group.addTask {
                        guard
                            let user = try await directory.pending.pendingUser(token: "t\(number)", hash: Array("t\(number)".utf8), now: 0)
                        else { return false }
                        return try await directory.confirm(user, token: "t\(number)")
                    }
                }
                return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            #expect(users == 1)
            #expect(try await directory.users.find(email: "ann@example.com")?.id == "a")
            #expect(try await directory.pending.find(pendingEmail: "ann@example.com") == nil)
            let error = await #expect(throws: SluiceError.self) {
                _ = try await directory.add("b", "ann@example.com", password: "p", token: Self.token("t5"))
            }
            #expect(error?.code == .nameInUse)
        }
    }

    @Test(arguments: Kind.allCases) func `forgets a user who gets an account in another way, and one without a token`(
        kind: Kind
    ) async throws {
        try await Self.with(kind) { directory in
            for (id, name) in [("a", "ann"), ("b", "bob"), ("c", "cat")] {
                _ = try await directory.add(id, "\(name)@example.com", password: "p", token: Self.token(name))
            }
            #expect(try await directory.pending.listPending(after: "a", limit: 1).map(\.id) == ["b"])
            try await directory.users.create(UserAccount(id: "x", email: "ann@example.com", provider: "local-userpass"))
            #expect(try await directory.pending.find(pendingID: "a") == nil)
            _ = try await directory.pending.add(Self.token("more"), email: "bob@example.com", expires: 6_000)
            try await directory.pending.remove(token: "bob")
            #expect(try await directory.pending.find(pendingID: "b") != nil, "another token is left")
            try await directory.pending.remove(token: "more")
            #expect(try await directory.pending.find(pendingID: "b") == nil)
            let cat = try #require(try await directory.pending.find(pendingID: "c"))
            #expect(try await !directory.confirm(cat, token: "unknown"))
            try await directory.pending.delete(pendingID: "c")
            #expect(try await !directory.confirm(cat, token: nil))
            let error = await #expect(throws: SluiceError.self) { try await directory.pending.delete(pendingID: "c") }
            #expect(error?.code == .userNotFound)
        }
    }

    @Test func `deletes what has expired`() async throws {
        try await GatewayDatabase.with { conninfo in
            let connection = try await PostgresConnection.connect(conninfo)
            try await CompanionSchema.create(connection)
            await connection.close()
            let pool = PostgresPool(conninfo, name: "test", size: 1)
            let store = PendingUserStore(pool: pool)
            _ = try await store.add(PendingUser(id: "a", email: "a@b.c", passwordHash: "p", expires: 5_000), Self.token("t1"))
            #expect(try await store.prune(now: 999) == 0)
            #expect(try await store.prune(now: 1_000) == 1)
            #expect(try await store.find(pendingID: "a") != nil)
            #expect(try await store.prune(now: 5_000) == 1)
            #expect(try await store.find(pendingID: "a") == nil)
            await pool.close()
        }
    }
}
