import Foundation
import SluiceCore
import Synchronization

/// Whether a user can sync.
public enum UserState: Sendable { case loggedOut, loggedIn, removed }

/// Somebody who has logged in on this device.
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
    func take(_ session: UserSession) { stored.withLock { $0 = session } }

    /// The token that requests carry; it is renewed by itself.
    public var accessToken: String? { session.accessToken }
    /// The token that renews the other.
    public var refreshToken: String? { session.refreshToken }
    public var isLoggedIn: Bool { session.refreshToken != nil }
    public var state: UserState { isLoggedIn ? .loggedIn : session.isRemoved ? .removed : .loggedOut }
    /// The sessions of this user's Realms that are open.
    public var allSessions: [SyncSession] { OpenFile.sessions(of: self) }
    var isAnonymous: Bool { session.provider == "anon-user" }

    /// The user's custom data as they were when the access token was made.
    public var customData: Document {
        let data = accessToken.flatMap { UserSession.claims(of: $0)?["user_data"] }
        return data.flatMap { AnyBSON($0).documentValue } ?? [:]
    }

    /// Renews the access token, and with it the custom data.
    /// - Throws: `AppError`, `invalidSession` when the user has to log in again.
    @discardableResult
    public func refreshCustomData() async throws -> Document {
        _ = try await refreshAccessToken()
        return customData
    }

    func refreshAccessToken() async throws -> String {
        guard let refreshToken else { throw AppError(.invalidSession, "The user \(id) is logged out.") }
        let answer = try await app.http.send(.post, "/api/client/v2.0/auth/session", token: refreshToken)
        guard let token = answer["access_token"]?.string else {
            throw AppError(.httpRequestFailed, "The server's answer to the token refresh has no access_token.")
        }
        // A logout meanwhile stands.
        stored.withLock { session in if session.refreshToken == refreshToken { session.take(accessToken: token) } }
        app.save()
        changes.tell(self)
        return token
    }

    /// What the sync engine asks, its errors in its own words.
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
            throw SluiceError(.connectionFailed, "\(error)")
        }
    }

    /// Logs out: the tokens are forgotten here and made void on the server when it can be reached. Local files stay.
    public func logOut() async throws {
        let token = stored.withLock { session in
            defer { (session.accessToken, session.refreshToken) = (nil, nil) }
            return session.refreshToken
        }
        for session in allSessions { session.logOut() }
        app.loggedOut(self)
        // Best effort: offline, the token ends by its own time.
        if let token { _ = try? await app.http.send(.delete, "/api/client/v2.0/auth/session", token: token) }
    }

    /// Logs out and deletes the user's local files. Files of Realms that are still open stay.
    /// - Throws: `Realm.Error.alreadyOpen` for such a file, after everything else is done.
    public func remove() async throws {
        try await logOut()
        try await removeFromDevice()
    }

    /// Deletes the account on the server, and then what `remove` deletes.
    /// - Throws: `AppError` when the server did not delete the account; then nothing has happened.
    public func delete() async throws {
        guard let token = try? await refreshAccessToken() else {
            throw AppError(.invalidSession, "The user \(id) is logged out, or the server cannot be reached.")
        }
        _ = try await app.http.send(.delete, "\(app.path)/auth/delete", token: token)
        stored.withLock { ($0.accessToken, $0.refreshToken) = (nil, nil) }
        for session in allSessions { session.logOut() }
        try await removeFromDevice()
    }

    private func removeFromDevice() async throws {
        stored.withLock { $0.isRemoved = true }
        app.forget(self)
        var open: Realm.Error?
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        for path in files.filter({ $0.hasSuffix(".realm") }).map({ folder.appendingPathComponent($0).path }) {
            do {
                _ = try RealmFiles.removeUnlessOpen(path)
            } catch let error as Realm.Error where error.code == .alreadyOpen {
                open = error
            }
        }
        if let open { throw open }
    }

    public static func == (lhs: User, rhs: User) -> Bool { lhs === rhs }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
