import FoundationEssentials
import HTTPTypes
import SluiceCore
import SluiceGateway
import SluiceIdentity
import SluicePorts
import SluiceValues
import Testing

@Suite struct `A password` {
    private static let path = "/api/client/v2.0/app/shop/auth/providers/local-userpass"
    private static let session = "/api/client/v2.0/auth/session"
    private static let ann = "ann@example.com"

    private static func fixture(_ app: AuthFixture.Accounts) async throws -> AuthFixture {
        let fixture = try await AuthFixture(app)
        _ = try await fixture.users.create(email: ann, password: "secret-1")
        return fixture
    }

    private static var byMail: AuthFixture.Accounts {
        var app = AuthFixture.Accounts()
        app.hasMail = true
        return app
    }

    private static func byFunction(_ functions: any AppFunctions) -> AuthFixture.Accounts {
        var app = AuthFixture.Accounts()
        (app.login.reset, app.functions) = (.function("reset"), functions)
        return app
    }

    // MARK: By mail

    @Test func `is set by the link of a mail, and the old password and its logins end`() async throws {
        let fixture = try await Self.fixture(Self.byMail)
        let login = try await fixture.login(Self.ann, "secret-1")
        let known = try await fixture.call(.post, "\(Self.path)/reset/send", ["email": "Ann@example.com"])
        let unknown = try await fixture.call(.post, "\(Self.path)/reset/send", ["email": "nobody@example.com"])
        #expect(known.status == 200 && unknown.status == 200 && known.json == unknown.json)
        #expect(fixture.mailer.mails.map(\.recipient.text) == [Self.ann] && fixture.mailer.mails.first?.subject == "reset")
        let link = try fixture.mailer.link(0)
        let body: JSON = ["token": .string(link.token), "tokenId": .string(link.id), "password": "secret-2"]
        #expect(try await fixture.call(.post, "\(Self.path)/reset", body).status == 200)
        #expect(try await fixture.call(.post, "\(Self.path)/reset", body).json["error_code"] == "UserpassTokenInvalid")
        #expect(try await fixture.call(.post, Self.session, token: login.json["refresh_token"]?.string).status == 401)
        #expect(try await fixture.login(Self.ann, "secret-1").status == 401)
        #expect(try await fixture.login(Self.ann, "secret-2").status == 200)
    }

    @Test func `is not set by a link that is half an hour old, and gets no link if the user is disabled`() async throws {
        let fixture = try await Self.fixture(Self.byMail)
        _ = try await fixture.call(.post, "\(Self.path)/reset/send", ["email": .string(Self.ann)])
        fixture.environment.advance(seconds: Limits.linkSeconds)
        let link = try fixture.mailer.link(0)
        let body: JSON = ["token": .string(link.token), "tokenId": .string(link.id), "password": "secret-2"]
        #expect(try await fixture.call(.post, "\(Self.path)/reset", body).json["error_code"] == "UserpassTokenInvalid")
        let id = try #require(try await fixture.directory.find(email: Self.ann)?.id)
        try await fixture.users.setDisabled(true, of: id)
        #expect(try await fixture.call(.post, "\(Self.path)/reset/send", ["email": .string(Self.ann)]).status == 200)
        #expect(fixture.mailer.mails.count == 1)
    }

    // MARK: By function

    @Test func `is set by the function at once, later or not at all`() async throws {
        let functions = DecidingFunctions { call in ["status": call.arguments.last ?? ""] }
        let fixture = try await Self.fixture(Self.byFunction(functions))
        func reset(_ password: String, _ arguments: JSON, email: String = Self.ann) async throws -> (status: Int, name: String?) {
            let body: JSON = ["email": .string(email), "password": .string(password), "arguments": arguments]
            let answer = try await fixture.call(.post, "\(Self.path)/reset/call", body, from: "10.0.0.\(functions.calls.count)")
            return (answer.status, answer.json["error_code"]?.string)
        }
        #expect(try await reset("secret-1", ["answer", "fail"]).status == 400)
        #expect(functions.calls[0].arguments.first?["currentPasswordValid"] == true)
        #expect(functions.calls[0].arguments.dropFirst() == ["answer", "fail"] && functions.calls[0].caller == .system)
        #expect(try await fixture.login(Self.ann, "secret-1").status == 200)
        #expect(try await reset("secret-2", ["pending"]).status == 200)
        #expect(try await fixture.login(Self.ann, "secret-2").status == 401)
        let request = try #require(functions.calls[1].arguments.first)
        #expect(request["currentPasswordValid"] == false && request["username"] == .string(Self.ann) && request["password"] == "secret-2")
        let login = try await fixture.login(Self.ann, "secret-1")
        #expect(try await reset("secret-3", ["success"]).status == 200)
        #expect(try await fixture.login(Self.ann, "secret-3").status == 200)
        #expect(try await fixture.call(.post, Self.session, token: login.json["refresh_token"]?.string).status == 401)
        // The tokens of earlier calls are of no use any more.
        let late: JSON = ["token": request["token"] ?? "", "tokenId": request["tokenId"] ?? "", "password": "secret-4"]
        #expect(try await fixture.call(.post, "\(Self.path)/reset", late).json["error_code"] == "UserpassTokenInvalid")
        #expect(try await reset("secret-5", ["success"], email: "nobody@example.com").name == "UserNotFound")
        #expect(functions.calls.count == 3)
    }

