import SluiceCore
import SluiceValues

/// Creates accounts with e-mail and password. The variants with completion handlers call them on no particular thread.
public struct EmailPasswordAuth: Sendable {
    let app: App

    /// Creates an account, without logging in.
    /// - Throws: `AppError`, such as `accountNameInUse`.
    public func registerUser(email: String, password: String) async throws {
        let body: JSON = ["email": .string(email), "password": .string(password)]
        _ = try await app.http.send(.post, "\(app.path)/auth/providers/local-userpass/register", body: body)
    }

    public func registerUser(email: String, password: String, completion: @Sendable @escaping ((any Error)?) -> Void) {
        call(completion) { try await self.registerUser(email: email, password: password) }
    }

    /// Sets a password with the token of a link that the server's operator sent. Ends the user's sessions, and logs nobody in.
    ///
    /// - Throws: `AppError`, for a token that is wrong, used or expired.
    public func resetPassword(to password: String, token: String, tokenId: String) async throws {
        let body: JSON = ["token": .string(token), "tokenId": .string(tokenId), "password": .string(password)]
        _ = try await app.http.send(.post, "\(app.path)/auth/providers/local-userpass/reset", body: body)
    }

    public func resetPassword(
        to password: String, token: String, tokenId: String, completion: @Sendable @escaping ((any Error)?) -> Void
    ) {
        call(completion) { try await self.resetPassword(to: password, token: token, tokenId: tokenId) }
    }
}

/// RealmSwift's calls that the server does not offer.
extension EmailPasswordAuth {
    /// - Throws: `AppError.notCallable`, always: registration confirms a user.
    public func confirmUser(_ token: String, tokenId: String) async throws { throw Self.confirmation }
    /// - Throws: `AppError.notCallable`, always: registration confirms a user.
    public func resendConfirmationEmail(_ email: String) async throws { throw Self.confirmation }
    /// - Throws: `AppError.notCallable`, always: registration confirms a user.
    public func retryCustomConfirmation(_ email: String) async throws { throw Self.confirmation }
    /// - Throws: `AppError.notCallable`, always: the server's operator handles forgotten passwords.
    public func sendResetPasswordEmail(_ email: String) async throws { throw Self.password }
    /// - Throws: `AppError.notCallable`, always: the server's operator handles forgotten passwords.
    public func callResetPasswordFunction(email: String, password: String, args: [AnyBSON]) async throws { throw Self.password }

    private static var confirmation: AppError {
        .notOffered("Confirming an e-mail address", "Leave it out: users are confirmed when they register.")
    }

    private static var password: AppError {
        .notOffered(
            "Resetting a password", "Ask the server's operator to delete the account and register again, or log in with other credentials.")
    }

    public func confirmUser(_ token: String, tokenId: String, completion: @Sendable @escaping ((any Error)?) -> Void) {
        call(completion) { try await self.confirmUser(token, tokenId: tokenId) }
    }

    public func resendConfirmationEmail(_ email: String, completion: @Sendable @escaping ((any Error)?) -> Void) {
        call(completion) { try await self.resendConfirmationEmail(email) }
    }

    public func retryCustomConfirmation(_ email: String, completion: @Sendable @escaping ((any Error)?) -> Void) {
        call(completion) { try await self.retryCustomConfirmation(email) }
    }

    public func sendResetPasswordEmail(_ email: String, completion: @Sendable @escaping ((any Error)?) -> Void) {
        call(completion) { try await self.sendResetPasswordEmail(email) }
    }

    public func callResetPasswordFunction(
        email: String, password: String, args: [AnyBSON], _ completion: @Sendable @escaping ((any Error)?) -> Void
    ) {
        call(completion) { try await self.callResetPasswordFunction(email: email, password: password, args: args) }
    }
}
