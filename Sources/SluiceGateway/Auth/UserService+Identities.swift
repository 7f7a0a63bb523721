import SluiceCore
import SluiceIdentity
package import SluicePorts
import SluiceValues

// The identities of users: logins by those of providers, and the identities of one account.
extension UserService {
    /// Logs in a user whom a provider has identified. The first login makes the account.
    ///
    /// - Throws: `userDisabled`.
    func login(_ identity: ProvenIdentity) async throws -> Tokens {
        // The second round is for another login of the same new user, which was faster.
        for _ in 0..<2 {
            // The directory finds the user.
            var login = tokens.login(of: "", lifetime: settings.refreshTokenLifetime)
            if let found = try await directory.add(login.id, of: identity.key, expires: login.expires) {
                guard !found.isDisabled else { throw SluiceError(.userDisabled, "User \(found.id) is disabled.") }
                login.user = found.id
                return issue(login, of: try await update(found, identity.data))
            }
            do {
                return try await self.login(try await create(identity), .identity(identity.key))
            } catch let error as SluiceError where error.code == .identityInUse { continue }
        }
        throw SluiceError(.internalError, "The account of an identity of \(identity.provider) could not be found or made.")
    }

    /// Creates the account of a user whom a provider has identified.
    ///
    /// - Throws: `identityInUse` if there is one.
    private func create(_ identity: ProvenIdentity) async throws -> UserAccount {
        try await add(UserAccount(id: newID(), provider: identity.provider, identities: [identity.key.json], data: identity.data))
    }

    /// Updates the metadata of an account from a provider. Members of other providers stay.
    private func update(_ account: UserAccount, _ data: JSON) async throws -> UserAccount {
        var updated = account
        let names = Set((data.members ?? []).map(\.key))
        updated.data = .object((account.data.members ?? []).filter { !names.contains($0.key) } + (data.members ?? []))
        if updated.data.isSame(as: account.data) { return account }
        try await directory.setData(id: account.id, data)
        await changed(account.id, .customData)
        return updated
    }

    /// Adds an identity to an account. Its sessions evaluate their rules again.
    ///
    /// - Returns: The account with the identity.
    func link(_ link: IdentityLink, to id: String) async throws -> UserAccount {
        try await directory.link(link, to: id)
        await changed(id, .customData)
        return try Self.usable(try await directory.find(id: id), id)
    }

    /// Adds an e-mail and its password to an account. A registration comes first.
    ///
    /// - Throws: As `login`; `identityInUse` if a user has logged in with them before.
    func link(email: String, password: String, to account: UserAccount, from address: String) async throws -> UserAccount {
        let (owner, hash) = try await verify(email: email, password: password, from: address)
        guard let email = owner.email else { throw Self.wrongPassword }
        return try await link(
            IdentityLink(
                UserIdentityKey(provider: "local-userpass", id: email), data: ["email": .string(email)],
                password: .init(email: email, hash: hash)), to: account.id)
    }

    /// Removes an identity from an account, and ends its logins.
    ///
    /// - Throws: `badRequest` if the account does not have it, or has no other one; `userNotFound`.
    package func unlink(_ identity: UserIdentityKey, from id: String) async throws {
        try await directory.unlink(identity, from: id)
        await changed(id, .loggedOut)
    }
}
