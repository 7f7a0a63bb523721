import HTTPTypes
import SluiceCore
import SluiceGateway
import SluiceNet
import SluicePorts
import SluiceValues
import Testing

/// The requests of Realm's SDKs, with the bodies and the tokens that they send.
@Suite struct `Realm's SDKs` {
    private static let base = "/api/client/v2.0"
    private static let providers = "\(AuthRoutesTests.app)/auth/providers"

    /// The error names for which these SDKs have typed errors.
    private static let names: Set<String> = [
        "APIKeyAlreadyExists", "APIKeyNotFound", "AccountNameInUse", "AuthError", "AuthProviderNotFound", "BadRequest", "DomainNotAllowed",
        "ExecutionTimeLimitExceeded", "InternalServerError", "InvalidPassword", "InvalidSession", "MaintenanceInProgress", "NotCallable",
        "UserDisabled", "UserNotFound", "UserpassTokenInvalid",
    ]

    private static let device: JSON = [
        "device": [
            "appId": "shop", "platform": "Linux", "platformVersion": "linux", "sdk": "driver", "sdkVersion": "1", "cpuArch": "x86_64",
            "deviceName": "", "deviceVersion": "", "frameworkName": "", "frameworkVersion": "", "coreVersion": "14.14.0", "bundleId": "",
        ]
    ]

    private static func logIn(_ fixture: AuthFixture, _ provider: String, _ credentials: [JSON.Member] = []) async throws -> JSON {
        let body = JSON.object([.init("provider", .string(provider))] + credentials + [.init("options", device)])
        let answer = try await fixture.call(.post, "\(providers)/\(provider)/login", body)
        #expect(answer.status == 200 && answer.headers[.contentType] == "application/json", "\(answer)")
        return answer.json
    }

    private static func anonymous(_ fixture: AuthFixture) async throws -> (id: String, access: String, refresh: String) {
        let login = try await logIn(fixture, "anon-user")
        return (
            try #require(login["user_id"]?.string), try #require(login["access_token"]?.string),
            try #require(login["refresh_token"]?.string)
        )
    }

