import Hummingbird
import HummingbirdCore
package import NIOCore
import SluiceCore

extension NetServer {
    package struct Configuration: Sendable {
        package var host: String
        /// 0 binds any free port.
        package var port: Int
        /// The option of the command that sets the port, for errors.
        package var portOption = "--port"
        /// The path of a Unix socket that replaces host and port.
        package var unixSocket: String?
        /// `nil` serves plain HTTP.
        package var tls: TLSFiles?
        /// The reverse proxies in front of the server. Their headers determine the clients' addresses.
        package var trustedProxies: TrustedProxies
        /// Bounds of connections. Beyond them the server closes the new connection, or the oldest unauthenticated one.
        package var admission: AdmissionLimits
        /// Counts upgrades together with the requests of `RequestLimitMiddleware`. `nil` does not limit upgrades.
        package var requests: RequestLimiter?
        /// Bounds of request bodies.
        package var bodies: BodyPace.Bounds
        /// Called for each refused connection or request. It must not block.
        package var onRefusal: @Sendable (NetRefusal) -> Void
        /// The limit from accepting a connection to its first request. The server closes later ones.
        package var firstRequestPatience: TimeAmount
        /// The time that an HTTP connection may be idle between requests before the server closes it.
        package var idleTimeout: Duration
        /// The pace at which connections end once a graceful shutdown begins.
        package var shutdown: ShutdownPace
        /// Called at the end of a graceful shutdown that has cut off work. It must not block.
        package var onCutOff: @Sendable (ShutdownCutOff) -> Void

        package init(
            host: String = "127.0.0.1", port: Int = 0, tls: TLSFiles? = nil, trustedProxies: TrustedProxies = .none,
            admission: AdmissionLimits = AdmissionLimits(),
            firstRequestPatience: TimeAmount = .seconds(Limits.openingSeconds), idleTimeout: Duration = .seconds(75),
            shutdown: ShutdownPace = ShutdownPace()
        ) {
            self.host = host
            self.port = port
            self.tls = tls
            self.trustedProxies = trustedProxies
            self.admission = admission
            requests = nil
            bodies = BodyPace.Bounds()
            onRefusal = { _ in }
            self.firstRequestPatience = firstRequestPatience
            self.idleTimeout = idleTimeout
            self.shutdown = shutdown
            onCutOff = { _ in }
        }

        var application: ApplicationConfiguration {
            ApplicationConfiguration(
                address: unixSocket.map { .unixDomainSocket(path: $0) } ?? .hostname(host, port: port), serverName: nil, backlog: 1_024)
        }
    }
}
