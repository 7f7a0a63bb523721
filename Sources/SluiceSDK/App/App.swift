import Foundation
import SluiceCore
import Synchronization

/// An app on a server: where users log in. Apps of one id and configuration are equal, and share their users.
public final class App: Hashable, Sendable {
    /// What all handles of an app with one id and configuration share.
    let shared: Shared

    /// The app with this id on the default server.
    public convenience init(id: String) { self.init(id: id, configuration: nil) }

    /// The app with this id. Equal ids and configurations give apps that share their users.
    public init(id: String, configuration: AppConfiguration?) {
        let identity = Identity(id: id, configuration: configuration ?? AppConfiguration())
        shared = App.known.withLock { known in
            if let shared = known[identity] { return shared }
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
        /// Where the server is.
        let baseURL: Mutex<String>
        let storage: URL
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
        }

        /// Reads the users of earlier runs, once.
        func load(_ app: App) {
            users.withLock { users in
                if users.isLoaded { return }
                users.isLoaded = true
                let stored = StoredUsers.read(storage)
                for session in stored.users { users.all[session.id] = User(app: app, session: session) }
                users.current = stored.current
            }
        }
    }

    struct UserList {
        var all: [String: User] = [:]
        var current: String?
        var isLoaded = false
    }

    public static func == (lhs: App, rhs: App) -> Bool { lhs.shared === rhs.shared }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(shared)) }

    public var appId: String { shared.identity.id }
    public var configuration: AppConfiguration { shared.identity.configuration }
    /// Where the app's server is: as configured, or where `updateBaseUrl(to:)` has gone.
    public var baseURL: String { shared.baseURL.withLock { $0 } }
    /// Hears of errors of sync that belong to no call.
    public var syncManager: SyncManager { shared.syncManager }
    var http: HTTPClient { client(of: baseURL) }

    func client(of url: String) -> HTTPClient {
        var base = url
        while base.hasSuffix("/") { base.removeLast() }
        return HTTPClient(
            base: base, milliseconds: configuration.defaultRequestTimeoutMS,
            authorizationHeader: syncManager.authorizationHeaderName ?? "Authorization", transport: configuration.transport)
    }

    var storage: URL { shared.storage }

    /// The path of what the server does for this app.
    var path: String { "/api/client/v2.0/app/\(appId)" }

    /// All users who are logged in on this device, by id.
    public var allUsers: [String: User] { shared.users.withLock { $0.all } }

    /// The user who logged in last, or was switched to; nil when nobody is logged in.
    public var currentUser: User? { shared.users.withLock { users in users.current.flatMap { users.all[$0] } } }

    /// Users of the e-mail provider.
    public var emailPasswordAuth: EmailPasswordAuth { EmailPasswordAuth(app: self) }

    /// Makes another logged-in user the current one.
    @discardableResult
    public func `switch`(to user: User) -> User {
        shared.users.withLock { $0.current = user.id }
        save()
        shared.changes.tell(self)
        return user
    }

    /// Logs in. A user who was logged in on this device before keeps their local files.
    /// - Throws: `AppError`.
    public func login(credentials: Credentials) async throws -> User {
        if let error = credentials.refusal { throw error }
        if case .anonymous = credentials, let user = allUsers.values.first(where: { $0.isAnonymous && $0.isLoggedIn }) {
            return self.switch(to: user)
        }
        let device: JSON = ["platform": "swift", "sdkVersion": .string(SDKVersion.text), "appId": .string(appId)]
        let body = JSON.object(credentials.members + [.init("options", ["device": device])])
        let answer = try await http.send(.post, "\(path)/auth/providers/\(credentials.provider)/login", body: body)
        guard let session = UserSession(answer, credentials) else {
            throw AppError(.httpRequestFailed, "The server's answer to the login lacks a token or the user's id.")
        }
        return loggedIn(session)
    }

    /// The same for code without async.
    public func login(
        credentials: Credentials, _ completion: @Sendable @escaping (Result<User, any Error>) -> Void
    ) {
        call(completion) { try await self.login(credentials: credentials) }
    }

    private func loggedIn(_ session: UserSession) -> User {
        let user = shared.users.withLock { users in
            let user = users.all[session.id] ?? User(app: self, session: session)
            user.take(session)
            users.all[session.id] = user
            users.current = session.id
            return user
        }
        save()
        for session in user.allSessions { session.logIn() }
        tell(user)
        return user
    }

    /// The user is none of this device any more.
    func forget(_ user: User) {
        shared.users.withLock { users in
            users.all[user.id] = nil
            if users.current == user.id { users.current = users.all.values.first { $0.isLoggedIn }?.id }
        }
        save()
        tell(user)
    }

    /// Forgets a user's tokens; an anonymous user is forgotten altogether.
    func loggedOut(_ user: User) {
        shared.users.withLock { users in
            if user.isAnonymous { users.all[user.id] = nil }
            if users.current == user.id { users.current = users.all.values.first { $0.isLoggedIn }?.id }
        }
        save()
        tell(user)
    }

    /// The user has changed, and with them the app.
    private func tell(_ user: User) {
        user.changes.tell(user)
        shared.changes.tell(self)
    }

    /// Stores the users as they are. One list after the other: a list that was read earlier never takes the place of a later one.
    func save() {
        let failure = shared.storing.withLock { _ in
            let (all, current) = shared.users.withLock { ($0.all, $0.current) }
            return StoredUsers(users: all.values.map(\.session), current: current).write(storage)
        }
        if let failure { syncManager.report(failure, nil) }
    }
}

enum SDKVersion {
    static let text = "1.0.0"
}
