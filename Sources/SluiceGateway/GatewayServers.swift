import Hummingbird
import Logging
import NIOCore
import SluiceCore
import SluiceNet
import SluicePipeline
import SluiceWire

/// The gateway's two ports: what clients see, and what operators see.
struct GatewayServers: Sendable {
    let client: NetServer
    let admin: NetServer
    let sessions: SessionService

    /// How long connections may take to end, each server's in turn; the whole gateway has five seconds.
    private static let shutdownDeadline = TimeAmount.seconds(1)

    init(_ parts: GatewayParts, _ configuration: GatewayConfiguration, logger: Logger) throws {
        // What the HTTP library says of connections that end is no operator's business; errors of requests are the routes'.
        var quiet = logger
        quiet.logLevel = .critical
        let appID = configuration.app.appID
        let sessions = SessionService(services: parts.sessionServices)
        self.sessions = sessions
        parts.access.onChange.listen { user, change in
            await sessions.disconnect(user: user, change.error(user))
        }
        let path = WireProtocol.path(app: appID)
        let router = Router(context: ClientContext.self)
        router.add(middleware: ErrorMiddleware())
        AuthRoutes(users: parts.access.users, settings: .init(appID: appID, syncPath: path)).add(to: router)
        IngestRoutes(services: parts.sessionServices).add(to: router)
        HealthRoutes(readiness: parts.readiness).add(to: router)
        client = NetServer(
            configuration: .init(
                host: configuration.network.host, port: configuration.network.port, shutdownDeadline: Self.shutdownDeadline),
            router: router, webSocket: WebSocketEndpoint(matches: { $0 == path }, accept: { sessions.accept($0) }), logger: quiet)
        let adminRouter = Router(context: ClientContext.self)
        adminRouter.add(middleware: ErrorMiddleware())
        HealthRoutes(readiness: parts.readiness).add(to: adminRouter)
        AdminUserRoutes(users: parts.access.users).add(to: adminRouter.group("/admin/v1"))
        AdminQuarantineRoutes(quarantine: parts.quarantine).add(to: adminRouter.group("/admin/v1"))
        let (metrics, fanout, environment) = (parts.metrics, parts.sessionServices.fanout, parts.sessionServices.environment)
        MetricsRoute(metrics: metrics) {
            metrics.number(.sessions).set(Double(sessions.count))
            let last = await fanout.lastCommitTime
            let lag = last == 0 ? 0 : Double(environment.wallMilliseconds() * 1_000 - last) / 1e6
            metrics.number(.watermarkLag).set(max(lag, 0))
        }.add(to: adminRouter)
        admin = NetServer(
            configuration: .init(
                host: configuration.network.adminHost, port: configuration.network.adminPort, shutdownDeadline: Self.shutdownDeadline),
            router: adminRouter, logger: quiet)
    }
}

extension UserService.Change {
    /// Why a session ends. After a change of custom data it comes back by itself, under the new rules.
    func error(_ user: String) -> SluiceError {
        switch self {
        case .customData: SluiceError(.resync, "The custom data of user \(user) changed; the session starts again under the new rules.")
        case .disabled: SluiceError(.userDisabled, "User \(user) was disabled.")
        case .deleted: SluiceError(.userDisabled, "User \(user) was deleted.")
        case .sessionsRevoked: SluiceError(.invalidSession, "The sessions of user \(user) were revoked.")
        }
    }
}
