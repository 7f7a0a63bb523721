package import HTTPTypes
package import Hummingbird
package import SluiceCore
import SluiceNet

/// Keeps the admin port, which may be open on the loopback, from being used through the browser of whoever can reach it.
///
/// A page of another site cannot read what the port answers, but it could have a browser send it something; and by changing what its
/// own name stands for (DNS rebinding) it could read, too. So what changes anything must not come from a page, and the name in the
/// address must be one that no stranger can own: an address, `localhost`, or a name without a dot, such as that of a service in a
/// network of containers. Programs send neither `Origin` nor `Sec-Fetch-Site`.
package struct AdminGuard<Context: RequestContext>: RouterMiddleware {
    private let names: Set<String>

    /// - Parameter names: those of this gateway's own, whatever their form.
    package init(names: [String]) { self.names = Set(names.map { $0.lowercased() }) }

    package func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        if let problem = Self.problem(request.head, names: names) { throw problem }
        return try await next(request, context)
    }

    /// Why a request is refused; nil: it is not.
    package static func problem(_ head: HTTPRequest, names: Set<String> = []) -> SluiceError? {
        if let authority = head.authority, !authority.isEmpty, !SiteName(authority: authority).isOwn(names) {
            return SluiceError(.crossSiteRequest, "The admin port is not asked by the name '\(authority)'.")
        }
        guard head.method != .get, head.method != .head, !isOwnForm(head) else { return nil }
        if let origin = head.headerFields[.origin] {
            return SluiceError(.crossSiteRequest, "A page of \(origin) asks the admin port to change something.")
        }
        let site = HTTPField.Name("Sec-Fetch-Site").flatMap { head.headerFields[$0] } ?? "none"
        guard site == "none" || site == "same-origin" else {
            return SluiceError(.crossSiteRequest, "A page of another site asks the admin port to change something.")
        }
        return nil
    }

    /// `true` for the console's own forms of login and logout, which the browser sends with the origin that it asks.
    private static func isOwnForm(_ head: HTTPRequest) -> Bool {
        guard ["/console/login", "/console/logout"].contains(head.path), let authority = head.authority else { return false }
        return ["http://\(authority)", "https://\(authority)"].contains(head.headerFields[.origin] ?? "")
    }
}
