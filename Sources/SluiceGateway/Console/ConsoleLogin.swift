import HTTPTypes
import Hummingbird
import SluiceCore
import SluiceNet

/// The console's login with an admin token, and its cookie.
///
/// - `GET /console/login`: Returns the form.
/// - `POST /console/login` `token=`: Sets the cookie and redirects to the console. Returns 401 with the form for a wrong token.
/// - `GET /console/logout`: Returns the question.
/// - `POST /console/logout`: Ends the login.
///
/// The cookie is valid for the console only, with the role of its token. The admin API needs a token.
struct ConsoleLogin: Sendable {
    static let cookieName = "sluice_console"
    private static let bodyBytes = 4 << 10

    let access: AdminAccess

    func add(to routes: some RouterMethods<AdminContext>) {
        routes.get("/console/login") { _, _ in Self.response(Self.form()) }
        routes.post("/console/login") { request, _ in try await logIn(request) }
        routes.get("/console/logout") { _, _ in Self.response(Self.question) }
        routes.post("/console/logout") { request, _ in
            if let cookie = Self.cookie(of: request) { access.sessions.end(cookie) }
            return Self.leading(to: "/console/login", cookie: "", lifetime: 0, request)
        }
    }

    private func logIn(_ asked: Request) async throws -> Response {
        var request = asked
        let body = String(buffer: try await request.collectBody(upTo: Self.bodyBytes))
        let token = (try? URLEncodedFormDecoder().decode([String: String].self, from: body))?["token"] ?? ""
        guard let found = access.tokens.token(of: String(token.filter { !$0.isWhitespace })) else {
            let error = SluiceError(
                .adminUnauthorized, "The token is not an admin token of this gateway.", fix: "Use a token of the gateway's token file.")
            access.metrics.number(.adminRefused, label: error.code.name).add()
            return Self.response(Self.form(error), status: .unauthorized)
        }
        return Self.leading(
            to: "/console", cookie: access.sessions.begin(AdminAccess.identity(found)), lifetime: Limits.consoleSessionSeconds, request)
    }

    /// Returns the text of the console's cookie.
    static func cookie(of request: Request) -> String? { request.cookies[cookieName]?.value }

    private static func leading(to path: String, cookie text: String, lifetime: Int64, _ request: Request) -> Response {
        var response = Response.redirect(to: path, type: .normal)
        // The headers are not verified: a forged one only makes the cookie stricter.
        let isSecure = ["X-Forwarded-Proto", "Forwarded"].contains { name in
            HTTPField.Name(name).flatMap { request.headers[$0] }?.lowercased().contains("https") == true
        }
        response.headers[.setCookie] =
            "\(cookieName)=\(text); Path=/console; Max-Age=\(lifetime); HttpOnly; SameSite=Strict\(isSecure ? "; Secure" : "")"
        response.headers[.cacheControl] = "no-store"
        return response
    }

    private static func response(_ page: ConsolePage, status: HTTPResponse.Status = .ok) -> Response {
        // Without a referrer, browsers send `Origin: null`, which does not identify the form's page.
        ConsoleRoutes.response(page, status: status, referrer: "same-origin")
    }

    private static func form(_ problem: SluiceError? = nil) -> ConsolePage {
        let body: HTML = """
            <h1>Log in to the console</h1>
            \(problem.map(ConsoleError.paragraph) ?? "")\
            <form method="post" action="/console/login">
            <label>Admin token <input name="token" type="password" autocomplete="off" required></label>
            <p><button type="submit">Log in</button></p>
            </form>

            """
        return ConsolePage(title: "Log in – Sluice", body: body)
    }

    private static let question = ConsolePage(
        title: "Log out – Sluice",
        body: """
            <h1>Log out of the console</h1>
            <nav><p><a href="/console">Back to the console</a></p></nav>
            <form method="post" action="/console/logout">
            <p><button type="submit">Log out</button></p>
            </form>

            """)
}

/// Accepts the console's cookie as proof. Requests without it are redirected to the login.
struct ConsoleAuthorization: RouterMiddleware {
    typealias Context = AdminContext
    let access: AdminAccess

    func handle(
        _ request: Request, context: AdminContext, next: @concurrent (Request, AdminContext) async throws -> Response
    ) async throws -> Response {
        var context = context
        if context.identity == nil, let cookie = ConsoleLogin.cookie(of: request) { context.identity = access.sessions.identity(cookie) }
        guard context.identity != nil else { return Response.redirect(to: "/console/login", type: .normal) }
        return try await next(request, context)
    }
}
