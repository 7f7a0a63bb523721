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
    private let ticket: ConnectionTicket?
    /// The request's headers and the proxy that sent them. Nil if the other end of the connection is no trusted proxy.
    private var proxied: Proxied?

    private struct Proxied {
        let peer: NetworkAddress
        let headers: HTTPFields
        let proxies: TrustedProxies
    }

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

    /// The origin that the client used, read from the headers at each access: few requests need it.
    package var forwardedOrigin: ForwardedOrigin {
        proxied.map { $0.proxies.origin(peer: $0.peer, Self.pairs($0.headers)) } ?? .none
    }

    private static func pairs(_ headers: HTTPFields) -> some Sequence<(name: String, value: String)> {
        headers.lazy.map { (name: $0.name.canonicalName, value: $0.value) }
    }

    /// Replaces a trusted proxy's address by the client's.
    package mutating func resolveAddress(_ headers: HTTPFields, behind proxies: TrustedProxies) {
        guard let peer = clientAddress, proxies.trust(peer) else { return }
        proxied = Proxied(peer: peer, headers: headers, proxies: proxies)
        let client = proxies.client(peer: peer, Self.pairs(headers))
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
