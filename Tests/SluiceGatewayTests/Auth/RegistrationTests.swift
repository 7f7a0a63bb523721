import HTTPTypes
import SluiceCore
import SluiceGateway
import SluiceIdentity
import SluicePorts
import SluiceValues
import Testing

@Suite struct `A registration` {
    private typealias Answer = (status: Int, json: JSON, headers: HTTPFields)
    private static let path = "/api/client/v2.0/app/shop/auth/providers/local-userpass"
    private static let ann = "ann@example.com"

    private static func fixture(
        _ confirmation: PasswordLogin.Confirmation, hasMail: Bool = true, functions: any AppFunctions = NoFunctions()
    ) async throws -> AuthFixture {
        var app = AuthFixture.Accounts()
        app.login.confirmation = confirmation
        (app.hasMail, app.functions) = (hasMail, functions)
        return try await AuthFixture(app)
    }

    private static func post(_ fixture: AuthFixture, _ path: String, _ body: JSON, from address: String = "10.0.0.1") async throws -> Answer
    {
        try await fixture.call(.post, "\(Self.path)/\(path)", body, from: address)
    }

    private static func register(
        _ fixture: AuthFixture, _ email: String = ann, _ password: String = "secret-1", from address: String = "10.0.0.1"
    ) async throws -> Answer {
        try await post(fixture, "register", ["email": .string(email), "password": .string(password)], from: address)
    }

    private static func confirm(_ fixture: AuthFixture, mail: Int, from address: String = "10.0.0.1") async throws -> Answer {
        let link = try fixture.mailer.link(mail)
        return try await post(fixture, "confirm", ["token": .string(link.token), "tokenId": .string(link.id)], from: address)
    }

    // MARK: By mail

