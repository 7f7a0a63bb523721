import SluiceCore
import SluiceValues

/// Creates accounts with e-mail and password, confirms their addresses and sets their passwords. The variants with completion handlers call
/// them on no particular thread.
public struct EmailPasswordAuth: Sendable {
    let app: App

    /// Creates an account, without logging in. If the app confirms addresses, `login` throws `AppError.authError` until the address is
    /// confirmed.
    /// - Throws: `AppError`, such as `accountNameInUse`.
    public func registerUser(email: String, password: String) async throws {
        try await send("register", ["email": .string(email), "password": .string(password)])
    }

    /// Confirms an address with the token of a link that was sent to it.
    ///
    /// - Throws: `AppError`, for a token that is wrong, used or expired.
    public func confirmUser(_ token: String, tokenId: String) async throws {
        try await send("confirm", ["token": .string(token), "tokenId": .string(tokenId)])
    }

    /// Sends the confirmation mail again. An address that no user has registered gets none, without an error.
    ///
    /// - Throws: `AppError`: `userAlreadyConfirmed`, or `notCallable` if the app confirms in another way.
    public func resendConfirmationEmail(_ email: String) async throws { try await send("confirm/send", ["email": .string(email)]) }

    /// Calls the app's confirmation function again.
    ///
    /// - Throws: `AppError`: `userAlreadyConfirmed`, or `notCallable` if the app confirms in another way.
    public func retryCustomConfirmation(_ email: String) async throws { try await send("confirm/call", ["email": .string(email)]) }

    /// Sends a link that sets a password. An address without an account gets none, without an error.
    ///
    /// - Throws: `AppError`, such as `notCallable` if the app sends no such links.
    public func sendResetPasswordEmail(_ email: String) async throws { try await send("reset/send", ["email": .string(email)]) }

    /// Sets a password with the token of a link that was sent to the user. Ends the user's sessions, and logs nobody in.
    ///
    /// - Throws: `AppError`, for a token that is wrong, used or expired.
    public func resetPassword(to password: String, token: String, tokenId: String) async throws {
        try await send("reset", ["token": .string(token), "tokenId": .string(tokenId), "password": .string(password)])
    }

    /// Calls the app's reset function, which may set the password at once or send a token for `resetPassword` to the user.
    ///
    /// - Parameter args: Further arguments of the function.
    /// - Throws: `AppError`, such as `userNotFound`, or `notCallable` if the app has no such function.
    public func callResetPasswordFunction(email: String, password: String, args: [AnyBSON]) async throws {
        try await send(
            "reset/call", ["email": .string(email), "password": .string(password), "arguments": .array(args.map(\.json))])
    }

    private func send(_ path: String, _ body: JSON) async throws {
        _ = try await app.http.send(.post, "\(app.path)/auth/providers/local-userpass/\(path)", body: body)
    }
}

extension EmailPasswordAuth {
    public func registerUser(email: String, password: String, completion: @Sendable @escaping ((any Error)?) -> Void) {
        call(completion) { try await self.registerUser(email: email, password: password) }
    }

    public func resetPassword(
        to password: String, token: String, tokenId: String, completion: @Sendable @escaping ((any Error)?) -> Void
    ) {
        call(completion) { try await self.resetPassword(to: password, token: token, tokenId: tokenId) }
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