    /// The second part of a JWT, which a client decodes without checking the signature.
    private static func payload(_ token: String?) throws -> JSON {
        let parts = try #require(token).split(separator: ".", omittingEmptySubsequences: false)
        try #require(parts.count == 3 && parts.allSatisfy { !$0.isEmpty })
        var text = parts[1].replacing("-", with: "+").replacing("_", with: "/")
        while !text.count.isMultiple(of: 4) { text += "=" }
        return try JSON.parse(try #require(Base64.decode(text)))
    }

    // MARK: Login

    @Test func `log in with their device and get four texts, two of them tokens that they can read`() async throws {
        let fixture = try await AuthFixture()
        let account = try await fixture.users.register(email: "ada@example.com", password: "secret123", from: "x")
        try await fixture.users.setCustomData(["team": ["blue", 1]], of: account.id)
        let now = fixture.environment.wallMilliseconds() / 1_000
        let login = try await Self.logIn(
            fixture, "local-userpass", [.init("username", "ada@example.com"), .init("password", "secret123")])
        #expect(login.members?.map(\.key).sorted() == ["access_token", "device_id", "refresh_token", "user_id"])
        #expect(login.members?.allSatisfy { $0.value.string?.isEmpty == false } == true, "\(login.text)")
        for (token, lifetime) in [("access_token", AccessTokens.lifetime), ("refresh_token", 60 * 86_400)] {
            let claims = try Self.payload(login[token]?.string)
            #expect(claims["iat"] == .int(now) && claims["exp"] == .int(now + lifetime), "\(claims.text)")
            #expect(claims["sub"] == .string(account.id))
        }
        let access = try Self.payload(login["access_token"]?.string)
        #expect(access["user_data"] == ["team": ["blue", 1]])
        let refresh = try Self.payload(login["refresh_token"]?.string)
        #expect(refresh["user_data"] == nil || refresh["user_data"]?.members != nil, "an object or nothing")
    }

    @Test func `get an object as custom data of a user without any`() async throws {
        let login = try await Self.anonymous(try await AuthFixture())
        #expect(try Self.payload(login.access)["user_data"] == .object([]))
    }

    @Test func `read the profile at a path without the app`() async throws {
        let fixture = try await AuthFixture()
        try await fixture.users.register(email: "ada@example.com", password: "secret123", from: "x")
        let login = try await Self.logIn(
            fixture, "local-userpass", [.init("username", "ada@example.com"), .init("password", "secret123")])
        let id = try #require(login["user_id"]?.string)
        try await fixture.users.setCustomData(["error": "none", "team": "blue"], of: id)
        let profile = try await fixture.call(.get, "\(Self.base)/auth/profile", token: login["access_token"]?.string)
        #expect(profile.status == 200 && profile.headers[.contentType] == "application/json")
        #expect(profile.json["user_id"] == .string(id) && profile.json["type"] == "normal")
        #expect(profile.json["identities"] == [["id": "ada@example.com", "provider_type": "local-userpass"]])
        #expect(profile.json["data"] == ["email": "ada@example.com"])
        #expect(profile.json["custom_data"]?["team"] == "blue")
        let scoped = try await fixture.call(.get, "\(AuthRoutesTests.app)/auth/profile", token: login["access_token"]?.string)
        #expect(scoped.status == 404, "one path for all SDKs")
    }

    @Test func `see the type of a server key's account`() async throws {
        let fixture = try await AuthFixture()
        let made = try await fixture.call(.post, "/admin/api_keys", ["name": "pipeline"])
        let login = try await Self.logIn(fixture, "api-key", [.init("key", made.json["key"] ?? .null)])
        let profile = try await fixture.call(.get, "\(Self.base)/auth/profile", token: login["access_token"]?.string)
        #expect(profile.json["type"] == "server")
    }

    /// The client would otherwise hold the tokens of a user whom it did not log in.
    @Test(arguments: ["anon-user", "api-key"])
    func `cannot link an identity of such a provider, and get no other user's tokens for it`(provider: String) async throws {
        let fixture = try await AuthFixture()
        let login = try await Self.anonymous(fixture)
        let answer = try await fixture.call(
            .post, "\(Self.providers)/\(provider)/login?link=true", ["provider": .string(provider)], token: login.access)
        #expect(answer.status == 400 && answer.json["error_code"] == "BadRequest" && answer.json["access_token"] == nil)
    }

    // MARK: Sessions

    @Test func `delete the user at a path without the app, with the access token`() async throws {
        let fixture = try await AuthFixture()
        let login = try await Self.anonymous(fixture)
        #expect(try await fixture.call(.delete, "\(AuthRoutesTests.app)/auth/delete", token: login.access).status == 404)
        #expect(try await fixture.call(.delete, "\(Self.base)/auth/delete", token: login.refresh).status == 401)
        #expect(try await fixture.call(.delete, "\(Self.base)/auth/delete", token: login.access).status == 204)
        #expect(try await fixture.directory.find(id: login.id) == nil)
        let refreshed = try await fixture.call(.post, "\(Self.base)/auth/session", token: login.refresh)
        #expect(refreshed.status == 401 && refreshed.json["error_code"] == "InvalidSession", "the client logs the user out")
    }

    /// 401, 403 and redirects of a refresh log the user out.
    @Test(arguments: [ErrorCode.postgresUnreachable, .internalError, .timeout, .shuttingDown])
    func `stay logged in while the gateway cannot refresh a token`(code: ErrorCode) async throws {
        let fixture = try await AuthFixture()
        let login = try await Self.anonymous(fixture)
        fixture.directory.fail(SluiceError(code, "The test stops the directory."))
        let paths: [(HTTPRequest.Method, String, String)] = [
            (.post, "auth/session", login.refresh), (.get, "auth/profile", login.access), (.get, "auth/api_keys", login.refresh),
        ]
        for (method, path, token) in paths {
            let answer = try await fixture.call(method, "\(Self.base)/\(path)", token: token)
            #expect(answer.status >= 500, "\(path): \(answer.json.text)")
            try Self.expectError(answer.json, answer.headers)
        }
        fixture.directory.fail(nil)
        #expect(try await fixture.call(.post, "\(Self.base)/auth/session", token: login.refresh).status == 201)
    }

    @Test func `are logged out by a refresh only if the session is over`() async throws {
        let fixture = try await AuthFixture()
        let login = try await Self.anonymous(fixture)
        try await fixture.users.setDisabled(true, of: login.id)
        let disabled = try await fixture.call(.post, "\(Self.base)/auth/session", token: login.refresh)
        #expect(disabled.status == 401)
        for token in [login.access, "x", nil] {
            let answer = try await fixture.call(.post, "\(Self.base)/auth/session", token: token)
            #expect(answer.status == 401 && answer.json["error_code"] == "InvalidSession")
        }
    }

    // MARK: API keys

    @Test func `use the refresh token for API keys, and learn that the session is over`() async throws {
        let fixture = try await AuthFixture()
        let login = try await Self.anonymous(fixture)
        let own = "\(Self.base)/auth/api_keys"
        let made = try await fixture.call(.post, own, ["name": "sensor"], token: login.refresh)
        #expect(made.status == 201)
        #expect(made.json.members?.map(\.key).sorted() == ["_id", "disabled", "key", "name"], "\(made.json.text)")
        let twice = try await fixture.call(.post, own, ["name": "sensor"], token: login.refresh)
        #expect(twice.status == 409 && twice.json["error_code"] == "APIKeyAlreadyExists")
        let id = try #require(made.json["_id"]?.string)
        _ = try await fixture.call(.delete, "\(Self.base)/auth/session", token: login.refresh)
        let calls: [(HTTPRequest.Method, String, JSON?)] = [
            (.get, own, nil), (.post, own, ["name": "other"]), (.get, "\(own)/\(id)", nil), (.put, "\(own)/\(id)/enable", nil),
            (.put, "\(own)/\(id)/disable", nil), (.delete, "\(own)/\(id)", nil),
        ]
        for (method, path, body) in calls {
            let answer = try await fixture.call(method, path, body, token: login.refresh)
            #expect(answer.status == 401 && answer.json["error_code"] == "InvalidSession", "\(method) \(path): \(answer.json.text)")
        }
    }

    @Test func `use an access token for API keys too, until it expires`() async throws {
        let fixture = try await AuthFixture()
        let login = try await Self.anonymous(fixture)
        #expect(try await fixture.call(.get, "\(Self.base)/auth/api_keys", token: login.access).status == 200)
        fixture.environment.advance(seconds: AccessTokens.lifetime)
        let late = try await fixture.call(.get, "\(Self.base)/auth/api_keys", token: login.access)
        #expect(late.status == 401 && late.json["error_code"] == "AuthError", "the client refreshes the token")
    }

    // MARK: Passwords

    @Test func `set a password once with the token of a link, which ends the sessions before`() async throws {
        let fixture = try await AuthFixture()
        let account = try await fixture.users.register(email: "ada@example.com", password: "forgotten", from: "10.0.0.1")
        let before = try await fixture.login("ada@example.com", "forgotten")
        let expires = fixture.environment.wallMilliseconds() + 1_000_000
        for id in ["first", "second"] {
            fixture.directory.addReset(id, hash: APIKeys.hash("secret-\(id)"), user: account.id, expires: expires)
        }
        let path = "\(Self.providers)/local-userpass/reset"
        func body(_ id: String, _ token: String, _ password: String) -> JSON {
            ["tokenId": .string(id), "token": .string(token), "password": .string(password)]
        }
        for (id, token) in [("first", "secret-second"), ("third", "secret-first")] {
            let wrong = try await fixture.call(.post, path, body(id, token, "remembered"))
            #expect(wrong.status == 400 && wrong.json["error_code"] == "UserpassTokenInvalid", "\(wrong.json.text)")
            try Self.expectError(wrong.json, wrong.headers)
        }
        let short = try await fixture.call(.post, path, body("first", "secret-first", "abc"))
        #expect(short.status == 400 && short.json["error_code"] == "BadRequest")
        #expect(try await fixture.login("ada@example.com", "remembered").status == 401)
        #expect(try await fixture.call(.post, path, body("first", "secret-first", "remembered")).status == 200)
        #expect(try await fixture.login("ada@example.com", "forgotten").status == 401)
        let after = try await fixture.login("ada@example.com", "remembered")
        #expect(after.status == 200 && after.json["user_id"]?.string == account.id)
        let refreshed = try await fixture.call(.post, "\(Self.base)/auth/session", token: before.json["refresh_token"]?.string)
        #expect(refreshed.status == 401)
        // The other token of the user has gone with the first one.
        #expect(try await fixture.call(.post, path, body("second", "secret-second", "another")).status == 400)
    }

    @Test func `cannot set a password with a token that has expired, nor guess tokens without end`() async throws {
        let fixture = try await AuthFixture()
        let account = try await fixture.users.register(email: "ada@example.com", password: "forgotten", from: "10.0.0.1")
        let expires = fixture.environment.wallMilliseconds() + 1_000
        fixture.directory.addReset("first", hash: APIKeys.hash("secret"), user: account.id, expires: expires)
        fixture.environment.advance(seconds: 1)
        let path = "\(Self.providers)/local-userpass/reset"
        let body: JSON = ["tokenId": "first", "token": "secret", "password": "remembered"]
        #expect(try await fixture.call(.post, path, body).status == 400)
        var statuses: Set<Int> = []
        for _ in 0..<200 where !statuses.contains(429) { statuses.insert(try await fixture.call(.post, path, body).status) }
        #expect(statuses == [400, 429])
        let refused = try await fixture.call(.post, path, body)
        #expect(refused.json["error"]?.string?.contains("wrong links of mails") == true, "\(refused.json.text)")
        #expect(try await fixture.login("ada@example.com", "forgotten", from: "10.0.0.2").status == 200)
        // API keys from the same address have a limit of their own.
        let key = try await fixture.call(.post, "\(Self.providers)/api-key/login", ["key": "none"])
        #expect(key.status == 401)
    }

    @Test(arguments: ["\u{0}", "a\u{0}b", String(repeating: "a", count: 65), ""])
    func `guess with an id that no token has, and are counted like others`(id: String) async throws {
        let fixture = try await AuthFixture()
        fixture.directory.fail(SluiceError(.internalError, "The database is asked."))
        var statuses: Set<Int> = []
        for _ in 0..<200 where !statuses.contains(429) {
            let answer = try await fixture.call(
                .post, "\(Self.providers)/local-userpass/reset", ["tokenId": .string(id), "token": "secret", "password": "remembered"])
            statuses.insert(answer.status)
            if id.isEmpty { break }
        }
        #expect(statuses == (id.isEmpty ? [400] : [400, 429]))
    }

    // MARK: Functions that do not exist

    private static let absent: [(HTTPRequest.Method, String)] = [
        (.post, "auth/providers/local-userpass/confirm/send"), (.post, "auth/providers/local-userpass/confirm/call"),
        (.post, "auth/providers/local-userpass/reset/send"), (.post, "auth/providers/local-userpass/reset/call"),
        (.get, "functions/call?baas_request=e30="), (.put, "push/providers/gcm/registration"),
        (.delete, "push/providers/gcm/registration"),
    ]

    @Test(arguments: absent.indices) func `are told which functions the gateway does not have`(index: Int) async throws {
        let fixture = try await AuthFixture()
        let (method, path) = Self.absent[index]
        let answer = try await fixture.call(
            method, "\(AuthRoutesTests.app)/\(path)", ["email": "ada@example.com", "password": "secret123"])
        #expect(answer.status == 400 && answer.json["error_code"] == "NotCallable", "\(path): \(answer.json.text)")
        #expect(answer.json["error"]?.string?.contains("is not offered by this gateway") == true)
        try Self.expectError(answer.json, answer.headers)
        let other = try await fixture.call(method, "/api/client/v2.0/app/other/\(path)", ["email": "ada@example.com"])
        #expect(other.status == 404 && other.json["error_code"] == "BadRequest")
    }

    @Test func `are told of a provider that is not enabled before its functions`() async throws {
        let fixture = try await AuthFixture(providers: ["anon-user"])
        let answer = try await fixture.call(.post, "\(Self.providers)/local-userpass/reset/send", ["email": "ada@example.com"])
        #expect(answer.status == 404 && answer.json["error_code"] == "AuthProviderNotFound")
    }

    @Test func `still register and log in beside the paths that are not offered`() async throws {
        let fixture = try await AuthFixture()
        let body: JSON = ["email": "ada@example.com", "password": "secret123"]
        let registered = try await fixture.call(.post, "\(Self.providers)/local-userpass/register", body)
        #expect(registered.status == 201 && registered.json == .object([]))
        #expect(try await fixture.login("ada@example.com", "secret123").status == 200)
    }

    // MARK: Errors

    @Test func `have a typed error for each error of these routes`() async throws {
        let codes: [ErrorCode] = [
            .invalidPassword, .badAuthentication, .tokenExpired, .invalidSession, .userNotFound, .userDisabled, .nameInUse,
            .providerDisabled, .apiKeyNotFound, .badRequest, .badJSON, .bodyTooLarge, .invalidEmail, .limitsExceeded, .requestTimeout,
            .crossSiteRequest, .internalError, .timeout, .shuttingDown, .postgresUnreachable,
        ]
        for code in codes { #expect(Self.names.contains(code.appServicesName), "\(code) has the name \(code.appServicesName)") }
        let fixture = try await AuthFixture()
        for (body, path) in [("{", "anon-user/login"), ("{}", "local-userpass/login"), ("{}", "oauth2-google/login")] {
            let answer = try await fixture.call(.post, "\(Self.providers)/\(path)", text: body)
            #expect(answer.status >= 400)
            try Self.expectError(answer.json, answer.headers)
        }
    }

    /// The form in which a client reads an error: exactly this type, a text, a known name, and a text as link if there is one.
    private static func expectError(_ json: JSON, _ headers: HTTPFields) throws {
        #expect(headers[.contentType] == "application/json")
        #expect(json["error"]?.string?.isEmpty == false)
        #expect(names.contains(try #require(json["error_code"]?.string)), "\(json.text)")
        #expect(json["link"] == nil || json["link"]?.string != nil)
    }
}
