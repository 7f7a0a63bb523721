package import SluicePorts
import SluiceCore
import SluiceNet

/// Sets the passwords of users who have a reset token. `sluice migrate users` makes such tokens.
package struct PasswordResets: Sendable {
    /// The longest id of a token, in bytes.
    private static let idBytes = 64

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
    /// - Throws: `badRequest` for the password's length; an error named `UserpassTokenInvalid` for a wrong token; `TooManyAttempts`.
    package func setPassword(_ password: String, token: String, id: String, from address: String) async throws {
        try users.throttle.requireAttempt(.resets, from: address)
        let hash = APIKeys.hash(token)
        let now = users.environment.wallMilliseconds()
        // No token has another id, and PostgreSQL takes no text with NUL.
        let isPossible = id.utf8.count <= Self.idBytes && !id.utf8.contains(0)
        // Only a valid token pays for the costly hash.
        guard isPossible, let user = try await directory.user(resetToken: id, hash: hash, now: now) else {
            users.throttle.failed(.resets, from: address)
            throw Self.invalid
        }
        let stored = try await users.hash(newPassword: password, line: ClientNetwork(address).name)
        guard try await directory.setPassword(stored, resetToken: id, hash: hash, now: now) else { throw Self.invalid }
        // Before the answer, so that the sessions of the next login stay.
        await users.loginsEnded(of: user)
    }

    private static var invalid: ErrorResponse {
        ErrorResponse(
            SluiceError(
                .badRequest, "userpass token is expired or invalid",
                fix: "Ask the operator for a new link. A link sets a password once."),
            name: "UserpassTokenInvalid")
    }
}
