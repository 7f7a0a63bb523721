import HTTPTypes
import SluiceCore
import SluiceGateway
import SluicePorts
import SluiceValues
import Testing

struct AuthRoutesTests {
    static let app = "/api/client/v2.0/app/shop"

    @Test(arguments: ["oauth2-google", "custom-token", "nonsense"])
    func `a way to log in that the app does not have is refused by name`(provider: String) async throws {
        let login = try await AuthFixture().call(.post, "\(Self.app)/auth/providers/\(provider)/login", .object([]))
        #expect(login.json["code"] == .int(Int64(ErrorCode.providerDisabled.rawValue)) && login.status >= 400, "\(login)")
    }

    @Test func `an anonymous user gets an account, tokens and a profile`() async throws {
        let fixture = try await AuthFixture()
        let login = try await fixture.call(.post, "\(Self.app)/auth/providers/anon-user/login", .object([]))
        #expect(login.status == 200)
        let id = try #require(login.json["user_id"]?.string)
        #expect(ObjectIdentifierBytes(hex: id) != nil)
        #expect(login.json["device_id"]?.string?.count == 24)
        for token in ["access_token", "refresh_token"] {
            #expect(login.json[token]?.string?.split(separator: ".").count == 3, "clients read it as a JWT")
        }
        let profile = try await fixture.call(.get, "/api/client/v2.0/auth/profile", token: login.json["access_token"]?.string)
        #expect(profile.json["user_id"] == .string(id))
        #expect(profile.json["identities"] == [["id": .string(id), "provider_type": "anon-user"]])
        #expect(profile.json["data"] == .object([]))
    }

    @Test func `a user registers, logs in and sees custom data in the token`() async throws {
        let fixture = try await AuthFixture()
        let credentials: JSON = ["email": "Ann@example.com", "password": "secret-1"]
        #expect(try await fixture.call(.post, "\(Self.app)/auth/providers/local-userpass/register", credentials).status == 201)
        let again = try await fixture.call(.post, "\(Self.app)/auth/providers/local-userpass/register", credentials)
        #expect(again.status == 409)
        #expect(again.json["error_code"] == "AccountNameInUse" && again.json["code"] == .int(Int64(ErrorCode.nameInUse.rawValue)))
        let id = try #require(try await fixture.directory.find(email: "ann@example.com")).id
        try await fixture.users.setCustomData(["origin": "JFK", "levels": [1, .double(2.5), .null, true]], of: id)
        let login = try await fixture.login("Ann@example.com", "secret-1")
        #expect(login.status == 200)
        let verified = try await fixture.users.tokens.verify(login.json["access_token"]?.string ?? "")
        #expect(verified.user.id == id)
        #expect(verified.user.customData["origin"] == "JFK")
        #expect(verified.user.customData["levels"] == [1, .double(2.5), .null, true])
        #expect(verified.user.data["email"] == "ann@example.com")
        #expect(verified.expires == fixture.environment.wallMilliseconds() + 1_800_000)
    }

    @Test func `wrong password and unknown user are refused alike`() async throws {
        let fixture = try await AuthFixture()
        try await fixture.users.register(email: "ann@example.com", password: "secret-1", from: "x")
        for (email, password) in [("ann@example.com", "secret-2"), ("bob@example.com", "secret-1")] {
            let answer = try await fixture.login(email, password)
            #expect(answer.status == 401)
            #expect(answer.json["error_code"] == "InvalidPassword")
            #expect(answer.json["error"] == "invalid username/password")
        }
    }

    @Test(arguments: [("a@b", "12345"), ("a@b", String(repeating: "x", count: 129)), ("", "secret-1"), ("a b", "secret-1")])
    func `unusable names and passwords are refused`(email: String, password: String) async throws {
        let answer = try await AuthFixture().call(
            .post, "\(Self.app)/auth/providers/local-userpass/register", ["email": .string(email), "password": .string(password)])
        #expect(answer.status == 400)
        #expect(answer.json["error"]?.string?.isEmpty == false)
    }

    @Test func `passwords of 6 and of 128 characters of any script are taken`() async throws {
        let fixture = try await AuthFixture()
        for (email, password) in [("a@b", "äöü€漢字"), ("c@d", String(repeating: "漢", count: 128))] {
            try await fixture.users.register(email: email, password: password, from: "x")
            #expect(try await fixture.login(email, password).status == 200)
        }
    }

    @Test func `a body that is no login is refused with what is missing`() async throws {
        let fixture = try await AuthFixture()
        let answer = try await fixture.call(.post, "\(Self.app)/auth/providers/local-userpass/login", ["username": "ann"])
        #expect(answer.status == 400)
        #expect(answer.json["error"]?.string?.contains("'password'") == true)
    }

    @Test(arguments: ["local-userpass", "custom-token", "nonsense"])
    func `a provider that is not enabled is refused`(provider: String) async throws {
        let fixture = try await AuthFixture(providers: ["anon-user"])
        let answer = try await fixture.call(.post, "\(Self.app)/auth/providers/\(provider)/login", ["username": "a", "password": "b"])
        #expect(answer.status == 404)
        #expect(answer.json["error_code"] == "AuthProviderNotFound")
    }

