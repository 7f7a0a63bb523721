package import Logging
import ServiceLifecycle
package import SluiceCore
import SluiceKafka
import SluiceNet
import SluicePipeline
import SluicePluginHost
import SluicePorts
import SluicePostgres
import Synchronization

/// A gateway: the adapters, joined to the pipeline's ports, and the services.
///
/// `run` opens the parts, starts the services and calls `ready`. It serves until its task is cancelled or a graceful shutdown begins.
/// Services and parts then end in the opposite order.
package struct Gateway: Sendable {
    private let configuration: GatewayConfiguration
    private let logger: Logger
    private let environment: any Environment
    private let telemetry: Telemetry

    /// The addresses of a running gateway.
    package struct Addresses: Hashable, Sendable {
        package var url: String
        package var adminURL: String
        package var appID: String

        /// Returns the URL of a port. An IPv6 address has brackets there.
        static func url(_ host: String, _ port: Int, isSecure: Bool = false) -> String {
            "\(isSecure ? "https" : "http")://\(host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host):\(port)"
        }
    }

    /// - Parameter telemetry: The metrics and spans of this gateway. A program passes those of its process, see `Telemetry.bootstrap`.
    package init(
        _ configuration: GatewayConfiguration, logger: Logger, environment: any Environment = ServerEnvironment(),
        telemetry: Telemetry? = nil
    ) {
        self.configuration = configuration
        self.logger = logger
        self.environment = environment
        self.telemetry = telemetry ?? Telemetry(collector: configuration.traceCollector, environment: environment)
    }

    /// Runs the gateway until cancellation or shutdown, and closes every part in either case.
    ///
    /// - Parameter ready: Called once clients can connect.
    package func run(ready: @escaping @Sendable (Addresses) async throws -> Void) async throws {
        for note in configuration.app.notes {
            logger.warning(
                note.kind == .unused ? "A setting in the app directory has no effect." : "A part of the app directory needs attention.",
                metadata: ["note": .string(note.description)])
        }
        let parts = try await GatewayParts.open(configuration, telemetry, logger: logger, environment: environment)
        do {
            try await serve(parts, ready)
        } catch {
            await parts.close()
            throw error
        }
        await parts.close()
    }

    private func serve(_ parts: GatewayParts, _ ready: @escaping @Sendable (Addresses) async throws -> Void) async throws {
        let servers = try GatewayServers(parts, configuration, logger: logger)
        defer { servers.socketPath?.remove() }
        let appID = configuration.app.appID
        let host = configuration.network.host
        let adminHost = configuration.network.adminHost
        let isSecure = configuration.network.tls != nil
        let announce = BackgroundService("announce") {
            if let socket = servers.socket, let place = servers.socketPath {
                // The socket is published under its real path only once the server listens on it.
                _ = try await socket.port
                try place.publish()
            }
            let addresses = Addresses(
                url: Addresses.url(host, try await servers.client.port, isSecure: isSecure),
                adminURL: Addresses.url(adminHost, try await servers.admin.port), appID: appID)
            try await ready(addresses)
            try await gracefulShutdown()
        }
        // The exporter is the first service, as services end in the opposite order: it sends the last spans of the others.
        var services: [any Service] = telemetry.exporter(of: appID, environment: environment, logger: logger).map { [$0] } ?? []
        services += parts.services + [servers.admin]
        if let socket = servers.socket { services.append(socket) }
        // Before the sessions, which must not outlive the watches that end them.
        services += [watchUsers(parts, servers), recordPresence(parts, servers)]
        if let files = configuration.network.tls {
            let watch = CertificateWatch(
                files: files, renew: { () throws(SluiceError) in try servers.client.renewTLS() }, metrics: parts.metrics,
                environment: environment, logger: logger)
            services.append(BackgroundService("certificate") { try await watch.run() })
        }
        if let directory = configuration.directory { services.append(watchRules(in: directory, parts, servers)) }
        services += [servers.sessions, servers.realm, servers.client, announce]
        services.append(
            ShutdownNotice(
                readiness: parts.readiness, clients: servers.client, grace: configuration.grace, environment: environment, logger: logger))
        var group = ServiceGroupConfiguration(
            // A service that returns early ends the whole gateway.
            services: services.map { .init(service: $0, successTerminationBehavior: .gracefullyShutdownGroup) }, logger: logger)
        group.maximumGracefulShutdownDuration = .milliseconds(configuration.grace.servicesMilliseconds)
        try await Self.run(ServiceGroup(configuration: group))
    }

    private func watchUsers(_ parts: GatewayParts, _ servers: GatewayServers) -> any Service {
        let (access, generations) = (parts.access, parts.generations)
        return BackgroundService("users") {
            try await access.watch.run { change in
                guard let (scope, error) = change.end else { return }
                await servers.disconnect(scope, error)
                // A session that is still starting has no user yet, so `disconnect` misses it. It evaluates the user again here.
                servers.reconsider(user: change.user)
            } tell: { id in
                if let user = try? await access.authenticator.user(id: id) { await generations.userChanged(user) }
                servers.reconsider(user: id)
            } lost: {
                await servers.disconnect(
                    .all, SluiceError(.resync, "The changes of user accounts since the stored position are no longer available."))
            }
        }
    }

    private func recordPresence(_ parts: GatewayParts, _ servers: GatewayServers) -> any Service {
        let pool = parts.pools.main
        let presence = ReplicaPresence(
            clients: ClientStore(pool: pool), files: PostgresRealmClients(pool: pool),
            connected: { (parts.sessionServices.files.connected, await servers.realm.files) }, environment: environment, logger: logger)
        return BackgroundService("replicas") { try await presence.run() }
    }

    private func watchRules(in directory: String, _ parts: GatewayParts, _ servers: GatewayServers) -> any Service {
        let (schema, logger) = (parts.schema, logger)
        let grow: @Sendable (AppConfiguration, AppConfiguration) async throws -> Void = { try await schema.adopt($1, after: $0) }
        let watch = RuleWatch(
            directory: directory, generations: parts.generations, plugins: parts.plugins,
            hooks: .init(
                schema: { schema.current() }, grow: configuration.isDevelopment ? grow : nil,
                announce: { servers.reconsider(user: nil) }, report: configuration.reloaded ?? { $0.log(to: logger) }),
            metrics: parts.metrics, environment: environment)
        return BackgroundService("rules") { try await watch.run() }
    }

    /// Runs the services. On cancellation they end in order, each before those that it depends on. The group cancels the services that
    /// exceed the share of the grace period.
    private static func run(_ group: ServiceGroup) async throws {
        let services = Task { try await group.run() }  // Unstructured because: the cancellation must not reach all services at once.
        try await withTaskCancellationHandler {
            try await services.value
        } onCancel: {
            Task { await group.triggerGracefulShutdown() }  // Unstructured because: a cancellation handler cannot wait.
        }
    }
}

/// A loop of the pipeline as a service. Cancellation and graceful shutdown both cancel its body.
struct BackgroundService: Service {
    private let name: String
    private let body: @Sendable () async throws -> Void

    init(_ name: String, _ body: @escaping @Sendable () async throws -> Void) {
        self.name = name
        self.body = body
    }

    func run() async throws {
        do {
            try await cancelWhenGracefulShutdown { try await body() }
        } catch is CancellationError {
            return
        }
    }
}
