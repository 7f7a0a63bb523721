import Foundation
import SluiceCore
import SluiceSync
import SluiceValues
import Synchronization

/// The login state of a user. Only a logged-in user can sync.
public enum UserState: Sendable { case loggedOut, loggedIn, removed }

/// A user who has logged in on this device.
public final class User: Hashable, Sendable {
    public let id: String
    let app: App
    private let stored: Mutex<UserSession>
    let changes = Subscribers<User>()

    init(app: App, session: UserSession) {
        self.app = app
        id = session.id
        stored = Mutex(session)
    }

    var session: UserSession { stored.withLock { $0 } }
    /// Replaces the session, for example after a new login.
    func take(_ session: UserSession) { stored.withLock { $0 = session } }

    /// The token that requests carry. The SDK renews it.
    public var accessToken: String? { session.accessToken }
    /// The token that renews the access token; nil when logged out.
    public var refreshToken: String? { session.refreshToken }
    public var isLoggedIn: Bool { session.refreshToken != nil }
    public var state: UserState { isLoggedIn ? .loggedIn : session.isRemoved ? .removed : .loggedOut }
    /// The sync sessions of this user's open Realms.
    public var allSessions: [SyncSession] { OpenFile.sessions(of: self) }
    var isAnonymous: Bool { session.provider == "anon-user" }

    /// The user's custom data at the time when the server issued the access token; empty without a token.
    public var customData: Document {
        let data = accessToken.flatMap { AccessTokenClaims.read($0)?["user_data"] }
        return data.flatMap { AnyBSON($0).documentValue } ?? [:]
    }

    /// Renews the access token, and the custom data with it.
    /// - Throws: `AppError`; `invalidSession` if the user must log in again.
    @discardableResult
    public func refreshCustomData() async throws -> Document {
        _ = try await refreshAccessToken()
        return customData
    }

    func refreshAccessToken() async throws -> String {
        // Another process of the app may have used a newer refresh token. The old one would end the login.
        app.takeStoredTokens()
        guard let refreshToken else { throw AppError(.invalidSession, "The user \(id) is logged out.") }
        let answer = try await app.http.send(.post, "/api/client/v2.0/auth/session?rotate=true", token: refreshToken)
        guard let token = answer["access_token"]?.string else {
            throw AppError(.httpRequestFailed, "The server's answer to the token refresh has no access_token.")
        }
        let next = answer["refresh_token"]?.string ?? refreshToken
        // A logout during the request wins: tokens are stored only if the refresh token is unchanged.
        stored.withLock { session in
            guard session.refreshToken == refreshToken else { return }
            session.take(accessToken: token)
            session.refreshToken = next
        }
        // The server accepts the old token until the next one is used. A token that is not on the disk must not be.
        if !app.save() { stored.withLock { session in if session.refreshToken == next { session.refreshToken = refreshToken } } }
        for session in allSessions { session.take(accessToken: token) }
        changes.notify(self)
        return token
    }

    /// Takes the access token of a link. An anonymous user has the linked provider from then on.
    func take(accessToken token: String, linkedBy provider: String) {
        stored.withLock { session in
            // A logout during the request wins.
            guard session.refreshToken != nil else { return }
            session.take(accessToken: token)
            if session.provider == "anon-user" { session.provider = provider }
        }
        app.save()
        for session in allSessions { session.take(accessToken: token) }
        changes.notify(self)
    }

    /// Renews the access token for the sync engine, with errors mapped to `SluiceError`. A status of 401 is an invalid session.
    func tokenForSync() async throws(SluiceError) -> String {
        do {
            return try await refreshAccessToken()
        } catch let error as AppError {
            switch error.code {
            case .invalidSession: throw SluiceError(.invalidSession, error.message)
            case .userDisabled: throw SluiceError(.userDisabled, error.message)
            case .authError: throw SluiceError(.badAuthentication, error.message)
            default: throw SluiceError(error.httpStatusCode == 401 ? .invalidSession : .connectionFailed, error.message)
            }
        } catch {
            throw SluiceError(.connectionFailed, "The access token could not be refreshed.", cause: ErrorCause(error))
        }
    }

