package import HTTPTypes
package import Hummingbird
package import NIOCore

/// A request's context with the address it comes from.
package struct ClientContext: RequestContext, RemoteAddressRequestContext {
    package var coreContext: CoreRequestContextStorage
    /// The client's address: the other end of the connection, or what `ClientAddressMiddleware` has found behind it.
    package private(set) var remoteAddress: SocketAddress?

    package init(source: ApplicationRequestContextSource) {
        coreContext = .init(source: source)
        remoteAddress = source.channel.remoteAddress
    }

    /// The client's address without its port; nil on a Unix socket.
    package var clientAddress: NetworkAddress? { NetworkAddress(remoteAddress) }

    /// Replaces a trusted proxy's address by the client's.
    package mutating func resolveAddress(_ headers: HTTPFields, behind proxies: TrustedProxies) {
        guard let peer = clientAddress, proxies.trust(peer) else { return }
        let client = proxies.client(peer: peer, headers.lazy.map { (name: $0.name.canonicalName, value: $0.value) })
        // The port is the proxy's own and tells nothing of the client.
        if client != peer { remoteAddress = client.socketAddress(port: 0) }
    }
}

/// Resolves the address of each request's client behind trusted proxies. It comes before every middleware that uses the address.
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
