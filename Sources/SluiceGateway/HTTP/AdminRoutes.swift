import Hummingbird
import SluiceCore
import Logging
import SluicePipeline
import SluiceNet
import SluicePostgres

/// The routes of the admin port. `AdminAccess` requires tokens; `AdminGuard` rejects requests that other sites send through a browser.
struct AdminRoutes: Sendable {
    let parts: GatewayParts
    let configuration: GatewayConfiguration
    let sessions: SessionService
    let realm: RealmSessionService
    let clients: NetServer
    private let access: AdminAccess
    private let logger: Logger

    init(
        _ parts: GatewayParts, _ configuration: GatewayConfiguration, sessions: SessionService, realm: RealmSessionService,
        clients: NetServer, logger: Logger
    ) {
        self.logger = logger
        access = AdminAccess(
            tokens: configuration.admin.tokens, sessions: ConsoleSessions(environment: parts.sessionServices.environment),
            metrics: parts.metrics)
        self.parts = parts
        self.configuration = configuration
        self.sessions = sessions
        self.realm = realm
        self.clients = clients
    }

    func router(by door: AdminAccess.Door) -> Router<AdminContext> {
        let router = Router(context: AdminContext.self)
        router.add(middleware: ErrorMiddleware(for: .operators))
        router.add(middleware: AdminAuthentication(access: access, door: door))
        // Probes need neither token nor host name. Their responses hold nothing about users or machines.
        HealthRoutes(app: configuration.app.appID, readiness: parts.readiness, givesCauses: { ($0 as? AdminContext)?.identity != nil }).add(
            to: router)
        let authorization = AdminAuthorization(access: access)
        MetricsRoute(metrics: parts.metrics, refresh: gauges.refresh).add(to: router.group().add(middleware: authorization))
        let guarded = router.group().add(middleware: AdminGuard(names: [configuration.network.adminHost]))
        ConsoleLogin(access: access).add(to: guarded)
        let console = guarded.group().add(middleware: ConsoleAuthorization(access: access))
        ConsoleRoutes(
            console: Console(parts, app: configuration.app, gauges: gauges),
            questions: [.why(objectExplainer), .explain(subscriptionExplainer)],
            audit: ConsoleAudit(parts.audit, environment: parts.sessionServices.environment)
        ).add(to: console)
        let pending = ConsolePending(
            registrations: parts.access.accounts.registrations, environment: parts.sessionServices.environment)
        pending.add(to: console)
        // `AdminAuditing` runs after authorization, so that rejected requests are not audited.
        let auditing = AdminAuditing(logger: logger)
        pending.addChanges(to: console.group().add(middleware: authorization).add(middleware: auditing))
        addAPI(to: guarded.group("/admin/v1").add(middleware: authorization).add(middleware: auditing))
        return router
    }

    private func addAPI(to routes: RouterGroup<AdminContext>) {
        AdminUserRoutes(users: parts.access.users).add(to: routes)
        SigningKeyRoutes(store: parts.access.appKeys.store, keys: parts.access.appKeys.signing).add(to: routes)
        AdminAccountRoutes(accounts: parts.access.accounts).add(to: routes)
        APIKeyRoutes(keys: parts.access.keys, users: parts.access.users).addAdmin(to: routes)
        AdminQuarantineRoutes(quarantine: parts.quarantine, audit: parts.audit).add(to: routes)
        AdminPluginRoute(generations: parts.generations).add(to: routes)
        AdminIngestRoutes(letters: parts.letters, audit: parts.audit).add(to: routes)
        AdminWhyRoute(explainer: objectExplainer).add(to: routes)
        AdminExplainRoute(explainer: subscriptionExplainer).add(to: routes)
        AdminAuditRoute(audit: parts.audit).add(to: routes)
    }

    private var gauges: GatewayGauges {
        GatewayGauges(
            metrics: parts.metrics, services: parts.sessionServices, sessions: sessions, realm: realm, clients: clients,
            pool: parts.pools.main, slot: parts.slot)
    }

    private var objectExplainer: ObjectExplainer {
        ObjectExplainer(
            users: parts.access.users.directory, services: parts.sessionServices, sessions: sessions, realm: realm,
            quarantine: parts.quarantine, rejected: WriteRejectionStore(pool: parts.pools.main),
            clients: ClientStore(pool: parts.pools.main), files: PostgresRealmClients(pool: parts.pools.main))
    }

    private var subscriptionExplainer: SubscriptionExplainer {
        SubscriptionExplainer(
            users: parts.access.users.directory, services: parts.sessionServices, tables: { [schema = parts.schema] in schema.sqlTables })
    }
}
