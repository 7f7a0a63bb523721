import Foundation
import SluiceCore
import SluiceValues
import Synchronization

/// An app on a server, where users log in. Apps with equal id and configuration are equal and share their users.
public final class App: Hashable, Sendable {
    /// State shared by all handles of an app with one id and configuration.
    let shared: Shared

    /// Creates the app with this id on the default server.
    public convenience init(id: String) { self.init(id: id, configuration: nil) }

    /// Creates the app with this id. Apps with equal id and configuration share their users.
    public init(id: String, configuration: AppConfiguration?) {
        let identity = Identity(id: id, configuration: configuration ?? AppConfiguration())
        shared = App.known.withLock { known in
            if let shared = known[identity] { return shared }
            // Kept for the life of the process, so that later handles find the same users.
            let shared = Shared(identity)
            known[identity] = shared
            return shared
        }
        shared.load(self)
    }

    private static let known = Mutex<[Identity: Shared]>([:])

    struct Identity: Hashable {
        var id: String
        var configuration: AppConfiguration
    }

    final class Shared: Sendable {
        let identity: Identity
        /// The server's address, `http://…` or `https://…`.
        let baseURL: Mutex<String>
        let storage: URL
        let credentials: any CredentialStorage
        let syncManager: SyncManager
        let changes = Subscribers<App>()
        let users = Mutex(UserList())
        /// Held while the list of users is stored.
        let storing = Mutex(())

        init(_ identity: Identity) {
            self.identity = identity
            baseURL = Mutex(identity.configuration.baseURL)
            syncManager = SyncManager(timeouts: identity.configuration.syncTimeouts)
            let root = StorageLocation.root(identity.configuration.storageDirectory)
            storage = root.appendingPathComponent(StorageLocation.component(identity.id))
            credentials = identity.configuration.credentialStorage ?? CredentialFile(folder: storage)
        }

        /// The users as the storage has them now.
        var storedUsers: StoredUsers { StoredUsers.read(credentials, identity.id) }

        /// Loads the users of earlier runs, at the first call only.
        func load(_ app: App) {
            let (isFirst, problem) = users.withLock { users -> (Bool, String?) in
                if users.isLoaded { return (false, nil) }
                users.isLoaded = true
                let stored = storedUsers
                for session in stored.users { users.all[session.id] = User(app: app, session: session) }
                users.current = stored.current
                users.isUnreadable = stored.problem != nil
                return (true, stored.problem)
            }
            // Not under the lock: the app's logger may ask for the users.
            if let problem { Logger.log(.error, Category.app) { problem } }
            let url = baseURL.withLock { $0 }
            if isFirst, ServerAddress.isOpenToOthers(url) {
                Logger.log(.warn, Category.app) {
                    "\(url) has no TLS: everybody on the network can read passwords, tokens and objects. Use https:// beyond the loopback."
                }
            }
        }
    }

    struct UserList {
        var all: [String: User] = [:]
        var current: String?
        var isLoaded = false
        /// `true` until a file that was not read completely has been moved aside.
        var isUnreadable = false
    }