    @Test func `a refresh token makes access tokens until logout, which ends them all`() async throws {
        let fixture = try await AuthFixture()
        let login = try await fixture.call(.post, "\(Self.app)/auth/providers/anon-user/login", .object([]))
        let refresh = try #require(login.json["refresh_token"]?.string)
        fixture.environment.advance(seconds: 40 * 60)
        let renewed = try await fixture.call(.post, "/api/client/v2.0/auth/session", token: refresh)
        #expect(renewed.status == 201)
        let access = try #require(renewed.json["access_token"]?.string)
        #expect(try await fixture.users.tokens.verify(access).user.id == login.json["user_id"]?.string)
        #expect(try await fixture.call(.delete, "/api/client/v2.0/auth/session", token: refresh).status == 204)
        let after = try await fixture.call(.post, "/api/client/v2.0/auth/session", token: refresh)
        #expect(after.status == 401)
        #expect(after.json["error_code"] == "InvalidSession")
        for (method, path) in [(HTTPRequest.Method.get, "profile"), (.delete, "delete"), (.get, "api_keys")] {
            let answer = try await fixture.call(method, "/api/client/v2.0/auth/\(path)", token: access)
            #expect(answer.status == 401 && answer.json["error_code"] == "InvalidSession", "\(path): \(answer.json.text)")
        }
    }

