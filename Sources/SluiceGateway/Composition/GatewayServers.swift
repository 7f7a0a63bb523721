import Hummingbird
import Logging
import NIOCore
import SluiceCore
import SluiceNet
import SluicePipeline
import SluicePorts
import SluicePostgres
import SluiceWire

/// The servers of a gateway: the client port, the admin port and the optional admin socket.
struct GatewayServers: Sendable {
    let client: NetServer
    let admin: NetServer
    /// The admin port's routes on a Unix socket; nil if none is configured.
    let socket: NetServer?
    let socketPath: AdminSocket?
    let sessions: SessionService
    let realm: RealmSessionService

    /// The shutdown of the operators' servers, which end after the client port.
    private static let shutdown = ShutdownPace(deadline: .seconds(1))

    init(_ parts: GatewayParts, _ configuration: GatewayConfiguration, logger: Logger) throws {
        // The HTTP library's messages about closed connections do not help an operator. The routes log errors of requests.
        var quiet = logger
        quiet.logLevel = .critical
        let sessions = SessionService(
            services: parts.sessionServices, watch: parts.watch, isEnabled: configuration.app.sync.isEnabled)
        self.sessions = sessions
        let realm = RealmSessionService(
            .init(appID: configuration.app.appID, isEnabled: configuration.app.sync.isEnabled, salt: parts.access.appKeys.realmSalt),
            clients: PostgresRealmClients(pool: parts.pools.main, files: parts.metrics.replicaBound), sessions: parts.sessionServices,
            watch: RealmWatch(metrics: parts.metrics), egress: parts.watch.egress)
        self.realm = realm
        client = Self.clientServer(parts, configuration, sessions, realm, logger: logger, serverLogger: quiet)
        let routes = AdminRoutes(
            parts, configuration, sessions: sessions, realm: realm, clients: client, logger: logger)
        var port = NetServer.Configuration(
            host: configuration.network.adminHost, port: configuration.network.adminPort, shutdown: Self.shutdown)
        port.portOption = "--admin-port"
        admin = NetServer(configuration: port, router: routes.router(by: .port), logger: quiet)
        let place = try configuration.admin.socket.map { path throws(SluiceError) in try AdminSocket(path) }
        socketPath = place
        socket = place.map { place in
            var network = NetServer.Configuration(shutdown: Self.shutdown)
            network.unixSocket = place.hiddenPath
            return NetServer(configuration: network, router: routes.router(by: .socket), logger: quiet)
        }
    }

    /// Returns the server of the client port: HTTP routes and the WebSocket of sessions. Connections and requests share the count of
    /// refusals.
    private static func clientServer(
        _ parts: GatewayParts, _ configuration: GatewayConfiguration, _ sessions: SessionService, _ realm: RealmSessionService,
        logger: Logger, serverLogger: Logger
    ) -> NetServer {
        let network = configuration.network
        let path = WireProtocol.path(app: configuration.app.appID)
        let site = configuration.isDevelopment ? DevelopmentSite(host: network.host, names: network.siteNames) : nil
        var server = NetServer.Configuration(
            host: network.host, port: network.port, tls: network.tls, trustedProxies: network.trustedProxies, admission: network.admission,
            shutdown: configuration.grace.pace)
        // One limiter counts both the requests of the routes and the upgrades, which the server counts itself.
        let requests = RequestLimiter(network.admission)
        server.requests = requests
        server.onRefusal = parts.metrics.refusals(
            loggedBy: RefusalLog(logger: logger, environment: parts.sessionServices.environment))
        server.onCutOff = { cutOff in
            logger.warning(
                "The grace period ended before all work did. Clients repeat it at the next gateway. Raise --grace-seconds.",
                metadata: ["sessions": "\(cutOff.sockets)", "requests": "\(cutOff.requests)"])
        }
        return NetServer(
            configuration: server,
            router: clientRouter(parts, configuration, requests, server.onRefusal, site, logger: logger),
            webSockets: [
                WebSocketEndpoint(
                    matches: { $0 == path },
                    accept: { request in site?.problem(request).map { UpgradeDecision.refuse($0) } ?? sessions.accept(request) }),
                realm.endpoint(guardedBy: site),
            ],
            logger: serverLogger)
    }

    private static func clientRouter(
        _ parts: GatewayParts, _ configuration: GatewayConfiguration, _ requests: RequestLimiter,
        _ onRefusal: @escaping @Sendable (NetRefusal) -> Void, _ site: DevelopmentSite?, logger: Logger
    ) -> Router<ClientContext> {
        let router = Router(context: ClientContext.self)
        // The order matters: the limits need the client's address, and errors of the inner middleware must be responses for the metrics.
        router.add(middleware: ClientAddressMiddleware(proxies: configuration.network.trustedProxies))
        router.add(
            middleware: HTTPWatch(
                metrics: parts.metrics, environment: parts.sessionServices.environment, tracer: parts.telemetry.tracer))
        router.add(middleware: ErrorMiddleware(logger: logger))
        router.add(middleware: RequestLimitMiddleware(limiter: requests, onRefusal: onRefusal))
        AccountPages(
            accounts: parts.access.accounts, appID: configuration.app.appID, app: configuration.app.name
        ).add(to: router)
        // Behind the pages: a browser sends their forms without an origin, and only who has the secret of a link can send one.
        if let site { router.add(middleware: DevelopmentGuard(site: site)) }
        AuthRoutes(
            users: parts.access.users, keys: parts.access.keys, accounts: parts.access.accounts, identities: parts.access.identities,
            functions: parts.access.functions,
            settings: .init(
                appID: configuration.app.appID, publicOrigin: configuration.network.publicOrigin, isSecure: configuration.network.tls != nil
            ),
            metrics: parts.metrics
        ).add(to: router)
        APIKeyRoutes(keys: parts.access.keys, users: parts.access.users).add(to: router)
        IngestRoutes(services: parts.sessionServices, keys: parts.access.keys, idempotency: parts.idempotency).add(to: router)
        HealthRoutes(app: configuration.app.appID, readiness: parts.readiness, givesCauses: { _ in false }).add(to: router)
        return router
    }

    // MARK: Sessions of both protocols

    /// Ends sessions at once.
    func disconnect(_ scope: SessionScope, _ error: SluiceError) async {
        realm.disconnect(scope, error)
        await sessions.disconnect(scope, error)
    }

    /// Notifies sessions of changed user data, or of changed rules if `user` is nil.
    func reconsider(user: String?) {
        sessions.reconsider(user: user)
        realm.reconsider(user: user)
    }
}
