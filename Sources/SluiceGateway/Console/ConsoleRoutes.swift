import HTTPTypes
import Hummingbird
import SluiceCore
import SluiceNet

/// The routes of the operator console that only read, on the admin port.
///
/// - `GET /`: Redirects to `/console`.
/// - `GET /console`: Shows this gateway's state, refreshed every five seconds. `?still=1` does not refresh.
/// - `GET /console/why?user=&type=&id=`: Shows the form and the answer of `GET /admin/v1/why` as text.
/// - `GET /console/explain?user=&type=&query=`: Shows the form and the answer of `GET /admin/v1/explain` as text.
/// - `GET /console/audit`: Shows the newest changes by operators.
struct ConsoleRoutes: Sendable {
    let console: Console
    let questions: [ConsoleQuestion]
    let audit: ConsoleAudit

    func add(to routes: some RouterMethods<some RequestContext>) {
        routes.get("/") { _, _ in Response.redirect(to: "/console", type: .found) }
        routes.get("/console") { request, _ in
            Self.response(await console.page(isStill: request.uri.queryParameters["still"] != nil))
        }
        routes.get("/console/audit") { _, _ in Self.response(await audit.page()) }
        for question in questions {
            routes.get(RouterPath(question.path)) { request, context in
                // Forms encode spaces as plus signs, which `queryParameters` does not decode.
                let asked = try request.uri.decodeQuery(as: [String: String].self, context: context)
                let (page, error) = await question.page(asked)
                return Self.response(page, status: error?.code.httpStatus ?? .ok)
            }
        }
    }

    static func response(_ page: ConsolePage, status: HTTPResponse.Status = .ok, referrer: String = "no-referrer") -> Response {
        var headers: HTTPFields = [
            .contentType: "text/html; charset=utf-8", .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
            .contentSecurityPolicy:
                "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
        ]
        if let policy = HTTPField.Name("Referrer-Policy") { headers[policy] = referrer }
        return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(string: page.html.text)))
    }
}