    public static func == (lhs: App, rhs: App) -> Bool { lhs.shared === rhs.shared }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(shared)) }

    public var appId: String { shared.identity.id }
    public var configuration: AppConfiguration { shared.identity.configuration }
    /// The address of the app's server: the configured one, or the latest of `updateBaseUrl(to:)`.
    public var baseURL: String { shared.baseURL.withLock { $0 } }
    /// Receives errors of sync that belong to no call.
    public var syncManager: SyncManager { shared.syncManager }
    var http: HTTPClient { client(of: baseURL) }

    func client(of url: String) -> HTTPClient {
        var base = url
        while base.hasSuffix("/") { base.removeLast() }
        return HTTPClient(
            base: base, milliseconds: configuration.defaultRequestTimeoutMS,
            authorizationHeader: syncManager.authorizationHeaderName ?? "Authorization", transport: configuration.transport,
            pins: configuration.keyPins)
    }

    var storage: URL { shared.storage }

    /// The path of the app's routes on the server.
    var path: String { "/api/client/v2.0/app/\(appId)" }

    /// The users known on this device, by id, including users who have logged out.
    /// Removed users are not included, nor are anonymous users who have logged out.
    public var allUsers: [String: User] { shared.users.withLock { $0.all } }

    /// The user who logged in last or was switched to; nil if no user is logged in.
    /// When that user logs out or is removed, an arbitrary other logged-in user takes the place.
    public var currentUser: User? { shared.users.withLock { users in users.current.flatMap { users.all[$0] } } }

    /// Creates accounts of the e-mail provider.
    public var emailPasswordAuth: EmailPasswordAuth { EmailPasswordAuth(app: self) }

    /// Makes another logged-in user the current one and notifies the app's subscribers.
    @discardableResult
    public func `switch`(to user: User) -> User {
        shared.users.withLock { $0.current = user.id }
        save()
        shared.changes.notify(self)
        return user
    }

    /// Logs a user in and makes them the current user. A user who was logged in here before keeps their local files.
    /// A login as `.anonymous` reuses an anonymous user who is still logged in, without a request.
    /// - Throws: `AppError`.
    public func login(credentials: Credentials) async throws -> User {
        if case .anonymous = credentials, let user = allUsers.values.first(where: { $0.isAnonymous && $0.isLoggedIn }) {
            return self.switch(to: user)
        }
        let answer = try await http.send(.post, "\(path)/auth/providers/\(credentials.provider)/login", body: loginBody(credentials))
        guard let session = UserSession(answer, credentials) else {
            throw AppError(.httpRequestFailed, "The server's answer to the login lacks a token or the user's id.")
        }
        return loggedIn(session)
    }

    /// The same with a completion handler, which runs on no particular thread.
    public func login(
        credentials: Credentials, _ completion: @Sendable @escaping (Result<User, any Error>) -> Void
    ) {
        call(completion) { try await self.login(credentials: credentials) }
    }

    /// Returns the body of a login.
    func loginBody(_ credentials: Credentials) -> JSON {
        let device: JSON = ["platform": "swift", "sdkVersion": .string(SDKVersion.text), "appId": .string(appId)]
        return .object(credentials.members + [.init("options", ["device": device])])
    }

    private func loggedIn(_ session: UserSession) -> User {
        let user = shared.users.withLock { users in
            // An existing handle is updated, so that Realms and subscribers that hold it see the new tokens.
            let user = users.all[session.id] ?? User(app: self, session: session)
            user.take(session)
            users.all[session.id] = user
            users.current = session.id
            return user
        }
        save()
        for session in user.allSessions { session.logIn() }
        notify(user)
        return user
    }

    /// Drops the user from the list of this device and stores the list.
    func forget(_ user: User) {
        shared.users.withLock { users in
            users.all[user.id] = nil
            if users.current == user.id { users.current = users.all.values.first { $0.isLoggedIn }?.id }
        }
        save()
        notify(user)
    }

    /// Updates the list after a user has lost their tokens: drops an anonymous user, replaces the current one, and stores the list.
    func loggedOut(_ user: User) {
        shared.users.withLock { users in
            if user.isAnonymous { users.all[user.id] = nil }
            if users.current == user.id { users.current = users.all.values.first { $0.isLoggedIn }?.id }
        }
        save()
        notify(user)
    }

    /// Notifies the subscribers of the user, then those of the app.
    private func notify(_ user: User) {
        user.changes.notify(user)
        shared.changes.notify(self)
    }

    /// Takes the tokens that another process of the app has renewed and stored.
    func takeStoredTokens() { shared.storing.withLock { _ in takeStored() } }

    private func takeStored() {
        let users = shared.users.withLock { $0.all }
        for stored in shared.storedUsers.users { users[stored.id]?.takeTokens(of: stored) }
    }

    /// Stores the current list of users. A failure goes to the sync manager's error handler.
    ///
    /// - Returns: `false` on failure.
    @discardableResult
    func save() -> Bool {
        // One writer at a time, reading inside the lock: an older list never replaces a newer one.
        let failure = shared.storing.withLock { _ in
            takeStored()
            let (all, current, isUnreadable) = shared.users.withLock { ($0.all, $0.current, $0.isUnreadable) }
            let users = StoredUsers(users: all.values.map(\.session), current: current)
            let error = users.write(shared.credentials, appId, replacingUnreadable: isUnreadable)
            if error == nil { shared.users.withLock { $0.isUnreadable = false } }
            return error
        }
        if let failure { syncManager.report(failure, nil) }
        return failure == nil
    }
}

enum SDKVersion {
    static let text = "1.0.0"
}

extension App {
    /// Switches to another server of the same app, for this run of the program.
    /// Later requests use it, and so do sessions of Realms that are opened later. Users stay logged in if that server accepts their tokens.
    /// - Parameter url: `http://…` or `https://…`; nil: the default of `AppConfiguration.baseURL`.
    /// - Throws: `AppError` if the app does not exist there or the server cannot be reached. The address is then unchanged.
    public func updateBaseUrl(to url: String?) async throws {
        let url = url ?? AppConfiguration.defaultBaseURL
        _ = try await client(of: url).send(.get, "\(path)/location")
        shared.baseURL.withLock { $0 = url }
    }

    /// The same with a completion handler, which runs on no particular thread.
    public func updateBaseUrl(to url: String?, _ completion: @Sendable @escaping ((any Error)?) -> Void) {
        call(completion) { try await self.updateBaseUrl(to: url) }
    }
}
