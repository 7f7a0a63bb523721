import HTTPTypes
package import Hummingbird
import SluiceCore
package import SluiceNet

/// The pages behind the links of mails, below `/api/client/v2.0/app/<app id>/pages/`.
///
/// - `GET confirm?token=&tokenId=`, `GET reset?token=&tokenId=`: Returns a form, and changes nothing: scanners of mails follow links.
/// - `POST confirm`: Confirms the address.
/// - `POST reset`: Sets the password.
///
/// A form needs no protection against other sites' pages: the secret of the link is in it, and no cookie is.
package struct AccountPages: Sendable {
    /// The largest body of a form, in bytes.
    private static let bodyBytes = 8 << 10

    private let accounts: EmailAccounts
    private let appID: String
    /// The name of the app, in the titles.
    private let app: String

    package init(accounts: EmailAccounts, appID: String, app: String) {
        self.accounts = accounts
        self.appID = appID
        self.app = app
    }

    /// Returns the URL of a page.
    static func url(_ page: String, origin: String, app: String) -> String { "\(origin)/api/client/v2.0/app/\(app)/pages/\(page)" }

    package func add<Context: ForwardedContext>(to router: Router<Context>) {
        let routes = router.group("/api/client/v2.0/app/:app/pages")
        routes.get("confirm") { request, context in try await page(context) { confirmForm(try link(request.uri.query ?? "")) } }
        routes.get("reset") { request, context in try await page(context) { resetForm(try link(request.uri.query ?? "")) } }
        routes.post("confirm") { request, context in try await confirm(request, context) }
        routes.post("reset") { request, context in try await reset(request, context) }
    }

    // MARK: Forms

    /// The token of a link, as a browser sends it.
    private struct Link {
        var token: String
        var id: String
        /// All fields of the form.
        var fields: [String: String]

        var inputs: HTML {
            "<input type=\"hidden\" name=\"token\" value=\"\(token)\">\n<input type=\"hidden\" name=\"tokenId\" value=\"\(id)\">\n"
        }
    }

    private func link(_ encoded: String) throws -> Link {
        let fields = (try? URLEncodedFormDecoder().decode([String: String].self, from: encoded)) ?? [:]
        guard let token = fields["token"], let id = fields["tokenId"], !token.isEmpty, !id.isEmpty else { throw PasswordResets.invalid }
        return Link(token: token, id: id, fields: fields)
    }

    private func link(_ request: Request) async throws -> Link {
        var request = request
        return try link(String(buffer: try await request.collectBody(upTo: Self.bodyBytes)))
    }

    private func confirmForm(_ link: Link) -> AccountPage {
        AccountPage(
            title: "Confirm your e-mail address for \(app)",
            body: """
                <form method="post" action="confirm">
                \(link.inputs)\
                <p><button type="submit">Confirm the address</button></p>
                </form>

                """)
    }

    private func resetForm(_ link: Link, problem: ClientError? = nil, status: HTTPResponse.Status = .ok) -> AccountPage {
        AccountPage(
            title: "Set a new password for \(app)",
            body: """
                \(problem.map(Self.paragraph) ?? "")\
                <form method="post" action="reset">
                \(link.inputs)\
                <label>New password <input name="password" type="password" autocomplete="new-password" required></label>
                <label>The same password again <input name="again" type="password" autocomplete="new-password" required></label>
                <p><button type="submit">Set the password</button></p>
                </form>

                """, status: status)
    }

    // MARK: Changes

    private func confirm(_ request: Request, _ context: some ForwardedContext) async throws -> Response {
        try await page(context) {
            let link = try await link(request)
            try await accounts.registrations.confirm(token: link.token, id: link.id, from: AuthRoutes.address(context))
            return AccountPage(title: "Your e-mail address is confirmed", body: "<p>You can log in to \(app) now.</p>\n")
        }
    }

    private func reset(_ request: Request, _ context: some ForwardedContext) async throws -> Response {
        try await page(context) {
            let link = try await link(request)
            do {
                let password = link.fields["password"] ?? ""
                guard password == link.fields["again"] else {
                    throw SluiceError(.badRequest, "The two passwords differ.", fix: "Write the same password twice.")
                }
                try await accounts.resets.setPassword(password, token: link.token, id: link.id, from: AuthRoutes.address(context))
            } catch let error as SluiceError where error.code == .badRequest {
                // The token is still valid, so the form is shown again.
                return resetForm(link, problem: ClientError(error), status: .badRequest)
            }
            return AccountPage(
                title: "Your password is set", body: "<p>You can log in to \(app) with it now. All earlier logins have ended.</p>\n")
        }
    }

    // MARK: Answers

    /// Returns the page, or one about the error.
    private func page(_ context: some RequestContext, _ body: () async throws -> AccountPage) async throws -> Response {
        do {
            guard context.parameters.get("app") == appID else {
                throw ErrorResponse(
                    SluiceError(.badRequest, "This gateway serves another app.", fix: "Use the link of the mail."), status: .notFound)
            }
            return try await body().response
        } catch let error as ErrorResponse {
            return Self.failure(error).response
        } catch let error as TooManyAttempts {
            return Self.failure(ErrorResponse(error.asSluiceError, retryAfter: error.seconds)).response
        } catch let error as any SluiceErrorConvertible {
            return Self.failure(ErrorResponse(error.asSluiceError)).response
        }
    }

    private static func failure(_ error: ErrorResponse) -> AccountPage {
        var page =
            error.name == PasswordResets.invalidName
            ? AccountPage(
                title: "This link is not valid",
                body: "<p role=\"alert\">It has been used, or it is too old. Request a new one in the app.</p>\n")
            : AccountPage(title: "This did not work", body: paragraph(ClientError(error.error)))
        page.status = error.status
        page.retryAfter = error.retryAfter
        return page
    }

    private static func paragraph(_ error: ClientError) -> HTML {
        "<p class=\"problem\" role=\"alert\">\(error.message) \(error.fix)</p>\n"
    }
}
