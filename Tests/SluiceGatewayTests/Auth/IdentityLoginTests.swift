import HTTPTypes
import IdentityTestSupport
import Logging
import SluiceCore
import SluiceGateway
import SluiceIdentity
import SluicePorts
import SluiceValues
import Testing

/// Logins by tokens of other issuers, and the identities of an account.
@Suite struct IdentityLoginTests {
    private static let base = "/api/client/v2.0/app/shop/auth/providers"
    private static let now: Int64 = 1_700_000_000

    private let issuer: TestIssuer
    private let services: ScriptedHTTP
    private let environment = ManualEnvironment()

    init() throws {
        let issuer = try TestIssuer()
        let keys = Array(try issuer.keySet().utf8)
        let idToken = try issuer.token(Self.claims("google-user"), .rs256)
        self.issuer = issuer
        services = ScriptedHTTP { request throws(SluiceError) in
            func answer(_ json: JSON, _ status: Int = 200) -> OutboundAnswer { OutboundAnswer(status: status, body: Array(json.utf8)) }
            let body = String(decoding: request.body, as: UTF8.self)
            switch request.url.split(separator: "?").first ?? "" {
            case "https://issuer.example/keys": return OutboundAnswer(status: 200, body: keys)
            case "https://google.example/token":
                if body.contains("code=good%2Fcode&") { return answer(["id_token": .string(idToken), "access_token": "x"]) }
                if body.contains("code=down&") { return answer(.null, 503) }
                return answer(["error": "invalid_grant"], 400)
            case "https://graph.example/debug_token":
                let isOther = request.url.contains("input_token=others")
                return answer([
                    "data": [
                        "is_valid": .bool(!request.url.contains("input_token=bad")), "app_id": isOther ? "another" : "client",
                        "user_id": "fb-1",
                    ]
                ])
            case "https://graph.example/me": return answer(["id": "fb-1", "email": "fb@example.com"])
            default: throw SluiceError(.outboundFailed, "There is no such service.", value: request.url)
            }
        }
    }

    static func claims(_ user: String, _ changes: [JSON.Member] = []) -> JSON {
        let names = Set(changes.map(\.key))
        let members: [JSON.Member] = [
            .init("sub", .string(user)), .init("iss", "https://issuer.example"), .init("aud", "client"), .init("iat", .int(now)),
            .init("exp", .int(now + 600)), .init("email", .string("\(user)@example.com")),
        ]
        return .object(members.filter { !names.contains($0.key) } + changes)
    }

    /// Everything of authentication with each provider of tokens.
    private func fixture() async throws -> AuthFixture {
        let policy = TokenPolicy(
            algorithms: [.rs256, .es256], issuers: ["https://issuer.example"], audience: .any(["client"]),
            fields: [.init(claim: "email", name: "email")])
        let cache = KeySetCache(
            .init(url: "https://issuer.example/keys"), http: services, environment: environment, logger: .init(label: "test"))
        func issuer(_ provider: String) -> TokenIssuer {
            TokenIssuer(provider: provider, keys: .remote(cache), policy: policy, environment: environment)
        }
        let google = GoogleCodeExchange(
            .init(id: "client", secret: "s&cret"), at: .init(url: "https://google.example/token"), http: services)
        let facebook = FacebookTokenCheck(
            .init(id: "client", secret: "secret"), at: .init(url: "https://graph.example"), fields: policy.fields, http: services)
        return try await AuthFixture(issuers: [
            "custom-token": .customToken(issuer("custom-token")), "oauth2-apple": .apple(issuer("oauth2-apple")),
            "oauth2-google": .google(issuer("oauth2-google"), google), "oauth2-facebook": .facebook(issuer("oauth2-facebook"), facebook),
        ])
    }

    /// The body of a login with a token, by provider.
    private static let bodies: [(provider: String, member: String)] = [
        ("custom-token", "token"), ("oauth2-apple", "id_token"), ("oauth2-google", "id_token"), ("oauth2-facebook", "accessToken"),
    ]

    private func logIn(
        _ fixture: AuthFixture, _ provider: String, _ body: JSON, link token: String? = nil, from address: String = "10.0.0.1"
    ) async throws -> (status: Int, json: JSON) {
        let path = "\(Self.base)/\(provider)/login" + (token == nil ? "" : "?link=true")
        let answer = try await fixture.call(.post, path, body, token: token, from: address)
        return (answer.status, answer.json)
    }

    private func token(_ user: String = "ada") throws -> String { try issuer.token(Self.claims(user), .es256) }

    // MARK: Every provider and every failure

