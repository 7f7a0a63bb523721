import SluiceCore
import SluicePorts
package import SluiceValues

/// Lets users who have forgotten their passwords set others, by mail or by the app's function.
package struct PasswordRecovery: Sendable {
    package enum Way: Sendable {
        /// The app has no mail server and no function.
        case none
        case mail(AccountMail)
        case function(AccountFunction)
    }

    private let users: UserService
    private let directory: any PasswordResetDirectory
    private let way: Way
    private let throttle: MailThrottle

    init(users: UserService, directory: any PasswordResetDirectory, way: Way, throttle: MailThrottle) {
        self.users = users
        self.directory = directory
        self.way = way
        self.throttle = throttle
    }

    private var now: Int64 { users.environment.wallMilliseconds() }

    /// Sends a link that sets a password. An address without an account gets none, and the caller does not learn which.
    ///
    /// - Throws: `providerDisabled`; an error named `NotCallable` if mails do not reset passwords; `invalidEmail`; `TooManyAttempts`.
    package func send(email: String, from address: String) async throws {
        try users.require(provider: "local-userpass")
        guard case .mail(let mail) = way else { throw NotOfferedRoutes.error(.resetMail) }
        let email = try EmailAddress(email).text
        try throttle.count(email, from: address)
        let link = AccountLink()
        guard try await directory.add(link.token(now: now), email: email) != nil else { return }
        mail.sendReset(to: email, link)
    }

    /// Lets the function decide on a new password. If the function has sent the token to the user, the password is set later.
    ///
    /// - Parameter arguments: Further arguments of the function, in extended JSON.
    /// - Throws: `providerDisabled`; an error named `NotCallable` if no function resets passwords; `userNotFound`; `badRequest` for the
    ///   password, or if the function rejects it; `TooManyAttempts`; the errors of the function.
    package func call(email: String, password: String, arguments: [JSON], from address: String) async throws {
        try users.require(provider: "local-userpass")
        guard case .function(let function) = way else { throw NotOfferedRoutes.error(.resetFunction) }
        let email = try EmailAddress(email).text
        try throttle.count(email, from: address)
        let line = ClientNetwork(address).name
        let hash = try await users.hash(newPassword: password, line: line)
        let link = AccountLink()
        let token = link.token(now: now)
        guard let account = try await users.directory.find(email: email), try await directory.add(token, email: email) != nil else {
            throw SluiceError(.userNotFound, "user not found")
        }
        let isCurrent = try await users.passwords.verify(password, hash: account.passwordHash, of: line)
        let request: JSON = [
            "token": .string(link.secret), "tokenId": .string(link.id), "username": .string(email), "password": .string(password),
            "currentPasswordValid": .bool(isCurrent),
        ]
        do {
            switch try await function.ask([request] + arguments) {
            case .success: try await set(hash, by: token, of: account)
            case .pending: break
            case .fail:
                throw SluiceError(
                    .badRequest, "failed to reset password for user \(email)", fix: "The app's reset function rejects the request.")
            }
        } catch {
            try await directory.remove(resetToken: token.id)
            throw error
        }
    }

    private func set(_ hash: String, by token: LinkToken, of account: UserAccount) async throws {
        guard try await directory.setPassword(hash, resetToken: token.id, hash: token.hash, now: now) else { throw PasswordResets.invalid }
        await users.loginsEnded(of: account.id)
    }
}
