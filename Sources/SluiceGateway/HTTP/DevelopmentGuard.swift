import HTTPTypes
package import Hummingbird
package import SluiceCore
package import SluiceNet

/// Keeps the client port of `sluice dev`, which lets everybody in, from being used through the browser of the developer.
///
/// `Host` must name this machine, so that a page cannot reach the port by DNS rebinding. `Origin`, which browsers send with WebSocket
/// handshakes and with whatever changes something, must be a page of this machine. Apps send no `Origin`.
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

/// The names by which the client port of `sluice dev` may be asked.
package struct DevelopmentSite: Sendable {
    private let names: Set<String>

    /// - Parameter host: the address that the port is bound to.
    package init(host: String) { names = [host.lowercased()] }

    /// The reason against a request; nil: there is none.
    package func problem(host: String?, origin: String?) -> SluiceError? {
        if let host, !host.isEmpty, !SiteName(authority: host).isOwn(names) {
            return SluiceError(.crossSiteRequest, "A development gateway is not asked by the name '\(host)'.")
        }
        if let origin, SiteName(origin: origin)?.isLocal(names) != true {
            return SluiceError(.crossSiteRequest, "A page of \(origin) asks a development gateway.")
        }
        return nil
    }

    /// The same for a WebSocket handshake.
    package func problem(_ request: UpgradeRequest) -> SluiceError? {
        problem(host: request.header("Host"), origin: request.header("Origin"))
    }
}
