package import HTTPTypes
package import Hummingbird
package import SluiceCore
import SluiceNet

/// Protects the admin port from requests that other sites' pages send through an operator's browser. The port may be open on the loopback
/// without a token.
///
/// A page of another site cannot read the port's responses, but it can send requests. With DNS rebinding it can read, too. Changes must
/// therefore not originate from a page. The host name must be one that no third party can own: an address, `localhost`, or a name without
/// a dot. Programs send neither `Origin` nor `Sec-Fetch-Site`.
package struct AdminGuard<Context: RequestContext>: RouterMiddleware {
    private let names: Set<String>

    /// - Parameter names: The gateway's own names, in any form.
    package init(names: [String]) { self.names = Set(names.map { $0.lowercased() }) }

    package func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        if let problem = Self.problem(request.head, names: names) { throw problem }
        return try await next(request, context)
    }

    /// Returns the error for a request that must be rejected; nil for any other.
    package static func problem(_ head: HTTPRequest, names: Set<String> = []) -> SluiceError? {
        if let authority = head.authority, !authority.isEmpty, !SiteName(authority: authority).isOwn(names) {
            return SluiceError(.crossSiteRequest, "The admin port does not serve the host name '\(authority)'.")
        }
        guard head.method != .get, head.method != .head, !isOwnForm(head) else { return nil }
        if let origin = head.headerFields[.origin] {
            return SluiceError(.crossSiteRequest, "A page of \(origin) requests a change at the admin port.")
        }
        let site = HTTPField.Name("Sec-Fetch-Site").flatMap { head.headerFields[$0] } ?? "none"
        guard site == "none" || site == "same-origin" else {
            return SluiceError(.crossSiteRequest, "A page of another site requests a change at the admin port.")
        }
        return nil
    }

    /// `true` for the console's own forms. Browsers send them with the origin of the console.
    private static func isOwnForm(_ head: HTTPRequest) -> Bool {
        guard let path = head.path, let authority = head.authority,
            ["/console/login", "/console/logout"].contains(path) || path.hasPrefix("\(ConsolePending.path)/")
        else { return false }
        return ["http://\(authority)", "https://\(authority)"].contains(head.headerFields[.origin] ?? "")
    }
}
