import Hummingbird
import Logging
import NIOCore
import SluiceCore
import SluiceNet
import SluicePipeline
import SluiceWire

/// The servers of a gateway: the client port, the admin port and the optional admin socket.
struct GatewayServers: Sendable {
    let client: NetServer
    let admin: NetServer
    /// The admin port's routes on a Unix socket; nil if none is configured.
    let socket: NetServer?
    let socketPath: AdminSocket?
    let sessions: SessionService

    /// The time for connections to end, per server and in turn. The whole gateway has five seconds.
    private static let shutdownDeadline = TimeAmount.seconds(1)

    init(_ parts: GatewayParts, _ configuration: GatewayConfiguration, logger: Logger) throws {
        // The HTTP library's messages about closed connections do not help an operator. The routes log errors of requests.
        var quiet = logger
        quiet.logLevel = .critical
        let appID = configuration.app.appID
        let sessions = SessionService(
            services: parts.sessionServices, watch: parts.watch, isEnabled: configuration.app.isSyncEnabled)
        self.sessions = sessions
        let path = WireProtocol.path(app: appID)
        let network = configuration.network
        let requests = RequestLimiter(network.admission)
        let refused = parts.metrics.refusals(
            loggedBy: RefusalLog(logger: logger, environment: parts.sessionServices.environment))
        let router = Router(context: ClientContext.self)
        // The order matters: the limits need the client's address, and errors of the inner middleware must be responses for the metrics.
        router.add(middleware: ClientAddressMiddleware(proxies: configuration.network.trustedProxies))
        router.add(
            middleware: HTTPWatch(
                metrics: parts.metrics, environment: parts.sessionServices.environment, tracer: parts.telemetry.tracer))
        router.add(middleware: ErrorMiddleware(logger: logger))
        router.add(middleware: RequestLimitMiddleware(limiter: requests, onRefusal: refused))
        let site = configuration.isDevelopment ? DevelopmentSite(host: configuration.network.host) : nil
        if let site { router.add(middleware: DevelopmentGuard(site: site)) }
        AuthRoutes(
            users: parts.access.users, keys: parts.access.keys, settings: .init(appID: appID, syncPath: path), metrics: parts.metrics
        ).add(to: router)
        APIKeyRoutes(keys: parts.access.keys, users: parts.access.users).add(to: router)
        IngestRoutes(services: parts.sessionServices, keys: parts.access.keys, idempotency: parts.idempotency).add(to: router)
        HealthRoutes(readiness: parts.readiness, givesCauses: { _ in false }).add(to: router)
        var server = NetServer.Configuration(
            host: network.host, port: network.port, trustedProxies: network.trustedProxies, admission: network.admission,
            shutdownDeadline: Self.shutdownDeadline)
        server.requests = requests
        server.onRefusal = refused
        client = NetServer(
            configuration: server,
            router: router,
            webSocket: WebSocketEndpoint(
                matches: { $0 == path },
                accept: { request in site?.problem(request).map { UpgradeDecision.refuse($0) } ?? sessions.accept(request) }),
            logger: quiet)
        let routes = AdminRoutes(parts, configuration, sessions: sessions, clients: client, logger: logger)
        admin = NetServer(
            configuration: .init(
                host: configuration.network.adminHost, port: configuration.network.adminPort, shutdownDeadline: Self.shutdownDeadline),
            router: routes.router(by: .port), logger: quiet)
        let place = try configuration.admin.socket.map { path throws(SluiceError) in try AdminSocket(path) }
        socketPath = place
        socket = place.map { place in
            var network = NetServer.Configuration(shutdownDeadline: Self.shutdownDeadline)
            network.unixSocket = place.hiddenPath
            return NetServer(configuration: network, router: routes.router(by: .socket), logger: quiet)
        }
    }
}