    @Test(arguments: bodies) func `the first login makes the account, and later ones find it`(provider: String, member: String) async throws
    {
        let fixture = try await fixture()
        let first = try await logIn(fixture, provider, [member: .string(try token())])
        #expect(first.status == 200)
        let user = try #require(first.json["user_id"]?.string)
        let claims = try #require(try await fixture.users.account(accessToken: try #require(first.json["access_token"]?.string)))
        #expect(claims.identities == [["id": "ada", "provider_type": .string(provider)]])
        #expect(claims.data == ["email": "ada@example.com"])
        #expect(try await logIn(fixture, provider, [member: .string(try token())]).json["user_id"]?.string == user)
        #expect(try await logIn(fixture, provider, [member: .string(try token("bob"))]).json["user_id"]?.string != user)
    }

    @Test(arguments: bodies) func `a token that is not accepted is 401, without a reason`(provider: String, member: String) async throws {
        let other = try TestIssuer()
        let tokens: [String: String] = [
            "another key": try other.token(Self.claims("ada"), .es256),
            "an unknown key": try TestIssuer(generation: "b").token(Self.claims("ada"), .es256),
            "none": try issuer.token(Self.claims("ada"), .es256, header: ["alg": "none"]),
            "confused": TestIssuer.forged(Self.claims("ada"), secret: issuer.p256PEM),
            "expired": try issuer.token(Self.claims("ada", [.init("exp", .int(Self.now - 61))]), .es256),
            "not yet valid": try issuer.token(Self.claims("ada", [.init("nbf", .int(Self.now + 61))]), .es256),
            "another audience": try issuer.token(Self.claims("ada", [.init("aud", "other")]), .es256),
            "another issuer": try issuer.token(Self.claims("ada", [.init("iss", "https://evil.example")]), .es256),
            "no subject": try issuer.token(Self.claims("ada", [.init("sub", .null)]), .es256),
            "no token": "a.b.c",
        ]
        for (name, text) in tokens.sorted(by: { $0.key < $1.key }) {
            let fixture = try await fixture()
            let answer = try await logIn(fixture, provider, [member: .string(text)])
            #expect(answer.status == 401, "\(name)")
            #expect(answer.json["error_code"]?.string == "AuthError", "\(name)")
            #expect(answer.json["code"]?.int == Int64(ErrorCode.loginTokenRejected.rawValue), "\(name)")
            #expect(answer.json["error"]?.string == "The login token is not accepted.", "\(name)")
        }
    }

    @Test(arguments: bodies) func `a body without the token is 400, and a provider that is not enabled 404`(
        provider: String, member: String
    ) async throws {
        let fixture = try await fixture()
        for body: JSON in [[:], [member: ""], [member: .int(1)], ["other": "x"]] {
            #expect(try await logIn(fixture, provider, body).status == 400)
        }
        let without = try await AuthFixture()
        let answer = try await logIn(without, provider, [member: .string(try token())])
        #expect(answer.status == 404 && answer.json["error_code"]?.string == "AuthProviderNotFound")
    }

    @Test(arguments: bodies) func `an issuer that does not answer is 503 or 504, and no account is made`(
        provider: String, member: String
    ) async throws {
        for (code, status) in [
            (ErrorCode.outboundFailed, 503), (.outboundAddressRefused, 503), (.outboundTooLarge, 503), (.outboundTimeout, 504),
        ] {
            services.replace { _ throws(SluiceError) in throw SluiceError(code, "The issuer does not answer.", value: "10.1.2.3") }
            let fixture = try await fixture()
            let answer = try await logIn(fixture, provider, [member: .string(try token())])
            #expect(answer.status == status && answer.json["code"]?.int == Int64(code.rawValue), "\(answer.json.text)")
            #expect(!answer.json.text.contains("10.1.2.3"))
            #expect(try await fixture.directory.list(after: "", limit: 10).isEmpty)
        }
    }

    @Test(arguments: bodies) func `a disabled user does not log in`(provider: String, member: String) async throws {
        let fixture = try await fixture()
        let user = try #require(try await logIn(fixture, provider, [member: .string(try token())]).json["user_id"]?.string)
        try await fixture.users.setDisabled(true, of: user)
        let answer = try await logIn(fixture, provider, [member: .string(try token())])
        #expect(answer.status == 401 && answer.json["error_code"]?.string == "UserDisabled")
    }

    @Test func `a nonce of the client is held to the token`() async throws {
        let fixture = try await fixture()
        let text = try issuer.token(Self.claims("ada", [.init("nonce", "n-1")]), .es256)
        #expect(try await logIn(fixture, "oauth2-apple", ["id_token": .string(text), "nonce": "n-1"]).status == 200)
        #expect(try await logIn(fixture, "oauth2-apple", ["id_token": .string(text), "nonce": "n-2"]).status == 401)
    }

