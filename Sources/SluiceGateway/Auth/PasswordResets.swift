package import SluicePorts
import SluiceCore
import SluiceNet

/// Sets the passwords of users who have a reset token. `PasswordRecovery` and `sluice migrate users` make such tokens.
package struct PasswordResets: Sendable {
    /// The longest id of a token, in bytes.
    private static let idBytes = 64
    /// App Services' name of the error for a token that is not valid.
    static let invalidName = "UserpassTokenInvalid"

    private let directory: any PasswordResetDirectory
    private let users: UserService

    package init(directory: any PasswordResetDirectory, users: UserService) {
        self.directory = directory
        self.users = users
    }

    /// Sets a password. The token is of no use afterwards, and the user's sessions end.
    ///
    /// Wrong tokens count against a limit of the address.
    ///
    /// - Throws: `providerDisabled`; `badRequest` for the password; an error named `UserpassTokenInvalid` for a wrong token;
    ///   `TooManyAttempts`.
    package func setPassword(_ password: String, token: String, id: String, from address: String) async throws {
        try users.require(provider: "local-userpass")
        try users.throttle.requireAttempt(.resets, from: address)
        let hash = APIKeys.hash(token)
        let now = users.environment.wallMilliseconds()
        // Only a valid token pays for the costly hash.
        guard Self.isPossible(id: id), let user = try await directory.user(resetToken: id, hash: hash, now: now) else {
            users.throttle.failed(.resets, from: address)
            throw Self.invalid
        }
        let stored = try await users.hash(newPassword: password, line: ClientNetwork(address).name)
        guard try await directory.setPassword(stored, resetToken: id, hash: hash, now: now) else { throw Self.invalid }
        // Before the answer, so that the sessions of the next login stay.
        await users.loginsEnded(of: user)
    }

    /// Sets the password of a user by the word of an operator, and ends all logins.
    ///
    /// - Throws: `userNotFound`; `badRequest` if the user has no e-mail address to log in with, or if the app does not accept the password.
    package func setPassword(_ password: String, of id: String) async throws {
        guard let account = try await users.directory.find(id: id) else { throw SluiceError(.userNotFound, "User \(id) does not exist.") }
        guard account.email != nil else {
            throw SluiceError(.badRequest, "User \(id) has no e-mail address.", fix: "Set passwords of users who log in with one.")
        }
        try await users.directory.setPassword(id: id, try await users.hash(newPassword: password, line: ""))
        try await users.directory.endLogins(of: id)
        await users.loginsEnded(of: id)
    }

    /// `false` for an id that no token has. PostgreSQL takes no text with NUL.
    static func isPossible(id: String) -> Bool { id.utf8.count <= idBytes && !id.utf8.contains(0) }

    static var invalid: ErrorResponse {
        ErrorResponse(
            SluiceError(.badRequest, "userpass token is expired or invalid", fix: "Request a new link. A link works once."),
            name: invalidName)
    }
}
