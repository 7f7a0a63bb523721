import Hummingbird
import SluiceCore
import SluiceNet
import SluiceValues

/// The routes of App Services' client API for `local-userpass`, beside its login. All are POST, below `auth/providers/local-userpass/`.
///
/// - `register` `{email, password}`: Registers a user and returns 201.
/// - `confirm` `{token, tokenId}`: Confirms the address that the link was sent to.
/// - `confirm/send` `{email}`: Sends the link again.
/// - `confirm/call` `{email}`: Calls the confirmation function again.
/// - `reset` `{password, token, tokenId}`: Sets a password with the token of a link.
/// - `reset/send` `{email}`: Sends such a link.
/// - `reset/call` `{email, password, arguments}`: Calls the reset function.
struct EmailRoutes: Sendable {
    let accounts: EmailAccounts
    let metrics: Metrics
    /// Throws if the path names another app.
    let check: @Sendable (any RequestContext) throws -> Void

    func add<Context: RemoteAddressRequestContext>(to app: RouterGroup<Context>) {
        let routes = app.group("auth/providers/local-userpass")
        let (registrations, recovery, resets) = (accounts.registrations, accounts.recovery, accounts.resets)
        add("register", to: routes, status: .created) { body, address in
            try await registrations.register(email: try body.text("email"), password: try body.text("password"), from: address)
        }
        add("confirm", to: routes) { body, address in
            try await registrations.confirm(token: try body.text("token"), id: try body.text("tokenId"), from: address)
        }
        add("confirm/send", to: routes) { body, address in try await registrations.resend(email: try body.text("email"), from: address) }
        add("confirm/call", to: routes) { body, address in try await registrations.retry(email: try body.text("email"), from: address) }
        add("reset", to: routes) { body, address in
            try await resets.setPassword(
                try body.text("password"), token: try body.text("token"), id: try body.text("tokenId"), from: address)
        }
        add("reset/send", to: routes) { body, address in try await recovery.send(email: try body.text("email"), from: address) }
        add("reset/call", to: routes) { body, address in
            try await recovery.call(
                email: try body.text("email"), password: try body.text("password"), arguments: body["arguments"]?.array ?? [],
                from: address)
        }
    }

    private func add<Context: RemoteAddressRequestContext>(
        _ path: String, to routes: RouterGroup<Context>, status: HTTPResponse.Status = .ok,
        _ body: @escaping @Sendable (JSON, _ address: String) async throws -> Void
    ) {
        routes.post(RouterPath(path)) { request, context in
            try check(context)
            let json = try await request.json(upTo: AuthRoutes.bodyBytes)
            try await AuthRoutes.limited(metrics) { try await body(json, AuthRoutes.address(context)) }
            return JSONResponse(.object([]), status: status).response
        }
    }
}

extension JSON {
    /// Returns a text of the body of a request.
    ///
    /// - Throws: `badRequest` if it is missing, empty or not a text.
    func text(_ key: String) throws(SluiceError) -> String {
        guard let text = self[key]?.string, !text.isEmpty else {
            throw SluiceError(.badRequest, "'\(key)' is missing or not a string.", fix: "Send it in the JSON body.")
        }
        return text
    }
}
