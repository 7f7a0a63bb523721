package import Logging
import SluiceCore
package import SluiceIdentity
package import SluicePorts
package import SluiceValues

/// Logs in users whom a provider identifies, and adds identities to accounts.
///
/// An identity belongs to one account for ever: the first login makes the account, and later ones find it.
package struct IdentityLogins: Sendable {
    private let users: UserService
    private let tokens: TokenLogins
    private let logger: Logger

    package init(users: UserService, tokens: TokenLogins, logger: Logger) {
        self.users = users
        self.tokens = tokens
        self.logger = logger
    }

    /// `true` for a provider whose users log in here.
    package func has(_ provider: String) -> Bool { tokens.has(provider) }

    /// Logs in by the body of a login.
    ///
    /// - Throws: The errors of `TokenLogins.identity`; `userDisabled`; `TooManyAttempts` after too many rejected tokens.
    package func logIn(by provider: String, _ body: JSON, from address: String) async throws -> UserService.Tokens {
        let identity = try await identity(by: provider, body, from: address)
        return try await users.login(identity)
    }

    /// Adds the identity of a login's body to an account.
    ///
    /// - Returns: The account with the identity.
    /// - Throws: As `logIn`; `identityInUse` if another account has it.
    package func link(by provider: String, _ body: JSON, to account: UserAccount, from address: String) async throws -> UserAccount {
        let identity = try await identity(by: provider, body, from: address)
        return try await users.link(IdentityLink(identity.key, data: identity.data), to: account.id)
    }

    private func identity(by provider: String, _ body: JSON, from address: String) async throws -> ProvenIdentity {
        try users.throttle.requireAttempt(.tokens, from: address)
        do throws(SluiceError) {
            return try await tokens.identity(by: provider, body)
        } catch {
            // A function that fails or is late has worked, too.
            if [.loginTokenRejected, .functionFailed, .functionUnavailable, .functionTimeout].contains(error.code) {
                users.throttle.failed(.tokens, from: address)
            }
            guard error.code == .loginTokenRejected else { throw error }
            // A stranger can send any number of tokens, so this is no warning. The reason is for operators alone.
            logger.info("A login token is not accepted.", metadata: ["provider": "\(provider)", "reason": "\(error.value ?? "")"])
            throw SluiceError(.loginTokenRejected, error.message, fix: error.fix)
        }
    }
}

extension ProvenIdentity {
    var key: UserIdentityKey { UserIdentityKey(provider: provider, id: id) }
}
