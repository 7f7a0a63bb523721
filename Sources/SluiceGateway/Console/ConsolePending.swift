import Hummingbird
import SluiceCore
import SluiceNet
import SluicePorts
import SluiceValues

/// The page of pending users, on which an operator confirms, reminds or removes them.
///
/// - `GET /console/pending?after=`: Returns users by id, `shown` at a time.
/// - `POST /console/pending/<id>/confirm`, `/send`, `/delete`: Makes the account, sends the mail again, deletes the registration.
///   Redirects to the page. They need the role `change`, and a form of the console (`AdminGuard`).
struct ConsolePending: Sendable {
    static let path = "/console/pending"
    static let shown = 50

    /// The changes, by the last part of their path.
    private enum Change: String, CaseIterable {
        case confirm, send, delete

        var button: HTML {
            switch self {
            case .confirm: "Confirm"
            case .send: "Send again"
            case .delete: "Remove"
            }
        }

        /// The sentence on the page after the change.
        var done: HTML {
            switch self {
            case .confirm: "The user has an account now."
            case .send: "The user gets another mail, or the confirmation function was called again."
            case .delete: "The registration is removed."
            }
        }
    }

    let registrations: Registrations
    let environment: any SluiceCore.Environment

    func add(to routes: some RouterMethods<AdminContext>) {
        routes.get(RouterPath(Self.path)) { request, context in
            let query = request.uri.queryParameters
            let done = query["done"].flatMap { Change(rawValue: String($0)) }
            let notice = done.map { change -> HTML in "<p class=\"good\">\(change.done)</p>\n" }
            let page = await page(after: query["after"].map(String.init) ?? "", notice ?? "", mayChange: Self.mayChange(context))
            return Self.response(page)
        }
    }

    /// Adds the routes that change something.
    func addChanges(to routes: some RouterMethods<AdminContext>) {
        for change in Change.allCases {
            routes.post(RouterPath("\(Self.path)/:id/\(change.rawValue)")) { _, context in
                do {
                    try await perform(change, id: try context.parameters.require("id"))
                    return Response.redirect(to: "\(Self.path)?done=\(change.rawValue)", type: .normal)
                } catch {
                    guard let error = ConsoleError.shown(error) else { throw error }
                    let page = await page(after: "", ConsoleError.paragraph(error), mayChange: Self.mayChange(context))
                    return Self.response(page, status: error.code.httpStatus)
                }
            }
        }
    }

    private func perform(_ change: Change, id: String) async throws {
        switch change {
        case .confirm: try await registrations.confirm(id: id)
        case .send: try await registrations.resend(id: id)
        case .delete: try await registrations.delete(id: id)
        }
    }

    private static func mayChange(_ context: AdminContext) -> Bool { context.identity.map { $0.role >= .change } ?? false }

    private static func response(_ page: ConsolePage, status: HTTPResponse.Status = .ok) -> Response {
        // Without a referrer, browsers send `Origin: null`, which does not identify the form's page.
        ConsoleRoutes.response(page, status: status, referrer: "same-origin")
    }

    // MARK: The page

    /// - Parameter notice: The outcome of a change, before the list.
    private func page(after id: String, _ notice: HTML, mayChange: Bool) async -> ConsolePage {
        let users = await PartReader("The list of pending users", patience: Console.patience, environment: environment) {
            try await registrations.list(after: id, limit: Self.shown)
        }
        .read()
        let content: HTML =
            switch users {
            case .failure(let error): ConsoleError.paragraph(error)
            case .success(let users) where users.isEmpty: "<p>None.</p>\n"
            case .success(let users): Self.list(users, mayChange: mayChange)
            }
        let body: HTML = """
            <h1>Pending users</h1>
            <nav><p><a href="/console">Back to the console</a>\(id.isEmpty ? "" : Self.first)</p></nav>
            \(notice)\(ConsolePage.section("pending", "Registered, not confirmed", content))
            """
        return ConsolePage(title: "Pending users – Sluice", body: body)
    }

    private static let first: HTML = " · <a href=\"\(path)\">First page</a>"

    private static func list(_ users: [PendingUser], mayChange: Bool) -> HTML {
        var table = ConsoleTable(
            "By id, of sluice.pending_user", ["Address", "Id", "Registered", "Expires"] + (mayChange ? ["Change"] : []))
        for user in users {
            let cells: [HTML] = ["<code>\(user.id)</code>", time(user.registered), time(user.expires)]
            table.add("<span class=\"long\">\(user.email.cut(to: Console.characters))</span>", cells + (mayChange ? [forms(of: user)] : []))
        }
        let next = users.count < shown ? nil : users.last?.id
        let link = next.map { id -> HTML in "<nav><p><a href=\"\(path)?after=\(id)\">Next page</a></p></nav>\n" }
        return "\(table.html)\(link ?? "")"
    }

    private static func time(_ milliseconds: Int64) -> HTML { "<time>\(Timestamp(milliseconds: milliseconds).iso8601)</time>" }

    private static func forms(of user: PendingUser) -> HTML {
        let forms = Change.allCases.map { change -> HTML in
            """
            <form method="post" action="\(path)/\(user.id)/\(change.rawValue)">\
            <button type="submit" aria-label="\(change.button): \(user.email)">\(change.button)</button></form>
            """
        }
        return "\(forms)"
    }
}
