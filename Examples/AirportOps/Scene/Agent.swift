import AirportOpsModels
import Foundation
import RealmSwift

/// One agent's app: a login, a replica, and the reports of its live results.
@MainActor
final class Agent {
    let name: String
    let origin: String
    private let email: String
    private let password = "gate-agents-2013"
    /// The airport's own identity provider; nil for an agent who logs in by e-mail.
    private let identityProvider: IdentityProvider?
    private let appID: String
    private let folder: String
    private(set) var realm: Realm?
    private(set) var user: User?
    private var token: NotificationToken?
    /// The keys that the live results reported, in the order of the reports.
    private(set) var inserted: [Int] = []
    private(set) var deletions = 0
    private(set) var modifications = 0
    /// The compensating writes that the app received.
    let refused = Box<[(key: String, reason: String)]>([])
    private static let refusedByUser = Box<[String: Box<[(key: String, reason: String)]>]>([:])

    init(_ name: String, origin: String, appID: String, folder: String, identityProvider: IdentityProvider? = nil) {
        self.name = name
        self.identityProvider = identityProvider
        self.origin = origin
        email = "\(name.lowercased())@airport.example"
        self.folder = folder
        self.appID = appID
    }

    var credentials: (email: String, password: String) { (email, password) }

    /// Makes the agent's account, with the origin as custom data. The first login by a token makes the account of its user.
    func register(_ admin: AdminClient, _ url: String) async throws {
        guard identityProvider == nil else {
            let user = try await logIn(App(id: appID, configuration: AppConfiguration(baseURL: url)))
            return try await admin.setCustomData(["origin": origin], of: user.id)
        }
        try await admin.createUser(email: email, password: password, customData: ["origin": origin])
    }

    private func logIn(_ app: App) async throws -> User {
        guard let identityProvider else { return try await app.login(credentials: .emailPassword(email: email, password: password)) }
        return try await app.login(credentials: .jwt(token: try await identityProvider.token(for: email)))
    }

    /// Logs in, opens the replica with one subscription, and waits until it is complete.
    func open(_ url: String, query: @escaping @Sendable (Query<Flight>) -> Query<Bool>) async throws -> Results<Flight> {
        let app = App(id: appID, configuration: AppConfiguration(baseURL: url))
        // Agents of one gateway share its `App` and thus the handler. The session identifies the user of an error.
        let byUser = Self.refusedByUser
        app.syncManager.errorHandler = { error, session in
            guard let user = session?.parentUser()?.id, let writes = (error as? SyncError)?.compensatingWriteInfo else { return }
            byUser.value[user]?.update { $0 += writes.map { ("\($0.objectType) \($0.primaryKey)", $0.reason) } }
        }
        let user = try await logIn(app)
        self.user = user
        byUser.update { [refused] in $0[user.id] = refused }
        var configuration = user.flexibleSyncConfiguration(initialSubscriptions: { subscriptions in
            if subscriptions.first(named: "flights") == nil {
                subscriptions.append(QuerySubscription<Flight>(name: "flights", query: query))
            }
        })
        configuration.objectTypes = [Flight.self, WeatherObservation.self]
        configuration.fileURL = URL(fileURLWithPath: folder).appendingPathComponent("\(name).realm")
        let realm = try await Realm(configuration: configuration, downloadBeforeOpen: .always)
        self.realm = realm
        let results = realm.objects(Flight.self).where(query)
        observe(results)
        return results
    }

    private func observe(_ results: Results<Flight>) {
        token = results.observe { [weak self] change in
            guard let self else { return }
            if case .update(let flights, let deletions, let insertions, let modifications) = change {
                self.inserted += insertions.map { flights[$0]._id }
                self.deletions += deletions.count
                self.modifications += modifications.count
            }
        }
    }

    func close() {
        token?.invalidate()
        token = nil
        realm?.syncSession?.suspend()
        realm = nil
    }
}

/// A value that callbacks on any thread may change.
final class Box<Value: Sendable>: @unchecked Sendable {  // Sendable because: every access holds the lock.
    private let lock = NSLock()
    private var stored: Value

    init(_ value: Value) { stored = value }

    var value: Value { lock.withLock { stored } }
    func update(_ body: (inout Value) -> Void) { lock.withLock { body(&stored) } }
}

/// The part of the gateway's admin API that the scene uses.
struct AdminClient {
    let url: String

    func createUser(email: String, password: String, customData: [String: String]) async throws {
        try await send("POST", "users", ["email": email, "password": password, "custom_data": customData])
    }

    func setCustomData(_ data: [String: String], of user: String) async throws { try await send("PUT", "users/\(user)/custom_data", data) }

    private func send(_ method: String, _ path: String, _ body: [String: Any]) async throws {
        let (status, text) = try await HTTP.send(
            method, "\(url)/admin/v1/\(path)", JSONSerialization.data(withJSONObject: body), type: "application/json")
        guard (200..<300).contains(status) else { throw SceneFailure("The admin API answered \(status): \(text)") }
    }
}