    @Test func `by mail is pending until the link is used, once`() async throws {
        let fixture = try await Self.fixture(.mail)
        #expect(try await Self.register(fixture, "Ann@Example.com").status == 201)
        let mail = try #require(fixture.mailer.mails.first)
        #expect(mail.recipient.text == Self.ann && mail.subject == "confirm")
        #expect(mail.text.hasPrefix("The Shop \(Self.ann)\nhttps://shop.example.com/confirm?token="))
        let early = try await fixture.login(Self.ann, "secret-1")
        #expect(early.status == 401 && early.json["error"] == "confirmation required" && early.json["error_code"] == "AuthError")
        #expect(early.json["code"]?.int == Int64(ErrorCode.userNotConfirmed.rawValue))
        #expect(
            try await fixture.login(Self.ann, "wrong").json["error_code"] == "InvalidPassword", "only its owner learns that it is pending")
        #expect(try await Self.confirm(fixture, mail: 0).status == 200)
        let login = try await fixture.login(Self.ann, "secret-1")
        #expect(login.status == 200)
        let again = try await Self.confirm(fixture, mail: 0)
        #expect(again.status == 400 && again.json["error_code"] == "UserpassTokenInvalid")
        #expect(try await Self.register(fixture).json["error_code"] == "AccountNameInUse")
    }

    @Test func `becomes no account if the function for new users refuses it`() async throws {
        let permits = Shared<[Bool]>([false])
        let functions = DecidingFunctions { call throws(SluiceError) in
            guard call.name == "create", permits.current.last == false else { return ["status": "success"] }
            throw SluiceError(.functionFailed, "no more users")
        }
        var app = AuthFixture.Accounts()
        (app.login.confirmation, app.hasMail, app.functions, app.creation) = (.mail, true, functions, "create")
        let fixture = try await AuthFixture(app)
        _ = try await Self.register(fixture)
        #expect(functions.calls.isEmpty, "there is no user yet")
        let refused = try await Self.confirm(fixture, mail: 0)
        #expect(refused.status == 400 && refused.json["error"] == "no more users")
        #expect(refused.json["code"]?.int == Int64(ErrorCode.functionFailed.rawValue))
        #expect(try await fixture.directory.find(email: Self.ann) == nil)
        permits.append(true)
        #expect(try await Self.confirm(fixture, mail: 0).status == 200)
        #expect(try await fixture.login(Self.ann, "secret-1").status == 200)
        #expect(functions.calls.map(\.name) == ["create", "create"])
    }

    @Test func `by mail is not confirmed by a link of half an hour ago, or by a guess`() async throws {
        let fixture = try await Self.fixture(.mail)
        _ = try await Self.register(fixture)
        let id = try fixture.mailer.link(0).id
        for (token, id) in [
            ("guess", id), (try fixture.mailer.link(0).token, "other"), ("a", "a\u{0}"), ("a", String(repeating: "i", count: 99)),
        ] {
            let answer = try await Self.post(fixture, "confirm", ["token": .string(token), "tokenId": .string(id)])
            #expect(answer.json["error_code"] == "UserpassTokenInvalid")
        }
        fixture.environment.advance(seconds: Limits.linkSeconds)
        #expect(try await Self.confirm(fixture, mail: 0).json["error_code"] == "UserpassTokenInvalid")
        #expect(try await Self.post(fixture, "confirm/send", ["email": .string(Self.ann)]).status == 200)
        #expect(try await Self.confirm(fixture, mail: 1).status == 200)
    }

    @Test func `of a pending address sends another mail, and each link confirms its own password`() async throws {
        let fixture = try await Self.fixture(.mail)
        // Somebody registers the address of another person, and hopes that she opens a link.
        #expect(try await Self.register(fixture, Self.ann, "attacker", from: "10.0.0.66").status == 201)
        #expect(try await Self.register(fixture, Self.ann, "secret-1").status == 201)
        #expect(try await Self.register(fixture, Self.ann, "attacker", from: "10.0.0.66").status == 201)
        #expect(fixture.mailer.mails.count == 3)
        #expect(try await Self.confirm(fixture, mail: 1).status == 200)
        #expect(try await fixture.login(Self.ann, "secret-1").status == 200)
        #expect(try await fixture.login(Self.ann, "attacker").status == 401)
        #expect(try await Self.confirm(fixture, mail: 2).json["error_code"] == "UserpassTokenInvalid")
    }

    @Test func `of an address that several registered sets no password by a repeated mail`() async throws {
        let fixture = try await Self.fixture(.mail)
        _ = try await Self.register(fixture)
        fixture.environment.advance(seconds: Limits.linkSeconds)
        #expect(try await Self.register(fixture, Self.ann, "attacker", from: "10.0.0.66").status == 201)
        #expect(try await Self.post(fixture, "confirm/send", ["email": .string(Self.ann)]).status == 200)
        #expect(try await Self.confirm(fixture, mail: 2).status == 200)
        for password in ["attacker", "secret-1"] { #expect(try await fixture.login(Self.ann, password).status == 401) }
        let account = try #require(try await fixture.directory.find(email: Self.ann))
        #expect(account.passwordHash == nil, "a reset by mail sets one")
    }

    @Test func `tells a stranger nothing about an address without an account`() async throws {
        let fixture = try await Self.fixture(.mail)
        _ = try await Self.register(fixture)
        let pending = try await Self.post(fixture, "confirm/send", ["email": .string(Self.ann)])
        let unknown = try await Self.post(fixture, "confirm/send", ["email": "nobody@example.com"])
        #expect(pending.status == 200 && unknown.status == 200 && pending.json == unknown.json)
        #expect(fixture.mailer.mails.map(\.recipient.text) == [Self.ann, Self.ann])
        _ = try await Self.confirm(fixture, mail: 0)
        let confirmed = try await Self.post(fixture, "confirm/send", ["email": .string(Self.ann)])
        #expect(confirmed.status == 400 && confirmed.json["error_code"] == "UserAlreadyConfirmed", "a registration tells the same")
    }

    @Test func `needs an address that a mail can be sent to`() async throws {
        let fixture = try await Self.fixture(.mail)
        for name in ["kim", "kim@a@b.example", "kim,bob@example.com", "<kim@example.com>"] {
            #expect(try await Self.register(fixture, name).json["code"]?.int == Int64(ErrorCode.invalidEmail.rawValue), "\(name)")
        }
        #expect(fixture.mailer.mails.isEmpty)
        let automatic = try await Self.fixture(.automatic)
        #expect(try await Self.register(automatic, "kim").status == 201)
    }

    @Test func `without a mail server confirms at once, and offers no mail`() async throws {
        let fixture = try await Self.fixture(.mail, hasMail: false)
        #expect(try await Self.register(fixture).status == 201)
        #expect(try await fixture.login(Self.ann, "secret-1").status == 200)
        for path in ["confirm/send", "confirm/call", "reset/send", "reset/call"] {
            let answer = try await Self.post(fixture, path, ["email": .string(Self.ann), "password": "secret-2"])
            #expect(answer.status == 400 && answer.json["error_code"] == "NotCallable", "\(path)")
        }
    }

    // MARK: By function

    private static func answering(_ status: JSON) -> DecidingFunctions { DecidingFunctions { _ in ["status": status] } }

    @Test func `by function is confirmed, pending or refused as the function says`() async throws {
        let functions = DecidingFunctions { call in
            ["status": .string(String(call.arguments.first?["username"]?.string?.prefix { $0 != "@" } ?? ""))]
        }
        let fixture = try await Self.fixture(.function("confirm"), functions: functions)
        for (status, code, login) in [("success", 201, 200), ("pending", 201, 401), ("fail", 400, 401), ("other", 400, 401)] {
            let email = "\(status)@example.com"
            #expect(try await Self.register(fixture, email).status == code, "\(status)")
            #expect(try await fixture.login(email, "secret-1").status == login, "\(status)")
        }
        #expect(try await fixture.pending.listPending(after: "", limit: 9).map(\.email) == ["pending@example.com"])
        let call = functions.calls[1]
        let argument = try #require(call.arguments.first)
        #expect(call.name == "confirm" && call.caller == .system && call.arguments.count == 1)
        // The function has sent the token in its own way.
        let answer = try await Self.post(fixture, "confirm", ["token": argument["token"] ?? "", "tokenId": argument["tokenId"] ?? ""])
        #expect(answer.status == 200)
        #expect(try await fixture.login("pending@example.com", "secret-1").status == 200)
    }

    @Test func `by function asks again for a pending user only`() async throws {
        let decision = Shared<[String]>(["pending"])
        let functions = DecidingFunctions { _ in ["status": .string(decision.current.last ?? "")] }
        let fixture = try await Self.fixture(.function("confirm"), functions: functions)
        _ = try await Self.register(fixture)
        #expect(try await Self.post(fixture, "confirm/call", ["email": "nobody@example.com"]).status == 200)
        #expect(functions.calls.count == 1)
        decision.append("success")
        #expect(try await Self.post(fixture, "confirm/call", ["email": .string(Self.ann)]).status == 200)
        #expect(try await fixture.login(Self.ann, "secret-1").status == 200)
        #expect(try await Self.post(fixture, "confirm/send", ["email": .string(Self.ann)]).json["error_code"] == "NotCallable")
    }

    @Test func `leaves nothing if the function cannot be called`() async throws {
        let fixture = try await Self.fixture(.function("missing"))
        let answer = try await Self.register(fixture)
        #expect(answer.status == 404 && answer.json["error_code"] == "FunctionNotFound")
        #expect(try await fixture.pending.listPending(after: "", limit: 9).isEmpty)
        #expect(try await fixture.login(Self.ann, "secret-1").json["error_code"] == "InvalidPassword")
    }

    // MARK: Operators

    @Test func `is closed if the operator says so`() async throws {
        var app = AuthFixture.Accounts()
        app.login.isRegistrationClosed = true
        let fixture = try await AuthFixture(app)
        let answer = try await Self.register(fixture)
        #expect(answer.status == 403 && answer.json["error"] == "Registration is closed.")
        _ = try await fixture.users.create(email: Self.ann, password: "secret-1")
        #expect(try await Self.register(fixture).json == answer.json, "it tells nothing about addresses")
        #expect(try await fixture.login(Self.ann, "secret-1").status == 200)
    }

    @Test func `is seen, repeated, confirmed and deleted by operators`() async throws {
        let fixture = try await Self.fixture(.mail)
        for name in ["ann", "bob"] { _ = try await Self.register(fixture, "\(name)@example.com") }
        let list = try await fixture.call(.get, "/admin/pending_users?limit=1").json
        let first = try #require(list["users"]?.array?.first)
        let id = try #require(first["id"]?.string)
        #expect(list["next"] == .string(id) && first["password_hash"] == nil)
        let time = fixture.environment.wallMilliseconds() / 1_000
        #expect(first["expires"] == .int(time + Limits.pendingUserSeconds))
        let other = try #require(
            try await fixture.call(.get, "/admin/pending_users?after=\(id)").json["users"]?.array?.first?["id"]?.string)
        #expect(try await fixture.call(.put, "/admin/pending_users/\(id)/send").status == 204 && fixture.mailer.mails.count == 3)
        #expect(try await fixture.call(.put, "/admin/pending_users/\(id)/confirm").status == 204)
        #expect(try await fixture.login(first["email"]?.string ?? "", "secret-1").json["user_id"] == .string(id))
        #expect(try await fixture.call(.delete, "/admin/pending_users/\(other)").status == 204)
        for (method, path) in [(HTTPRequest.Method.delete, other), (.put, "\(other)/confirm"), (.put, "\(id)/send")] {
            #expect(try await fixture.call(method, "/admin/pending_users/\(path)").status == 404)
        }
        #expect(try await fixture.call(.get, "/admin/pending_users").json == ["users": [], "next": .null])
    }

    // MARK: Limits

    @Test func `sends five mails to an address at once, and counts before it looks`() async throws {
        let fixture = try await Self.fixture(.mail)
        _ = try await Self.register(fixture)
        for email in [Self.ann, "nobody@example.com"] {
            var statuses: [Int] = []
            for _ in 0..<6 { statuses.append(try await Self.post(fixture, "confirm/send", ["email": .string(email)]).status) }
            #expect(statuses == (email == Self.ann ? [200, 200, 200, 200, 429, 429] : [200, 200, 200, 200, 200, 429]), "\(email)")
        }
        let refused = try await Self.post(fixture, "confirm/send", ["email": .string(Self.ann)])
        #expect(refused.headers[.retryAfter] == "300" && refused.json["error_code"] == "TooManyRequests")
        #expect(fixture.metrics.number(.loginsLimited, label: "mails").value == 4)
        fixture.environment.advance(seconds: 300)
        #expect(try await Self.post(fixture, "confirm/send", ["email": .string(Self.ann)]).status == 200)
    }

    @Test func `gets its mail although others have requested as many as there may be`() async throws {
        let fixture = try await Self.fixture(.mail)
        _ = try await Self.register(fixture)
        for host in 0..<200 {
            for _ in 0..<4 { _ = try await Self.post(fixture, "confirm/send", ["email": .string(Self.ann)], from: "10.1.0.\(host)") }
        }
        #expect(fixture.mailer.mails.count < 220, "each of 200 addresses has one at most")
        let before = fixture.mailer.mails.count
        #expect(try await Self.post(fixture, "confirm/send", ["email": .string(Self.ann)], from: "10.2.0.1").status == 200)
        #expect(fixture.mailer.mails.count == before + 1)
    }
}
