package import Hummingbird
import HTTPTypes
import NIOCore
import SluiceCore
package import SluiceIdentity
package import SluiceNet
import SluicePorts
import SluiceValues

/// The routes of App Services' client API for users, with the paths and JSON shapes that its SDKs expect.
///
/// Only `location` and the providers' routes name the app. The others take it from the token.
package struct AuthRoutes: Sendable {
    package struct Settings: Sendable {
        package var appID: String
        /// The address that clients use, such as `https://sync.example.com`. If it is nil, the request's headers name it.
        package var publicOrigin: ServerOrigin?
        /// `true` if the client port itself has TLS.
        package var isSecure: Bool

        package init(appID: String, publicOrigin: ServerOrigin? = nil, isSecure: Bool = false) {
            self.appID = appID
            self.publicOrigin = publicOrigin
            self.isSecure = isSecure
        }
    }

    /// The largest request body, in bytes. A larger one gets 413.
    static let bodyBytes = 64 << 10
    /// The largest body of a login: one with the longest token.
    static let loginBytes = SignedToken.maximumBytes + 16 << 10

    private let users: UserService
    private let keys: APIKeys
    private let accounts: EmailAccounts
    private let identities: IdentityLogins
    private let functions: any AppFunctions
    private let settings: Settings
    private let metrics: Metrics

    package init(
        users: UserService, keys: APIKeys, accounts: EmailAccounts, identities: IdentityLogins, functions: any AppFunctions,
        settings: Settings, metrics: Metrics = Metrics()
    ) {
        self.identities = identities
        self.metrics = metrics
        self.functions = functions
        self.users = users
        self.keys = keys
        self.accounts = accounts
        self.settings = settings
    }

    package func add<Context: ForwardedContext>(to router: Router<Context>) {
        let base = router.group("/api/client/v2.0")
        let app = base.group("app/:app")
        let location = LocationRoute(publicOrigin: settings.publicOrigin, isSecure: settings.isSecure)
        app.get("location") { request, context in
            try check(context)
            return try location.answer(request, context)
        }
        app.post("auth/providers/:provider/login") { request, context in try await logIn(request, context) }
        EmailRoutes(accounts: accounts, metrics: metrics, check: { try check($0) }).add(to: app)
        NotOfferedRoutes(check: { try check($0) }).add(to: app)
        FunctionRoutes(users: users, functions: functions, check: { try check($0) }).add(to: app)
        base.get("auth/profile") { request, _ in try await profile(request) }
        base.delete("auth/delete") { request, _ in
            try await users.delete(try await users.account(accessToken: try Self.bearer(request)).id)
            return Response(status: .noContent)
        }
        base.post("auth/session") { request, _ in
            // Realm's SDKs read one token.
            let rotates = request.uri.queryParameters["rotate"] == "true"
            let (access, next) = try await users.refresh(try Self.bearer(request, else: .invalidSession), rotating: rotates)
            var members: [JSON.Member] = [.init("access_token", .string(access))]
            if let next { members.append(.init("refresh_token", .string(next))) }
            return JSONResponse(.object(members), status: .created).response
        }
        base.delete("auth/session") { request, _ in
            try await users.logOut(
                try Self.bearer(request, else: .invalidSession), everywhere: request.uri.queryParameters["everywhere"] == "true")
            return Response(status: .noContent)
        }
    }

    // MARK: Requests

    private func logIn(_ request: Request, _ context: some RemoteAddressRequestContext) async throws -> Response {
        try check(context)
        let provider = try context.parameters.require("provider")
        // Clients can send any provider name, so only known names are labels.
        let label = Self.providers.contains(provider) ? provider : "other"
        do {
            let response = try await logIn(by: provider, request, context)
            metrics.number(.logins, label: label).add()
            return response
        } catch {
            metrics.number(.loginFailures, label: label).add()
            throw error
        }
    }

    private static let providers: Set = [
        "anon-user", "local-userpass", APIKeys.provider, "custom-token", FunctionLogin.provider, "oauth2-apple", "oauth2-google",
        "oauth2-facebook",
    ]

    private func logIn(by provider: String, _ request: Request, _ context: some RemoteAddressRequestContext) async throws -> Response {
        try users.require(provider: provider)
        let body = try await request.json(upTo: Self.loginBytes)
        if request.uri.queryParameters["link"] == "true" { return try await link(by: provider, body, request, context) }
        let address = Self.address(context)
        let login = try await Self.limited(metrics) {
            switch provider {
            case "anon-user": return try await users.loginAnonymously(from: address)
            case "local-userpass":
                return try await users.login(email: try body.text("username"), password: try body.text("password"), from: address)
            case APIKeys.provider: return try await keys.logIn(try body.text("key"), from: address)
            default: return try await identities.logIn(by: provider, body, from: address)
            }
        }
        return JSONResponse([
            "access_token": .string(login.accessToken), "refresh_token": .string(login.refreshToken), "user_id": .string(login.userID),
            "device_id": .string(device(body)),
        ]).response
    }

    /// Adds an identity to the user of the access token. The answer has a new access token of the same login.
    private func link(
        by provider: String, _ body: JSON, _ request: Request, _ context: some RemoteAddressRequestContext
    ) async throws -> Response {
        let (account, login) = try await users.session(accessToken: try Self.bearer(request))
        let address = Self.address(context)
        let linked = try await Self.limited(metrics) {
            switch provider {
            case "local-userpass":
                return try await users.link(
                    email: try body.text("username"), password: try body.text("password"), to: account, from: address)
            case _ where identities.has(provider):
                return try await identities.link(by: provider, body, to: account, from: address)
            default:
                throw SluiceError(
                    .badRequest, "An identity of '\(provider)' cannot be linked.", fix: "Link an e-mail or a login token of a provider.")
            }
        }
        return JSONResponse([
            "access_token": .string(users.tokens.access(for: linked, login: login)), "user_id": .string(linked.id),
            "device_id": .string(device(body)),
        ]).response
    }

    /// Runs the body and adds `Retry-After` to rejections by a limit.
    static func limited<Result>(_ metrics: Metrics, _ body: () async throws -> Result) async throws -> Result {
        do {
            return try await body()
        } catch let error as TooManyAttempts {
            metrics.number(.loginsLimited, label: error.limit.rawValue).add()
            throw ErrorResponse(error.asSluiceError, retryAfter: error.seconds)
        } catch let error as SluiceError where error.code == .tooManyRequests {
            metrics.number(.loginsLimited, label: "passwords").add()
            throw ErrorResponse(error, retryAfter: 2)
        }
    }

    private func profile(_ request: Request) async throws -> Response {
        let account = try await users.account(accessToken: try Self.bearer(request))
        return JSONResponse([
            "user_id": .string(account.id), "type": .string(account.context.type), "identities": account.identities, "data": account.data,
            "custom_data": account.customData,
        ]).response
    }

    // MARK: Parsing

    private func check(_ context: some RequestContext) throws {
        let app = try context.parameters.require("app")
        guard app == settings.appID else {
            throw ErrorResponse(
                SluiceError(.badRequest, "cannot find app using Client App ID '\(app)'", fix: "Use the app id \(settings.appID)."),
                status: .notFound)
        }
    }

    static func bearer(_ request: Request, else code: ErrorCode = .badAuthentication) throws(SluiceError) -> String {
        guard let header = request.headers[.authorization], header.lowercased().hasPrefix("bearer "), header.utf8.count > 7 else {
            throw SluiceError(code, "The request carries no token.", fix: "Send Authorization: Bearer and the token.")
        }
        return String(header.dropFirst(7))
    }

    /// Returns the device id that the client sent, or a new one.
    private func device(_ body: JSON) -> String {
        if let known = body["options"]?["device"]?["deviceId"]?.string, ObjectIdentifierBytes(hex: known) != nil { return known }
        return Hex.random(bytes: 12)
    }

    /// Returns the network address of the client.
    static func address(_ context: some RemoteAddressRequestContext) -> String {
        // The middleware has already replaced a trusted proxy's address with the client's. The limits apply to its network.
        NetworkAddress(context.remoteAddress)?.description ?? ""
    }
}
