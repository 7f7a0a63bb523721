package import Hummingbird
import HummingbirdCore
package import Logging
package import NIOCore
import NIOPosix
import ServiceLifecycle
package import SluiceCore
import Synchronization

/// HTTP routes and WebSocket endpoints on one port.
///
/// `run()` serves until graceful shutdown or cancellation. A shutdown accepts no new connections and lets requests finish. It closes each
/// WebSocket once the messages received have their answers (`SocketOwner.settle`), at the pace of `Configuration.shutdown`.
package final class NetServer: Service {
    private let configuration: Configuration
    private let eventLoopGroup: any EventLoopGroup
    private let logger: Logger
    private let connections: OpenConnections
    private let bound: EventLoopPromise<Int>
    private let onListening: @Sendable (Int) async -> Void
    /// The TLS settings; nil before `run()` and without TLS.
    private let tls = Mutex<ServerTLS?>(nil)
    /// Builds the Hummingbird application with its responder's type erased.
    private let makeApplication: @Sendable (ServerTLS?, @escaping @Sendable (any Channel) async -> Void) -> any Service

    /// - Parameters:
    ///   - router: the HTTP routes. Add `ErrorMiddleware` first, so that every error is JSON.
    ///   - webSockets: The endpoints; the first that matches a path serves it. None serves HTTP only.
    ///   - onListening: called with the port once it is bound. `port` returns only after it.
    package init<Context: RequestContext>(
        configuration: Configuration, router: Router<Context>, webSockets: [WebSocketEndpoint] = [],
        eventLoopGroup: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton, logger: Logger,
        onListening: @escaping @Sendable (Int) async -> Void = { _ in }
    ) where Context: InitializableFromSource<ApplicationRequestContextSource> {
        self.configuration = configuration
        self.eventLoopGroup = eventLoopGroup
        self.logger = logger
        self.onListening = onListening
        bound = eventLoopGroup.any().makePromise(of: Int.self)
        let connections = OpenConnections(
            limits: configuration.admission, proxies: configuration.trustedProxies, pace: configuration.shutdown,
            onRefusal: configuration.onRefusal)
        self.connections = connections
        let responder = router.buildResponder()
        makeApplication = { tls, onRunning in
            Application(
                responder: responder,
                server: HTTPServerBuilder { responder in
                    HTTPAndWebSocketChannel(
                        responder: responder, configuration: configuration, endpoints: webSockets, tls: tls, connections: connections)
                },
                configuration: configuration.application,
                onServerRunning: onRunning,
                eventLoopGroupProvider: .shared(eventLoopGroup),
                logger: logger)
        }
    }

    deinit { bound.fail(SluiceError(.shuttingDown, "The server has not been run.")) }

    /// The bound port. Waits until `run()` has bound it.
    /// - Throws: the error of `run()` if it cannot listen; `shuttingDown` if the server has ended.
    package var port: Int {
        get async throws { try await bound.futureResult.get() }
    }

    /// The number of open connections of both kinds.
    package var connectionCount: Int { connections.count }

    /// Reads the TLS files again, for connections that are accepted from now on. On failure, the server keeps those that it has.
    ///
    /// - Returns: The time at which a certificate of the chain expires first, in seconds since 1970; nil without TLS.
    /// - Throws: `configInvalid` naming the file at fault.
    package func renewTLS() throws(SluiceError) -> Int64? { try tls.withLock(\.self)?.renew() }

    /// Serves until graceful shutdown or cancellation.
    /// - Throws: `portInUse`, or `configInvalid` for the address or the TLS files.
    package func run() async throws {
        do {
            let tls = try configuration.tls.map { files throws(SluiceError) in try ServerTLS(files) }
            self.tls.withLock { $0 = tls }
            try await serve(tls: tls)
            bound.fail(SluiceError(.shuttingDown, "The server has stopped."))
        } catch {
            let named = configuration.listenError(error)
            bound.fail(named)
            throw named
        }
    }

    private func serve(tls: ServerTLS?) async throws {
        let application = makeApplication(tls) { [self] channel in
            // The library exposes the server's channel no earlier. `setup` decides on connections accepted before the gate.
            _ = try? await channel.eventLoop.submit { [connections] in
                try channel.pipeline.syncOperations.addHandler(AcceptGate(connections), position: .first)
            }.get()
            let port = channel.localAddress?.port ?? configuration.port
            await onListening(port)
            bound.succeed(port)
        }
        do {
            try await withGracefulShutdownHandler {
                try await application.run()
            } onGracefulShutdown: { [connections, configuration, eventLoopGroup] in
                connections.stop()
                eventLoopGroup.any().scheduleTask(in: configuration.shutdown.deadline) { connections.expire() }
            }
        } catch {
            connections.closeAll()
            throw error
        }
        // The application has waited for HTTP only: WebSocket connections have no task.
        await withTaskCancellationHandler {
            await connections.drained(on: eventLoopGroup.any())
        } onCancel: {
            connections.expire()
        }
        let cutOff = connections.cutOff
        if !cutOff.isEmpty { configuration.onCutOff(cutOff) }
    }
}

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif
