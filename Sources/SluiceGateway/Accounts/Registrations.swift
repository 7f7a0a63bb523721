import SluiceCore
import SluiceNet
package import SluicePorts
import SluiceValues

/// Registers users of `local-userpass`, and confirms their e-mail addresses.
///
/// A user whose address is to be confirmed is pending: there is no account yet, and no login.
package struct Registrations: Sendable {
    /// The way to confirm an address.
    package enum Confirmation: Sendable {
        case automatic
        case mail(AccountMail)
        case function(AccountFunction)
    }

    private let users: UserService
    private let pending: any PendingUserDirectory
    private let confirmation: Confirmation
    private let isClosed: Bool
    private let throttle: MailThrottle

    /// - Parameter isClosed: `true` if only operators create accounts.
    init(
        users: UserService, pending: any PendingUserDirectory, confirmation: Confirmation, isClosed: Bool, throttle: MailThrottle
    ) {
        self.users = users
        self.pending = pending
        self.confirmation = confirmation
        self.isClosed = isClosed
        self.throttle = throttle
    }

    // MARK: Registering

    /// Registers a user. To register a pending address again sends another mail, or calls the function again.
    ///
    /// - Throws: `providerDisabled`; `permissionDenied` if registration is closed; `invalidEmail`; `badRequest` for the password;
    ///   `nameInUse` if an account has the address; `TooManyAttempts`; the function's errors.
    package func register(email: String, password: String, from address: String) async throws {
        try users.require(provider: "local-userpass")
        guard !isClosed else {
            throw SluiceError(.permissionDenied, "Registration is closed.", fix: "Ask the operator of the app for an account.")
        }
        if case .automatic = confirmation {
            try await users.register(email: email, password: password, from: address)
            return
        }
        let email = try EmailAddress(email).text
        if case .mail = confirmation { _ = try MailAddress(email) }
        try users.throttle.countRegistration(from: address)
        try throttle.count(email, from: address)
        if try await users.directory.find(email: email) != nil { throw SluiceError(.nameInUse, "name already in use: \(email)") }
        let hash = try await users.hash(newPassword: password, line: ClientNetwork(address).name)
        let link = AccountLink()
        let new = PendingUser(id: users.newID(), email: email, passwordHash: hash, expires: expiry)
        try await ask(try await pending.add(new, link.token(now: now)), link)
    }

    private var now: Int64 { users.environment.wallMilliseconds() }
    private var expiry: Int64 { now + Limits.pendingUserSeconds * 1_000 }

    /// Sends the link of a pending user, or lets the function decide. If the function does not accept the user, the token is removed.
    private func ask(_ user: PendingUser, _ link: AccountLink) async throws {
        switch confirmation {
        case .automatic: try await confirm(user, token: link.id)
        case .mail(let mail): mail.sendConfirmation(to: user.email, link)
        case .function(let function):
            do {
                switch try await function.ask([Self.argument(user, link)]) {
                case .success: try await confirm(user, token: link.id)
                case .pending: break
                case .fail:
                    throw SluiceError(
                        .badRequest, "failed to confirm user \(user.email)", fix: "The app's confirmation function rejects the address.")
                }
            } catch {
                try await pending.remove(token: link.id)
                throw error
            }
        }
    }

    private static func argument(_ user: PendingUser, _ link: AccountLink) -> JSON {
        ["token": .string(link.secret), "tokenId": .string(link.id), "username": .string(user.email)]
    }

    // MARK: Confirming

    /// Confirms an address by the token of a link. Wrong tokens count against a limit of the network address.
    ///
    /// - Throws: `providerDisabled`; an error named `UserpassTokenInvalid` for a wrong, used or expired token; `TooManyAttempts`.
    package func confirm(token: String, id: String, from address: String) async throws {
        try users.require(provider: "local-userpass")
        try users.throttle.requireAttempt(.resets, from: address)
        guard PasswordResets.isPossible(id: id),
            let user = try await pending.pendingUser(token: id, hash: APIKeys.hash(token), now: now)
        else {
            users.throttle.failed(.resets, from: address)
            throw PasswordResets.invalid
        }
        try await confirm(user, token: id)
    }

    /// Confirms an address by the word of an operator.
    ///
    /// - Throws: `userNotFound` if there is no such pending user.
    package func confirm(id: String) async throws { try await confirm(try await user(id: id), token: nil) }

    private func confirm(_ user: PendingUser, token: String?) async throws {
        var account = UserService.account(provider: "local-userpass", email: user.email, id: user.id)
        account.passwordHash = user.passwordHash
        // The user may link the e-mail to an account that is older.
        account.isUnclaimed = true
        try await users.permit(account)
        guard try await pending.confirm(account, token: token) else { throw PasswordResets.invalid }
    }

    private func user(id: String) async throws -> PendingUser {
        guard let user = try await pending.find(pendingID: id) else { throw Self.unknown(id) }
        return user
    }

    private static func unknown(_ id: String) -> SluiceError { SluiceError(.userNotFound, "Pending user \(id) does not exist.") }

    // MARK: Once more

    /// Sends another confirmation mail. An address that is not pending gets none, and the caller does not learn which.
    ///
    /// - Throws: `providerDisabled`; an error named `NotCallable` if mails do not confirm; `userAlreadyConfirmed`; `TooManyAttempts`.
    package func resend(email: String, from address: String) async throws {
        guard case .mail = confirmation else { throw NotOfferedRoutes.error(.confirmationMail) }
        try await repeatConfirmation(of: email, from: address)
    }

    /// Calls the confirmation function again. The errors are those of `resend` and of the function.
    package func retry(email: String, from address: String) async throws {
        guard case .function = confirmation else { throw NotOfferedRoutes.error(.confirmationFunction) }
        try await repeatConfirmation(of: email, from: address)
    }

    private func repeatConfirmation(of email: String, from address: String) async throws {
        try users.require(provider: "local-userpass")
        let email = try EmailAddress(email).text
        try throttle.count(email, from: address)
        // A registration tells the same.
        if try await users.directory.find(email: email) != nil { throw SluiceError(.userAlreadyConfirmed, "already confirmed") }
        let link = AccountLink()
        guard let user = try await pending.add(link.token(now: now), email: email, expires: expiry) else { return }
        try await ask(user, link)
    }

    /// Sends another mail, or calls the function again, by the word of an operator.
    ///
    /// - Throws: `userNotFound`; the errors of the function.
    package func resend(id: String) async throws {
        let link = AccountLink()
        guard let user = try await pending.add(link.token(now: now), pendingID: id, expires: expiry) else { throw Self.unknown(id) }
        try await ask(user, link)
    }

    // MARK: Operators

    package func list(after id: String, limit: Int) async throws -> [PendingUser] {
        try await pending.listPending(after: id, limit: limit)
    }

    /// - Throws: `userNotFound`.
    package func delete(id: String) async throws { try await pending.delete(pendingID: id) }
}