    // MARK: Google and Facebook

    @Test func `a server auth code of Google is exchanged for an ID token`() async throws {
        let fixture = try await fixture()
        #expect(try await logIn(fixture, "oauth2-google", ["authCode": "good/code"]).status == 200)
        let form = services.requests.first { $0.url == "https://google.example/token" }.map { String(decoding: $0.body, as: UTF8.self) }
        #expect(form == "code=good%2Fcode&client_id=client&client_secret=s%26cret&redirect_uri=&grant_type=authorization_code")
        #expect(try await logIn(fixture, "oauth2-google", ["authCode": "used"]).status == 401)
        #expect(try await logIn(fixture, "oauth2-google", ["authCode": "down"]).status == 503)
    }

    @Test func `an access token of Facebook is checked for the app and its user`() async throws {
        let fixture = try await fixture()
        let answer = try await logIn(fixture, "oauth2-facebook", ["accessToken": "good"])
        let account = try #require(try await fixture.directory.find(id: answer.json["user_id"]?.string ?? ""))
        #expect(account.identities == [["id": "fb-1", "provider_type": "oauth2-facebook"]] && account.data == ["email": "fb@example.com"])
        #expect(try await logIn(fixture, "oauth2-facebook", ["accessToken": "bad"]).status == 401)
        // Another app of Facebook has users, too. Their tokens must not log in here.
        #expect(try await logIn(fixture, "oauth2-facebook", ["accessToken": "others"]).status == 401)
    }

    // MARK: Accounts

    @Test func `logins of one new user that come together make one account`() async throws {
        let fixture = try await fixture()
        let text = try token()
        let users = try await withThrowingTaskGroup(of: String?.self) { group in
            for _ in 0..<20 { group.addTask { try await logIn(fixture, "custom-token", ["token": .string(text)]).json["user_id"]?.string } }
            return try await group.reduce(into: Set<String?>()) { $0.insert($1) }
        }
        #expect(users.count == 1 && users.first != nil)
    }

