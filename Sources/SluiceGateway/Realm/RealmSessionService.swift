import HTTPTypes
import Logging
import ServiceLifecycle
import SluiceCompression
import SluiceCore
import SluiceNet
import SluicePipeline
import SluicePorts
import SluiceRealm
import SluiceRealmBridge
import Synchronization

extension Zlib: BodyCompression {}

/// Begins a connection for each accepted WebSocket of Realm's protocol. An idle connection has no task.
final class RealmSessionService: Service {
    /// The facts that all connections share.
    struct Settings: Sendable {
        var appID: String
        /// `true` if the app is synced. Otherwise the gateway rejects clients, which retry later.
        var isEnabled: Bool
        /// The salt of the server's history.
        var salt: UInt64
        /// The maximum number of open connections.
        var maximum = 20_000

        /// The path of the endpoint, without the query.
        var path: String { "/api/client/v2.0/app/\(appID)/realm-sync" }
    }

    private let settings: Settings
    private let services: RealmConnectionServices
    private let authenticator: any Authenticator
    private let users: UserSessions
    let bridge: RealmBridge
    private let buffer: RealmStoreBuffer
    private let watch: RealmWatch
    private let egress: MetricNumber
    private let refusals: PartitionRefusals
    /// The sockets that have opened and whose connections have not begun. Each is in it once, and `maximum` bounds them.
    private let calls: AsyncStream<RealmSocket>
    private let caller: AsyncStream<RealmSocket>.Continuation
    private let open = Mutex<[ObjectIdentifier: RealmSocket]>([:])

    /// - Parameter clients: The store of client files.
    init(_ settings: Settings, clients: any RealmClientStore, sessions: SessionServices, watch: RealmWatch, egress: MetricNumber) {
        self.settings = settings
        self.watch = watch
        self.egress = egress
        authenticator = sessions.authenticator
        users = sessions.users
        bridge = RealmBridge(services: sessions)
        buffer = RealmStoreBuffer(clients, environment: sessions.environment)
        services = RealmConnectionServices(
            store: buffer, views: bridge, writes: bridge, coding: RealmCodec(compression: Zlib()), environment: sessions.environment,
            logger: sessions.logger)
        refusals = PartitionRefusals(logger: sessions.logger, environment: sessions.environment)
        (calls, caller) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
    }

    /// The number of open connections.
    var count: Int { open.withLock(\.count) }

    /// The sockets of the open connections, in no order.
    var sockets: [RealmSocket] { open.withLock { Array($0.values) } }

    /// The bytes queued for all clients.
    var outboxBytes: Int { open.withLock { $0.values.reduce(0) { $0 + $1.bufferedBytes } } }

    // MARK: Upgrades

    /// Returns the endpoint.
    ///
    /// - Parameter site: The guard against pages of other sites in development; nil for none.
    func endpoint(guardedBy site: DevelopmentSite?) -> WebSocketEndpoint {
        let path = settings.path
        var endpoint = WebSocketEndpoint(
            subprotocols: SubprotocolChoice(advised: "\(RealmProtocol.prefix)14") { [self] in choose($0, $1) },
            matches: { $0 == path },
            accept: { [self] request in
                // A client logs its user out at 403.
                counted(site?.problem(request).map { .refuseWith(ErrorResponse($0, status: .badRequest)) } ?? accept(request))
            })
        // A client reports 429 to its app as fatal. It retries at 503.
        endpoint.refusal = { [watch] response in
            watch.ended(.refused)
            var refusal = ErrorResponse(RealmUpgradeRefusal(response.error))
            refusal.retryAfter = response.retryAfter
            return refusal
        }
        return endpoint
    }

    private func choose(_ offered: [String], _ request: UpgradeRequest) -> SubprotocolChoice.Outcome {
        do throws(RealmUpgradeRefusal) {
            return .accept(try RealmProtocol.negotiate(offered).name)
        } catch {
            watch.ended(.refused)
            if RealmProtocol.asksForPartitions(offered) {
                let agent = RealmAgent(request.header("User-Agent"))
                watch.refusedPartitions(agent)
                refusals.note(agent, error.error)
            }
            return .refuse(ErrorResponse(error))
        }
    }

    /// Counts a refused upgrade.
    private func counted(_ decision: UpgradeDecision) -> UpgradeDecision {
        switch decision {
        case .accept, .later: break
        case .refuse, .refuseWith: watch.ended(.refused)
        }
        return decision
    }

