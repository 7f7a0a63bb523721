package import HTTPTypes
package import Hummingbird
package import NIOCore

/// A request context whose sender can be marked as proven.
package protocol ProvableContext: RequestContext {
    /// Exempts the connection from the limits of unauthenticated ones: the request has a valid token or key.
    func senderIsProven()
}

/// A request context with the client's address, and the origin that the client used if trusted proxies name it.
package protocol ForwardedContext: RemoteAddressRequestContext {
    var forwardedOrigin: ForwardedOrigin { get }
}

/// A request context with the client's address.
package struct ClientContext: ForwardedContext, ProvableContext {
    package var coreContext: CoreRequestContextStorage
    /// The client's address: the other end of the connection, or the address behind it that `ClientAddressMiddleware` found.
    package private(set) var remoteAddress: SocketAddress?
    package private(set) var forwardedOrigin = ForwardedOrigin.none
    private let ticket: ConnectionTicket?

    package init(source: ApplicationRequestContextSource) {
        coreContext = .init(source: source)
        remoteAddress = source.channel.remoteAddress
        ticket = ConnectionTicket.current
    }

    package func senderIsProven() { ticket?.authenticate() }

    /// `true` if a request of the connection had a valid token or key.
    var isProven: Bool { ticket?.isProven ?? false }

    /// The client's address without its port. `nil` on a Unix socket.
    package var clientAddress: NetworkAddress? { NetworkAddress(remoteAddress) }

    /// Replaces a trusted proxy's address by the client's, and stores the origin that the client used.
    package mutating func resolveAddress(_ headers: HTTPFields, behind proxies: TrustedProxies) {
        guard let peer = clientAddress, proxies.trust(peer) else { return }
        let headers = headers.lazy.map { (name: $0.name.canonicalName, value: $0.value) }
        forwardedOrigin = proxies.origin(peer: peer, headers)
        let client = proxies.client(peer: peer, headers)
        // The port is the proxy's own.
        if client != peer { remoteAddress = client.socketAddress(port: 0) }
    }
}

/// Resolves the client's address and origin of each request behind trusted proxies. Add it before every middleware that uses the address.
package struct ClientAddressMiddleware: RouterMiddleware {
    private let proxies: TrustedProxies

    package init(proxies: TrustedProxies) { self.proxies = proxies }

    package func handle(
        _ request: Request, context: ClientContext, next: @concurrent (Request, ClientContext) async throws -> Response
    ) async throws -> Response {
        var context = context
        context.resolveAddress(request.headers, behind: proxies)
        return try await next(request, context)
    }
}
