/// A registration whose e-mail address is not confirmed yet.
package struct PendingUser: Hashable, Sendable {
    /// The id, which is that of the account later: 24 hexadecimal digits.
    package var id: String
    /// The e-mail, in the normal form of `EmailAddress`.
    package var email: String
    /// The hash, in the form of `PasswordHasher`; nil if several registrations compete for the address. Whose the password is, is not known
    /// then.
    package var passwordHash: String?
    /// The time at which the registration is deleted, in milliseconds since 1970. The same holds for the times below.
    package var expires: Int64
    /// The time of the first registration, as the directory has noted it; 0 before.
    package var registered: Int64 = 0

    package init(id: String, email: String, passwordHash: String?, expires: Int64) {
        self.id = id
        self.email = email
        self.passwordHash = passwordHash
        self.expires = expires
    }
}

/// The secret of a link, as a directory stores it.
package struct LinkToken: Hashable, Sendable {
    package var id: String
    /// The SHA-256 of the secret.
    package var hash: [UInt8]
    package var expires: Int64

    package init(id: String, hash: [UInt8], expires: Int64) {
        self.id = id
        self.hash = hash
        self.expires = expires
    }
}

/// The store of pending users and of the tokens that confirm them, as a port of authentication.
///
/// An address has one pending user at most. An address that gets an account is not pending any more.
package protocol PendingUserDirectory: Sendable {
    /// Adds a registration with its token.
    ///
    /// A token confirms the password that it was added with. If the address is pending, its user stays, gets this expiry and loses its
    /// password. Earlier tokens stay valid, with their passwords: a stranger who registers the address cannot replace that of its owner.
    /// - Returns: The pending user with the password of the token. Its id is that of the first registration.
    /// - Throws: `nameInUse` if an account has the address.
    func add(_ user: PendingUser, _ token: LinkToken) async throws -> PendingUser
    /// Adds a token for the password of a pending user, if the user has one. Else the account gets no password by this token.
    ///
    /// - Returns: The user; nil if the address is not pending. Nothing has been added then.
    func add(_ token: LinkToken, email: String, expires: Int64) async throws -> PendingUser?
    /// Adds a token for a pending user with this id, like `add(_:email:expires:)`. The call of an operator is noted in the audit log.
    func add(_ token: LinkToken, pendingID id: String, expires: Int64) async throws -> PendingUser?
    func find(pendingEmail email: String) async throws -> PendingUser?
    func find(pendingID id: String) async throws -> PendingUser?
    /// Returns pending users in the order of their ids, from the one after `id`. An empty `id` starts at the first.
    func listPending(after id: String, limit: Int) async throws -> [PendingUser]
    /// Returns the user of a token, with the password of the token; nil if the token is unknown, used or expired.
    func pendingUser(token id: String, hash: [UInt8], now: Int64) async throws -> PendingUser?
    /// Replaces a pending user by an account with its id.
    ///
    /// - Parameter token: The id of the token that is used; nil for the word of an operator or a function.
    /// - Returns: `false` if the user or the token does not exist any more. Nothing has been changed then.
    /// - Throws: `nameInUse` if another account has the address.
    func confirm(_ account: UserAccount, token: String?) async throws -> Bool
    /// Removes a token, and its user if no other token is left.
    func remove(token id: String) async throws
    /// Deletes a pending user.
    ///
    /// - Throws: `userNotFound`.
    func delete(pendingID id: String) async throws
}