    @Test func `that a pending function decides on is set with the token that it sent`() async throws {
        let functions = DecidingFunctions { _ in ["status": "pending"] }
        let fixture = try await Self.fixture(Self.byFunction(functions))
        let body: JSON = ["email": .string(Self.ann), "password": "secret-2"]
        #expect(try await fixture.call(.post, "\(Self.path)/reset/call", body).status == 200)
        let request = try #require(functions.calls.first?.arguments.first)
        let token: JSON = ["token": request["token"] ?? "", "tokenId": request["tokenId"] ?? "", "password": "secret-2"]
        #expect(try await fixture.call(.post, "\(Self.path)/reset", token).status == 200)
        #expect(try await fixture.login(Self.ann, "secret-2").status == 200)
    }

    // MARK: By operators

    @Test func `is set by an operator, and the logins end`() async throws {
        let fixture = try await Self.fixture(AuthFixture.Accounts())
        let login = try await fixture.login(Self.ann, "secret-1")
        let id = try #require(login.json["user_id"]?.string)
        #expect(try await fixture.call(.put, "/admin/users/\(id)/password", ["password": "short"]).status == 400)
        #expect(try await fixture.call(.put, "/admin/users/\(id)/password", ["password": "secret-2"]).status == 204)
        #expect(try await fixture.call(.post, Self.session, token: login.json["refresh_token"]?.string).status == 401)
        #expect(try await fixture.login(Self.ann, "secret-1").status == 401)
        #expect(try await fixture.login(Self.ann, "secret-2").status == 200)
        #expect(fixture.changes.current.contains("\(id) loggedOut"))
        #expect(try await fixture.call(.put, "/admin/users/nobody/password", ["password": "secret-2"]).status == 404)
        let anonymous = try await fixture.users.loginAnonymously(from: "10.0.0.9").userID
        #expect(try await fixture.call(.put, "/admin/users/\(anonymous)/password", ["password": "secret-2"]).status == 400)
    }

    // MARK: Policy

    @Test func `has the length that the app requires, and is in no list`() async throws {
        var app = Self.byMail
        let list = "123456789012\r\nBAA1A5A8C4EB0E9A0F2F1B3C36F8C2AB1B8E1F11:12\n\(Self.sha1OfCorrect):99\nplain words\n"
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("passwords-\(UUID())")
        try Data(list.utf8).write(to: folder)
        defer { try? FileManager.default.removeItem(at: folder) }
        app.passwords = PasswordPolicy(minimumLength: 8, refused: try RefusedPasswords.load(folder.path))
        let fixture = try await Self.fixture(app)
        for (password, status) in [
            ("1234567", 400), ("123456789012", 400), ("correct horse", 400), ("plain words", 400), ("Plain words", 201),
        ] {
            let answer = try await fixture.call(
                .post, "\(Self.path)/register", ["email": .string("\(status)@example.com"), "password": .string(password)])
            #expect(answer.status == status, "\(password): \(answer.json)")
        }
        _ = try await fixture.call(.post, "\(Self.path)/reset/send", ["email": .string(Self.ann)])
        let link = try fixture.mailer.link(0)
        func reset(_ password: String) async throws -> Int {
            let body: JSON = ["token": .string(link.token), "tokenId": .string(link.id), "password": .string(password)]
            return try await fixture.call(.post, "\(Self.path)/reset", body).status
        }
        #expect(try await reset("correct horse") == 400)
        #expect(try await reset("correct horse battery") == 200, "the token was still valid")
    }

    private static let sha1OfCorrect = "2F9E53523B62ABC141A2B4D6019D23CBA835DBD0"

    @Test func `list that cannot be read is named`() {
        let error = #expect(throws: SluiceError.self) { try RefusedPasswords.load("/nowhere/list.txt") }
        #expect(error?.code == .configInvalid && error?.message.contains("/nowhere/list.txt") == true)
    }
}