    /// Decides on an upgrade request. Called on an event loop.
    private func accept(_ request: UpgradeRequest) -> UpgradeDecision {
        guard settings.isEnabled else {
            return .refuseWith(ErrorResponse(RealmUpgradeRefusal(SluiceError(.sessionDisabled, "Sync of this app is disabled."))))
        }
        guard let token = request.parameter("baas_at"), !token.isEmpty else {
            let error = SluiceError(
                .badAuthentication, "The request has no access token.", fix: "Send it as the query parameter baas_at.")
            return .refuseWith(ErrorResponse(RealmUpgradeRefusal(error)))
        }
        guard let chosen = try? RealmProtocol.negotiate([request.subprotocol]) else {
            return .refuse(SluiceError(.internalError, "The subprotocol \(request.subprotocol) was chosen and is not known."))
        }
        var connection = RealmConnectionSettings(version: chosen.version, salt: settings.salt)
        connection.knowsCloseCodes = chosen.knowsCloseCodes
        let opening = RealmSocket.Opening(settings: connection, agent: RealmAgent(request.header("User-Agent")))
        return chosen.knowsCloseCodes ? admit(opening, token) : .later { [self] in counted(await acceptOlder(opening, token)) }
    }

    /// Decides on the upgrade of a client that acts on a status alone: it would connect again and again after a close code.
    private func acceptOlder(_ opening: RealmSocket.Opening, _ token: String) async -> UpgradeDecision {
        do {
            _ = try await authenticator.authenticate(token: token)
            return admit(opening, token)
        } catch {
            let error = SluiceError(error, otherwise: .internalError, "The access token could not be checked.")
            return .refuseWith(ErrorResponse(RealmUpgradeRefusal(error)))
        }
    }

    private func admit(_ opening: RealmSocket.Opening, _ token: String) -> UpgradeDecision {
        let socket = socket(opening, token)
        let isFull = open.withLock { open in
            guard open.count < settings.maximum else { return true }
            open[ObjectIdentifier(socket)] = socket
            return false
        }
        guard !isFull else {
            let error = SluiceError(
                .tooManyRequests, "This gateway has \(settings.maximum) connections open.", fix: "Try again, or add a gateway.")
            return .refuseWith(ErrorResponse(RealmUpgradeRefusal(error)))
        }
        return .accept(socket)
    }

    private func socket(_ opening: RealmSocket.Opening, _ token: String) -> RealmSocket {
        var services = services
        services.observer = watch.observer(of: opening.agent)
        services.sdk = opening.agent.text
        return RealmSocket(
            opening, token: token, services: services, authenticator: authenticator, egress: egress, watch: watch,
            hooks: RealmSocket.Hooks(
                opened: { [caller] in caller.yield($0) }, admit: { [users] in try users.begin($0) },
                // Weak: the service owns the socket until the end of its connection.
                ended: { [weak self, users] socket in
                    if let user = socket.counted { users.end(user) }
                    self?.open.withLock { $0[ObjectIdentifier(socket)] = nil }
                }))
    }

    // MARK: Users and rules

    /// Ends connections. A disabled user is logged out by its client; in any other case the client retries.
    func disconnect(_ scope: SessionScope, _ error: SluiceError) {
        let reason: RealmConnectionEnd
        switch error.code {
        case .userDisabled: reason = .userDisabled
        // The client refreshes its token, which fails as its login has ended.
        case .invalidSession: reason = .tokenExpired
        default: reason = .shutDown
        }
        for socket in sockets { socket.end(reason, scope) }
    }

    /// Notifies sessions of changed user data, or of changed rules if `user` is nil.
    func reconsider(user: String?) { bridge.reconsider(user: user) }

    func run() async throws {
        await withGracefulShutdownHandler {
            await withDiscardingTaskGroup { group in
                for await socket in calls { group.addTask { await socket.begin() } }
                for socket in sockets { socket.end(.shutDown, .all) }
                // One that still waits for its user ends as well.
                group.cancelAll()
            }
            for socket in sockets { await socket.untilEnded() }
            await buffer.storeAll()
        } onGracefulShutdown: {
            self.caller.finish()
        }
    }
}

extension ErrorResponse {
    init(_ refusal: RealmUpgradeRefusal) { self.init(refusal.error, status: .init(code: refusal.status)) }
}