    @Test func `a refresh token is rotated on request, and its use after the next one's ends the login`() async throws {
        let fixture = try await AuthFixture()
        let login = try await fixture.call(.post, "\(Self.app)/auth/providers/anon-user/login", .object([]))
        let session = "/api/client/v2.0/auth/session"
        func rotate(_ token: String) async throws -> (access: String, refresh: String) {
            let answer = try await fixture.call(.post, "\(session)?rotate=true", token: token)
            #expect(answer.status == 201)
            return (try #require(answer.json["access_token"]?.string), try #require(answer.json["refresh_token"]?.string))
        }
        let first = try #require(login.json["refresh_token"]?.string)
        _ = try await rotate(first)
        // The answer was lost.
        let second = try await rotate(first)
        let third = try await rotate(second.refresh)
        #expect(try await fixture.call(.post, session, token: second.refresh).status == 201)
        #expect(try await fixture.call(.get, "/api/client/v2.0/auth/profile", token: third.access).status == 200)
        let copied = try await fixture.call(.post, session, token: first)
        #expect(copied.status == 401 && copied.json["error_code"] == "InvalidSession")
        for token in [second.refresh, third.refresh] {
            #expect(try await fixture.call(.post, session, token: token).status == 401)
        }
        #expect(try await fixture.call(.get, "/api/client/v2.0/auth/profile", token: third.access).status == 401)
    }

    @Test func `a rotated token expires with the first one`() async throws {
        let fixture = try await AuthFixture()
        try await fixture.users.register(email: "ada@example.com", password: "secret-1", from: "x")
        var token = try #require(try await fixture.login("ada@example.com", "secret-1").json["refresh_token"]?.string)
        for _ in 0..<2 {
            fixture.environment.advance(seconds: 29 * 86_400)
            let answer = try await fixture.call(.post, "/api/client/v2.0/auth/session?rotate=true", token: token)
            token = try #require(answer.json["refresh_token"]?.string)
        }
        fixture.environment.advance(seconds: 2 * 86_400)
        #expect(try await fixture.call(.post, "/api/client/v2.0/auth/session", token: token).status == 401)
    }

    @Test func `a user logs out everywhere, or on one device alone`() async throws {
        let fixture = try await AuthFixture()
        try await fixture.users.register(email: "ada@example.com", password: "secret-1", from: "x")
        var tokens: [String] = []
        for _ in 0..<4 {
            tokens.append(try #require(try await fixture.login("ada@example.com", "secret-1").json["refresh_token"]?.string))
        }
        let session = "/api/client/v2.0/auth/session"
        func open() async throws -> [Bool] {
            var open: [Bool] = []
            for token in tokens { open.append(try await fixture.call(.post, session, token: token).status == 201) }
            return open
        }
        #expect(try await fixture.call(.delete, session, token: tokens[1]).status == 204)
        #expect(try await open() == [true, false, true, true])
        #expect(try await fixture.call(.delete, "\(session)?everywhere=true", token: tokens[1]).status == 401, "its login has ended")
        #expect(try await open() == [true, false, true, true])
        #expect(try await fixture.call(.delete, "\(session)?everywhere=true", token: tokens[2]).status == 204)
        #expect(try await open() == [false, false, false, false])
        #expect(try await fixture.login("ada@example.com", "secret-1").status == 200)
    }

    @Test func `an access token is no refresh token, nor the other way round`() async throws {
        let fixture = try await AuthFixture()
        let login = try await fixture.call(.post, "\(Self.app)/auth/providers/anon-user/login", .object([]))
        let access = login.json["access_token"]?.string
        let refresh = login.json["refresh_token"]?.string
        #expect(try await fixture.call(.post, "/api/client/v2.0/auth/session", token: access).status == 401)
        #expect(try await fixture.call(.get, "/api/client/v2.0/auth/profile", token: refresh).status == 401)
        #expect(try await fixture.call(.get, "/api/client/v2.0/auth/profile").status == 401)
    }

    @Test func `a name that is too long for an account is a wrong one, and is not remembered`() async throws {
        let fixture = try await AuthFixture()
        let name = String(repeating: "a", count: 321)
        for attempt in 0..<15 { #expect(try await fixture.login(name, "secret-1", from: "10.0.1.\(attempt)").status == 401) }
    }

    @Test func `users delete their own accounts`() async throws {
        let fixture = try await AuthFixture()
        let login = try await fixture.call(.post, "\(Self.app)/auth/providers/anon-user/login", .object([]))
        let token = login.json["access_token"]?.string
        #expect(try await fixture.call(.delete, "/api/client/v2.0/auth/delete", token: token).status == 204)
        #expect(try await fixture.call(.get, "/api/client/v2.0/auth/profile", token: token).status == 401)
        #expect(fixture.changes.current == ["\(login.json["user_id"]?.string ?? "") deleted"])
    }
}

struct AdminUserRoutesTests {
    @Test func `an operator creates, shows, changes, disables and deletes a user`() async throws {
        let fixture = try await AuthFixture()
        let created = try await fixture.call(
            .post, "/admin/users", ["email": "agent@example.com", "password": "secret-1", "custom_data": ["origin": "LGA"]])
        #expect(created.status == 201)
        let id = try #require(created.json["id"]?.string)
        #expect(!created.json.text.contains("scrypt"), "the hash stays inside")
        #expect(try await fixture.call(.get, "/admin/users/\(id)").json["custom_data"] == ["origin": "LGA"])
        #expect(try await fixture.call(.put, "/admin/users/\(id)/custom_data", ["origin": "EWR"]).json["custom_data"] == ["origin": "EWR"])
        let login = try await fixture.login("agent@example.com", "secret-1")
        #expect(try await fixture.call(.put, "/admin/users/\(id)/disable").status == 204)
        let refused = try await fixture.login("agent@example.com", "secret-1")
        #expect(refused.status == 401)
        #expect(refused.json["error_code"] == "UserDisabled")
        let refresh = try await fixture.call(.post, "/api/client/v2.0/auth/session", token: login.json["refresh_token"]?.string)
        #expect(refresh.status == 401)
        #expect(try await fixture.call(.put, "/admin/users/\(id)/enable").status == 204)
        #expect(try await fixture.login("agent@example.com", "secret-1").status == 200)
        #expect(try await fixture.call(.put, "/admin/users/\(id)/logout").status == 204)
        #expect(try await fixture.call(.delete, "/admin/users/\(id)").status == 204)
        #expect(try await fixture.call(.get, "/admin/users/\(id)").status == 404)
        #expect(fixture.changes.current == ["customData", "disabled", "loggedOut", "deleted"].map { "\(id) \($0)" })
    }

    @Test func `users are listed in pages`() async throws {
        let fixture = try await AuthFixture()
        var ids: [String] = []
        for index in 0..<5 { ids.append(try await fixture.users.create(email: "u\(index)@b", password: "secret-1").id) }
        ids.sort()
        let first = try await fixture.call(.get, "/admin/users?limit=3")
        #expect(first.json["users"]?.array?.compactMap { $0["id"]?.string } == Array(ids[..<3]))
        let second = try await fixture.call(.get, "/admin/users?limit=3&after=\(first.json["next"]?.string ?? "")")
        #expect(second.json["users"]?.array?.compactMap { $0["id"]?.string } == Array(ids[3...]))
        #expect(second.json["next"] == .null)
    }

    @Test(arguments: [("/admin/users/unknown/disable", "PUT"), ("/admin/users/unknown/logout", "PUT"), ("/admin/users/unknown", "DELETE")])
    func `an unknown user is not found`(path: String, method: String) async throws {
        let answer = try await AuthFixture().call(try #require(HTTPRequest.Method(method)), path)
        #expect(answer.status == 404)
        #expect(answer.json["error_code"] == "UserNotFound")
    }

    @Test func `custom data that are no object, or too large, are refused`() async throws {
        let fixture = try await AuthFixture()
        let id = try await fixture.users.create(email: "a@b", password: "secret-1").id
        #expect(try await fixture.call(.put, "/admin/users/\(id)/custom_data", [1]).status == 400)
        let large: JSON = ["text": .string(String(repeating: "x", count: 17 << 10))]
        #expect(try await fixture.call(.put, "/admin/users/\(id)/custom_data", large).status == 400)
        let huge = try await fixture.call(
            .put, "/admin/users/\(id)/custom_data", ["text": .string(String(repeating: "x", count: 4 << 20))])
        #expect(huge.status == 413 && huge.json["code"] == .int(Int64(ErrorCode.bodyTooLarge.rawValue)), "\(huge)")
        #expect(fixture.changes.current.isEmpty)
    }
}
