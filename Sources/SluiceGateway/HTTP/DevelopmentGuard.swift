import HTTPTypes
package import Hummingbird
package import SluiceCore
package import SluiceNet

/// Protects the client port of `sluice dev` from other sites' pages in the developer's browser. Such a gateway admits every user.
///
/// `Host` must name this machine, which prevents DNS rebinding. `Origin` must be a page of this machine. Browsers send it with WebSocket
/// handshakes and with requests that change something; apps do not.
package struct DevelopmentGuard<Context: RequestContext>: RouterMiddleware {
    private let site: DevelopmentSite

    package init(site: DevelopmentSite) { self.site = site }

    package func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        if let problem = site.problem(host: request.head.authority, origin: request.head.headerFields[.origin]) { throw problem }
        return try await next(request, context)
    }
}

/// The names of the client port of `sluice dev`.
package struct DevelopmentSite: Sendable {
    private let names: Set<String>

    /// - Parameters:
    ///   - host: The address that the port is bound to.
    ///   - names: The other addresses of this machine whose pages are admitted, if the port is bound to all of them.
    package init(host: String, names: Set<String> = []) { self.names = Set(names.map { $0.lowercased() } + [host.lowercased()]) }

    /// Returns the error for a request that must be rejected; nil for any other.
    package func problem(host: String?, origin: String?) -> SluiceError? {
        if let host, !host.isEmpty, !SiteName(authority: host).isOwn(names) {
            return SluiceError(.crossSiteRequest, "A development gateway does not serve the host name '\(host)'.")
        }
        if let origin, SiteName(origin: origin)?.isLocal(names) != true {
            return SluiceError(.crossSiteRequest, "A page of \(origin) sent a request to a development gateway.")
        }
        return nil
    }

    /// Returns the error for a WebSocket handshake that must be rejected; nil for any other.
    package func problem(_ request: UpgradeRequest) -> SluiceError? {
        problem(host: request.header("Host"), origin: request.header("Origin"))
    }
}