    @Test func `each login renews the user's data, and sessions evaluate their rules again`() async throws {
        let fixture = try await fixture()
        let user = try #require(try await logIn(fixture, "custom-token", ["token": .string(try token())]).json["user_id"]?.string)
        #expect(fixture.changes.current.isEmpty)
        let renamed = try issuer.token(Self.claims("ada", [.init("email", "new@example.com")]), .es256)
        let answer = try await logIn(fixture, "custom-token", ["token": .string(renamed)])
        let account = try await fixture.users.account(accessToken: try #require(answer.json["access_token"]?.string))
        #expect(account.data == ["email": "new@example.com"])
        #expect(fixture.changes.current == ["\(user) customData"])
        // Unchanged data changes nothing.
        _ = try await logIn(fixture, "custom-token", ["token": .string(renamed)])
        #expect(fixture.changes.current.count == 1)
    }

    @Test(arguments: [ErrorCode.functionFailed, .functionUnavailable, .functionTimeout])
    func `logins whose function fails are limited by address`(code: ErrorCode) async throws {
        let functions = DecidingFunctions { _ throws(SluiceError) in throw SluiceError(code, "No.") }
        let fixture = try await AuthFixture(issuers: ["custom-function": .function(FunctionLogin("login", of: functions))])
        var statuses: [Int] = []
        for _ in 0..<200 { statuses.append(try await logIn(fixture, "custom-function", ["pin": 1]).status) }
        #expect(statuses.first != 429 && statuses.last == 429)
        #expect(functions.calls.count < 200)
        #expect(try await logIn(fixture, "custom-function", ["pin": 1], from: "10.0.0.2").status == statuses.first)
    }

    @Test func `rejected tokens are limited by address, and accepted ones are not`() async throws {
        let fixture = try await fixture()
        for _ in 0..<200 { #expect(try await logIn(fixture, "custom-token", ["token": .string(try token())]).status == 200) }
        var statuses: [Int] = []
        for _ in 0..<200 { statuses.append(try await logIn(fixture, "custom-token", ["token": "a.b.c"]).status) }
        #expect(Set(statuses) == [401, 429] && statuses.last == 429)
        #expect(try await logIn(fixture, "custom-token", ["token": .string(try token())], from: "10.9.9.9").status == 200)
    }

    // MARK: Linked identities

    private func anonymous(_ fixture: AuthFixture) async throws -> (user: String, token: String) {
        let answer = try await logIn(fixture, "anon-user", [:])
        return (try #require(answer.json["user_id"]?.string), try #require(answer.json["access_token"]?.string))
    }

    @Test(arguments: bodies) func `an anonymous user becomes a permanent one`(provider: String, member: String) async throws {
        let fixture = try await fixture()
        let (user, access) = try await anonymous(fixture)
        let linked = try await logIn(fixture, provider, [member: .string(try token())], link: access)
        #expect(linked.status == 200 && linked.json["user_id"]?.string == user)
        let account = try await fixture.users.account(accessToken: try #require(linked.json["access_token"]?.string))
        #expect(account.id == user && account.provider == provider)
        #expect(
            account.identities == [
                ["id": .string(user), "provider_type": "anon-user"], ["id": "ada", "provider_type": .string(provider)],
            ])
        #expect(account.data == ["email": "ada@example.com"])
        #expect(fixture.changes.current == ["\(user) customData"])
        // The same person on another device.
        #expect(try await logIn(fixture, provider, [member: .string(try token())]).json["user_id"]?.string == user)
    }

    @Test func `an identity of another user is not linked`() async throws {
        let fixture = try await fixture()
        _ = try await logIn(fixture, "custom-token", ["token": .string(try token())])
        let (user, access) = try await anonymous(fixture)
        let answer = try await logIn(fixture, "custom-token", ["token": .string(try token())], link: access)
        #expect(answer.status == 409 && answer.json["error_code"]?.string == "AccountNameInUse")
        #expect(try await fixture.directory.find(id: user)?.identities.array?.count == 1)
    }

    @Test func `an e-mail that is registered and unused is linked, and one that is used is not`() async throws {
        let fixture = try await fixture()
        func register(_ email: String) async throws {
            let body: JSON = ["email": .string(email), "password": "secret123"]
            #expect(try await fixture.call(.post, "\(Self.base)/local-userpass/register", body).status == 201)
        }
        let (user, access) = try await anonymous(fixture)
        try await register("ada@example.com")
        let wrong: JSON = ["username": "ada@example.com", "password": "wrong1"]
        #expect(try await logIn(fixture, "local-userpass", wrong, link: access).status == 401)
        let right: JSON = ["username": "ada@example.com", "password": "secret123"]
        let linked = try await logIn(fixture, "local-userpass", right, link: access)
        #expect(linked.status == 200)
        #expect(try await fixture.login("ada@example.com", "secret123").json["user_id"]?.string == user)

        try await register("bob@example.com")
        #expect(try await fixture.login("bob@example.com", "secret123").status == 200)
        let (_, second) = try await anonymous(fixture)
        let bob: JSON = ["username": "bob@example.com", "password": "secret123"]
        #expect(try await logIn(fixture, "local-userpass", bob, link: second).status == 409)
    }

    @Test func `linking needs a login and an identity that can be linked`() async throws {
        let fixture = try await fixture()
        let (_, access) = try await anonymous(fixture)
        let body: JSON = ["token": .string(try token())]
        #expect(try await fixture.call(.post, "\(Self.base)/custom-token/login?link=true", body).status == 401)
        #expect(try await logIn(fixture, "anon-user", [:], link: access).status == 400)
        #expect(try await logIn(fixture, "api-key", ["key": "x"], link: access).status == 400)
        #expect(try await logIn(fixture, "custom-token", ["token": "a.b.c"], link: access).status == 401)
    }

    @Test func `an operator removes an identity, and never the last one`() async throws {
        let fixture = try await fixture()
        let (user, access) = try await anonymous(fixture)
        let linked = try await logIn(fixture, "custom-token", ["token": .string(try token("auth0|ada"))], link: access)
        let path = "/admin/users/\(user)/identities"
        #expect(try await fixture.call(.delete, "\(path)/custom-token?id=auth0%7Cada").status == 400, "nobody logs in to it again")
        #expect(try await logIn(fixture, "oauth2-google", ["id_token": .string(try token())], link: access).status == 200)
        #expect(try await fixture.call(.delete, "\(path)/custom-token?id=nobody").status == 400)
        #expect(try await fixture.call(.delete, "\(path)/custom-token").status == 400)
        #expect(try await fixture.call(.delete, "\(path)/custom-token?id=auth0%7Cada").status == 204)
        #expect(try await fixture.call(.delete, "\(path)/oauth2-google?id=ada").status == 400)
        // The tokens before have ended, and the identity is free for a user of its own.
        let token = try #require(linked.json["access_token"]?.string)
        #expect(try await fixture.call(.get, "/api/client/v2.0/auth/profile", token: token).status == 401)
        #expect(try await logIn(fixture, "custom-token", ["token": .string(try self.token("auth0|ada"))]).json["user_id"]?.string != user)
    }
}