    /// Takes the tokens of a stored session if it has a newer refresh token of the same login.
    func takeTokens(of other: UserSession) { stored.withLock { $0.takeTokens(of: other) } }

    /// Logs out: drops the tokens on this device and ends the login on the server if it can be reached. Local files stay.
    public func logOut() async throws {
        let token = loseTokens()
        // Best effort: offline, the token expires by itself.
        if let token { _ = try? await app.http.send(.delete, "/api/client/v2.0/auth/session", token: token) }
    }

    /// Logs out on all devices: ends all logins of the user on the server, then logs out here. Sessions on other devices end within
    /// seconds.
    ///
    /// Not part of RealmSwift.
    /// - Throws: `AppError` if the server did not end the logins; the user stays logged in then.
    public func logOutEverywhere() async throws {
        app.takeStoredTokens()
        guard let refreshToken else { throw AppError(.invalidSession, "The user \(id) is logged out.") }
        _ = try await app.http.send(.delete, "/api/client/v2.0/auth/session?everywhere=true", token: refreshToken)
        _ = loseTokens()
    }

    /// Drops the tokens on this device and returns the refresh token.
    private func loseTokens() -> String? {
        let token = stored.withLock { session in
            defer { (session.accessToken, session.refreshToken) = (nil, nil) }
            return session.refreshToken
        }
        // Sessions stop before the app's subscribers are notified.
        for session in allSessions { session.logOut() }
        app.loggedOut(self)
        return token
    }

    /// Logs out and deletes the user's local files. Files of open Realms stay.
    /// - Throws: The first error of a file that stays, after all other files are deleted: `Realm.Error.alreadyOpen` or
    ///   `fileOperationFailed`.
    public func remove() async throws {
        try await logOut()
        try await removeFromDevice()
    }

    /// Deletes the account on the server, then the user's local files as `remove()` does.
    /// - Throws: `AppError` if the server did not delete the account; nothing is deleted then. `Realm.Error` as `remove()`.
    public func delete() async throws {
        let token = try await refreshAccessToken()
        _ = try await app.http.send(.delete, "/api/client/v2.0/auth/delete", token: token)
        stored.withLock { ($0.accessToken, $0.refreshToken) = (nil, nil) }
        for session in allSessions { session.logOut() }
        try await removeFromDevice()
    }

    private func removeFromDevice() async throws {
        stored.withLock { $0.isRemoved = true }
        app.forget(self)
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        try RealmFiles.removeUnlessOpen(files.filter { $0.hasSuffix(".realm") }.map { folder.appendingPathComponent($0).path })
    }

    public static func == (lhs: User, rhs: User) -> Bool { lhs === rhs }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension User {
    /// `logOut()` with a completion handler. All handlers here run on no particular thread.
    public func logOut(completion: @Sendable @escaping ((any Error)?) -> Void) { call(completion) { try await self.logOut() } }

    /// `remove()` with a completion handler.
    public func remove(completion: @Sendable @escaping ((any Error)?) -> Void) { call(completion) { try await self.remove() } }

    /// `delete()` with a completion handler.
    public func delete(completion: @Sendable @escaping ((any Error)?) -> Void) { call(completion) { try await self.delete() } }

    /// `linkUser(credentials:)` with a completion handler.
    public func linkUser(credentials: Credentials, _ completion: @Sendable @escaping (Result<User, any Error>) -> Void) {
        call(completion) { try await self.linkUser(credentials: credentials) }
    }

    /// `refreshCustomData()` with a completion handler, which receives plain values as `AnyBSON.plain` defines them.
    /// `customData` keeps the types.
    public func refreshCustomData(_ completion: @Sendable @escaping (Result<[AnyHashable: Any], any Error>) -> Void) {
        call({ (result: Result<Document, any Error>) in
            completion(result.map { document in document.mapValues { ($0 ?? .null).plain } })
        }) { try await self.refreshCustomData() }
    }
}
