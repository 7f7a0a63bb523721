import Hummingbird
import SluiceCore
import SluicePipeline
import SluiceNet
import SluicePostgres

/// What the admin port answers. Whoever reaches it may do everything; `AdminGuard` keeps out browsers that other sites send.
struct AdminRoutes: Sendable {
    let parts: GatewayParts
    let configuration: GatewayConfiguration
    let sessions: SessionService
    let clients: NetServer

    init(_ parts: GatewayParts, _ configuration: GatewayConfiguration, sessions: SessionService, clients: NetServer) {
        self.parts = parts
        self.configuration = configuration
        self.sessions = sessions
        self.clients = clients
    }

    var router: Router<ClientContext> {
        let router = Router(context: ClientContext.self)
        router.add(middleware: ErrorMiddleware())
        // Programs ask for these by whatever name a network has for the gateway, and they tell nothing of users.
        HealthRoutes(readiness: parts.readiness, givesCauses: true).add(to: router)
        MetricsRoute(metrics: parts.metrics, refresh: gauges.refresh).add(to: router)
        let guarded = router.group().add(middleware: AdminGuard(names: [configuration.network.adminHost]))
        ConsoleRoutes(
            console: Console(parts, app: configuration.app.appID, gauges: gauges),
            questions: [.why(objectExplainer), .explain(subscriptionExplainer)]
        ).add(to: guarded)
        addAPI(to: guarded.group("/admin/v1"))
        return router
    }

    private func addAPI(to routes: RouterGroup<ClientContext>) {
        AdminUserRoutes(users: parts.access.users).add(to: routes)
        APIKeyRoutes(keys: parts.access.keys, users: parts.access.users).addAdmin(to: routes)
        AdminQuarantineRoutes(quarantine: parts.quarantine).add(to: routes)
        AdminPluginRoute(generations: parts.generations).add(to: routes)
        AdminIngestRoutes(letters: parts.letters).add(to: routes)
        AdminWhyRoute(explainer: objectExplainer).add(to: routes)
        AdminExplainRoute(explainer: subscriptionExplainer).add(to: routes)
    }

    private var gauges: GatewayGauges {
        GatewayGauges(
            metrics: parts.metrics, services: parts.sessionServices, sessions: sessions, clients: clients, pool: parts.pools.main,
            slot: parts.slot)
    }

    private var objectExplainer: ObjectExplainer {
        let services = parts.sessionServices
        return ObjectExplainer(
            users: parts.access.users.directory, authority: services.authority, rules: services.rules, snapshots: services.snapshots,
            environment: services.environment, sessions: sessions, quarantine: parts.quarantine,
            rejected: RejectedWriteStore(pool: parts.pools.main), clients: ClientStore(pool: parts.pools.main))
    }

    private var subscriptionExplainer: SubscriptionExplainer {
        SubscriptionExplainer(users: parts.access.users.directory, services: parts.sessionServices)
    }
}
