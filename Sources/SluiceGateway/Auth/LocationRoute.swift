import HTTPTypes
import Hummingbird
import SluiceCore
import SluiceNet
import SluiceValues

/// The gateway's addresses for clients, which Realm's SDKs request before their first other request.
///
/// The answer has no `sync_route`: clients make it from `ws_hostname` and the app id. A client that still has a token connects without this
/// route, so the path of sync cannot depend on it.
struct LocationRoute: Sendable {
    /// The configured address, which has precedence over all headers.
    let publicOrigin: ServerOrigin?
    /// `true` if the client port itself has TLS. A proxy's header has precedence.
    let isSecure: Bool

    func answer(_ request: Request, _ context: some ForwardedContext) throws(SluiceError) -> Response {
        let origin = try origin(request, context.forwardedOrigin)
        return JSONResponse([
            "deployment_model": "LOCAL", "location": "local", "hostname": .string(origin.url), "ws_hostname": .string(origin.socketURL),
        ]).response
    }

    private func origin(_ request: Request, _ forwarded: ForwardedOrigin) throws(SluiceError) -> ServerOrigin {
        if let publicOrigin { return publicOrigin }
        guard let authority = forwarded.authority ?? request.head.authority.flatMap({ HostAndPort($0) }) else {
            throw SluiceError(
                .badRequest, "The Host header '\((request.head.authority ?? "").prefix(80))' is not a host with an optional port.",
                fix: "Send the host that the client connects to, or start the gateway with --public-url.")
        }
        return ServerOrigin(isSecure: forwarded.isSecure ?? isSecure, authority: authority)
    }
}
