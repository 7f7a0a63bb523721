/// The store of the tokens with which users set a new password. It holds only their hashes.
package protocol PasswordResetDirectory: Sendable {
    /// Returns the id of a token's user; nil if the token is unknown, used or expired.
    ///
    /// - Parameters:
    ///   - id: The id of the token.
    ///   - hash: The SHA-256 of the token's text.
    ///   - now: The current time, in milliseconds since 1970.
    func user(resetToken id: String, hash: [UInt8], now: Int64) async throws -> String?

    /// Sets the password of a token's user. Removes the user's reset tokens and revokes the refresh tokens.
    ///
    /// - Parameter password: The hash, in the form of `PasswordHasher`.
    /// - Returns: `false` if the token is no longer valid. Nothing has been changed then.
    func setPassword(_ password: String, resetToken id: String, hash: [UInt8], now: Int64) async throws -> Bool

    /// Adds a token for the account of an e-mail. Earlier tokens stay valid, so that a stranger cannot make the link of the owner invalid.
    ///
    /// - Returns: The id of the user; nil if no account that is enabled has the e-mail. Nothing has been added then.
    func add(_ token: LinkToken, email: String) async throws -> String?
    /// Removes a token. Does nothing if it does not exist.
    func remove(resetToken id: String) async throws
}
