import SluiceCore
package import SluicePorts
package import SluiceValues

/// The accounts and logins of the companion schema.
package struct PostgresUsers: UserDirectory {
    private let users: UserStore
    private let logins: LoginStore

    package init(pool: PostgresPool) {
        users = UserStore(pool: pool)
        logins = LoginStore(pool: pool)
    }

    package func create(_ account: UserAccount) async throws { try await users.create(account) }
    package func find(id: String) async throws -> UserAccount? { try await users.find(id: id) }
    package func find(email: String) async throws -> UserAccount? { try await users.find(email: email) }
    package func list(after id: String, limit: Int) async throws -> [UserAccount] { try await users.list(after: id, limit: limit) }

    package func setCustomData(id: String, _ data: JSON) async throws { try await users.setCustomData(id: id, data) }
    package func setData(id: String, _ data: JSON) async throws { try await users.setData(id: id, data) }
    package func link(_ link: IdentityLink, to id: String) async throws { try await users.link(link, to: id) }
    package func unlink(_ identity: UserIdentityKey, from id: String) async throws { try await users.unlink(identity, from: id) }
    package func setDisabled(id: String, _ isDisabled: Bool) async throws { try await users.setDisabled(id: id, isDisabled) }
    package func setPassword(id: String, _ hash: String) async throws { try await users.setPassword(id: id, hash) }
    package func delete(id: String) async throws { try await users.delete(id: id) }

    package func find(id: String, login: String) async throws -> (account: UserAccount, isLoggedIn: Bool)? {
        try await users.find(id: id, login: login)
    }

    package func add(_ login: Login, _ proof: Login.Proof) async throws -> Bool { try await logins.add(login, proof) }

    package func add(_ login: String, of identity: UserIdentityKey, expires: Int64) async throws -> UserAccount? {
        try await logins.add(login, of: identity, expires: expires)
    }

    package func take(login: String, generation: Int64, now: Int64) async throws -> UserAccount {
        let user = try await logins.take(login: login, generation: generation, now: now)
        guard let account = try await users.find(id: user) else {
            throw SluiceError(.invalidSession, "User \(user) no longer exists.")
        }
        return account
    }

    package func end(login: String) async throws { try await logins.end(login) }
    package func endLogins(of user: String) async throws { try await logins.endAll(of: user) }
}
