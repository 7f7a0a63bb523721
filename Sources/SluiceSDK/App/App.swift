public import Foundation
import SluiceCore
import Synchronization

/// Where an app's server is and where its local files lie.
public struct AppConfiguration: Hashable, Sendable {
    /// The gateway, `http://…` or `https://…`.
    public var baseURL: String
    /// After this time without answer a request fails. Default 60,000.
    public var defaultRequestTimeoutMS: UInt
    /// The folder for local files; nil: `SLUICE_DATA_HOME`, else `$XDG_DATA_HOME/sluice`, else `~/.local/share/sluice`.
    public var storageDirectory: URL?

    /// - Parameter baseURL: nil: the environment's `SLUICE_URL`, else `http://127.0.0.1:8080`.
    public init(baseURL: String? = nil, defaultRequestTimeoutMS: UInt? = nil, storageDirectory: URL? = nil) {
        self.baseURL = baseURL ?? ProcessInfo.processInfo.environment["SLUICE_URL"] ?? "http://127.0.0.1:8080"
        self.defaultRequestTimeoutMS = defaultRequestTimeoutMS ?? 60_000
        self.storageDirectory = storageDirectory
    }

    /// As apps written for RealmSwift have it.
    /// - Parameter transport: nil; requests go by the SDK's own client.
    public init(baseURL: String? = nil, transport: Never?, defaultRequestTimeoutMS: UInt? = nil) {
        self.init(baseURL: baseURL, defaultRequestTimeoutMS: defaultRequestTimeoutMS)
    }

    /// As apps written for RealmSwift have it: the app's name and version are of no use here, as they are of none there.
    /// - Parameter transport: nil; requests go by the SDK's own client.
    public init(
        baseURL: String? = nil, transport: Never? = nil, localAppName: String?, localAppVersion: String?,
        defaultRequestTimeoutMS: UInt? = nil
    ) {
        self.init(baseURL: baseURL, defaultRequestTimeoutMS: defaultRequestTimeoutMS)
    }
}

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
        let http: HTTPClient
        let storage: URL
        let syncManager = SyncManager()
        let users = Mutex(UserList())
        /// Held while the list of users is stored.
        let storing = Mutex(())

        init(_ identity: Identity) {
            self.identity = identity
            var base = identity.configuration.baseURL
            while base.hasSuffix("/") { base.removeLast() }
            http = HTTPClient(base: base, milliseconds: identity.configuration.defaultRequestTimeoutMS)
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
    /// Where the app's server is.
    public var baseURL: String { configuration.baseURL }
    /// Hears of errors of sync that belong to no call.
    public var syncManager: SyncManager { shared.syncManager }
    var http: HTTPClient { shared.http }
    var storage: URL { shared.storage }

    private var base: String { "/api/client/v2.0/app/\(appId)/auth/providers" }

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
        return user
    }

    /// Logs in. A user who was logged in on this device before keeps their local files.
    /// - Throws: `AppError`.
    public func login(credentials: Credentials) async throws -> User {
        if case .anonymous = credentials, let user = allUsers.values.first(where: { $0.isAnonymous && $0.isLoggedIn }) {
            return self.switch(to: user)
        }
        let device: JSON = ["platform": "swift", "sdkVersion": .string(SDKVersion.text), "appId": .string(appId)]
        let body = JSON.object(credentials.members + [.init("options", ["device": device])])
        let answer = try await http.send("POST", "\(base)/\(credentials.provider)/login", body: body)
        guard let session = UserSession(answer, provider: credentials.provider) else {
            throw AppError(.httpRequestFailed, "The server's answer to the login lacks a token or the user's id.")
        }
        return loggedIn(session)
    }

    /// The same for code without async.
    public func login(
        credentials: Credentials, _ completion: @Sendable @escaping (Result<User, any Error>) -> Void
    ) {
        // Unstructured because: the caller has no task; the request's deadline ends it.
        _Concurrency.Task {
            do { completion(.success(try await self.login(credentials: credentials))) } catch { completion(.failure(error)) }
        }
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
        return user
    }

    /// The user is none of this device any more.
    func forget(_ user: User) {
        shared.users.withLock { users in
            users.all[user.id] = nil
            if users.current == user.id { users.current = users.all.values.first { $0.isLoggedIn }?.id }
        }
        save()
    }

    /// Forgets a user's tokens; an anonymous user is forgotten altogether.
    func loggedOut(_ user: User) {
        shared.users.withLock { users in
            if user.isAnonymous { users.all[user.id] = nil }
            if users.current == user.id { users.current = users.all.values.first { $0.isLoggedIn }?.id }
        }
        save()
    }

    /// Stores the users as they are. One list after the other: a list that was read earlier never takes the place of a later one.
    func save() {
        let failure = shared.storing.withLock { _ in
            let (all, current) = shared.users.withLock { ($0.all, $0.current) }
            return StoredUsers(users: all.values.map(\.session), current: current).write(storage)
        }
        if let failure { syncManager.report(failure, nil) }
    }

    /// - Throws: `AppError`.
    func register(email: String, password: String) async throws {
        let body: JSON = ["email": .string(email), "password": .string(password)]
        _ = try await http.send("POST", "\(base)/local-userpass/register", body: body)
    }
}

enum SDKVersion {
    static let text = "1.0.0"
}

/// Makes and mends accounts with e-mail and password.
public struct EmailPasswordAuth: Sendable {
    let app: App

    /// Makes an account. Logging in is a step of its own.
    /// - Throws: `AppError`, `accountNameInUse` above all.
    public func registerUser(email: String, password: String) async throws {
        try await app.register(email: email, password: password)
    }

    /// The same for code without async.
    public func registerUser(email: String, password: String, completion: @Sendable @escaping ((any Error)?) -> Void) {
        // Unstructured because: the caller has no task; the request's deadline ends it.
        _Concurrency.Task {
            do {
                try await self.registerUser(email: email, password: password)
                completion(nil)
            } catch {
                completion(error)
            }
        }
    }
}
