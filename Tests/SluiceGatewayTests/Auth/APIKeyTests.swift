import HTTPTypes
import SluiceCore
import SluiceGateway
import SluicePorts
import SluiceValues
import Testing

@Suite struct `API keys` {
    private static let own = "/api/client/v2.0/auth/api_keys"
    private static let logIn = "/api/client/v2.0/app/shop/auth/providers/api-key/login"

    private static func anonymous(_ fixture: AuthFixture, from address: String = "10.0.0.1") async throws -> JSON {
        try await fixture.call(.post, "\(AuthRoutesTests.app)/auth/providers/anon-user/login", .object([]), from: address).json
    }

    @Test(arguments: ["refresh_token", "access_token"]) func `of a user log that user in until they are deleted`(kind: String) async throws
    {
        let fixture = try await AuthFixture()
        let login = try await Self.anonymous(fixture)
        let token = try #require(login[kind]?.string)
        let made = try await fixture.call(.post, Self.own, ["name": "sensor-1"], token: token)
        #expect(made.status == 201)
        let (id, secret) = (try #require(made.json["_id"]?.string), try #require(made.json["key"]?.string))
        #expect(secret.utf8.count == 43)

        let byKey = try await fixture.call(.post, Self.logIn, ["key": .string(secret)])
        #expect(byKey.status == 200)
        #expect(byKey.json["user_id"] == login["user_id"])

        let list = try await fixture.call(.get, Self.own, token: token)
        #expect(list.json == [["_id": .string(id), "name": "sensor-1", "disabled": false]], "never with the secret")
        #expect(try await fixture.call(.get, "\(Self.own)/\(id)", token: token).json["name"] == "sensor-1")

        #expect(try await fixture.call(.put, "\(Self.own)/\(id)/disable", token: token).status == 204)
        #expect(try await fixture.call(.post, Self.logIn, ["key": .string(secret)]).status == 401)
        #expect(try await fixture.call(.put, "\(Self.own)/\(id)/enable", token: token).status == 204)
        #expect(try await fixture.call(.post, Self.logIn, ["key": .string(secret)]).status == 200)

        #expect(try await fixture.call(.delete, "\(Self.own)/\(id)", token: token).status == 204)
        #expect(try await fixture.call(.post, Self.logIn, ["key": .string(secret)]).status == 401)
        let gone = try await fixture.call(.delete, "\(Self.own)/\(id)", token: token)
        #expect((gone.status, gone.json["error_code"]) == (404, "APIKeyNotFound"))
        #expect(gone.json["code"]?.int == Int64(ErrorCode.apiKeyNotFound.rawValue))
    }

    @Test func `are out of reach of other users`() async throws {
        let fixture = try await AuthFixture()
        let mine = try #require(try await Self.anonymous(fixture)["refresh_token"]?.string)
        let other = try #require(try await Self.anonymous(fixture, from: "10.0.0.2")["refresh_token"]?.string)
        let id = try #require(try await fixture.call(.post, Self.own, ["name": "a"], token: mine).json["_id"]?.string)
        #expect(try await fixture.call(.get, "\(Self.own)/\(id)", token: other).status == 404)
        #expect(try await fixture.call(.delete, "\(Self.own)/\(id)", token: other).status == 404)
        #expect(try await fixture.call(.put, "\(Self.own)/\(id)/disable", token: other).status == 404)
        #expect(try await fixture.call(.get, Self.own).status == 401)
    }

    @Test func `are twenty at most for one user, with names of their own`() async throws {
        let fixture = try await AuthFixture()
        let token = try #require(try await Self.anonymous(fixture)["refresh_token"]?.string)
        for number in 1...20 {
            #expect(try await fixture.call(.post, Self.own, ["name": .string("key-\(number)")], token: token).status == 201)
        }
        #expect(try await fixture.call(.post, Self.own, ["name": "key-21"], token: token).status == 413)
        let id = try #require(try await fixture.call(.get, Self.own, token: token).json.array?.first?["_id"]?.string)
        _ = try await fixture.call(.delete, "\(Self.own)/\(id)", token: token)
        #expect(try await fixture.call(.post, Self.own, ["name": "key-2"], token: token).status == 409)
        for name in ["", "a b", String(repeating: "a", count: 65)] {
            #expect(try await fixture.call(.post, Self.own, ["name": .string(name)], token: token).status == 400, "'\(name)'")
        }
    }

    @Test func `of the server have an account of their own, which goes with them`() async throws {
        let fixture = try await AuthFixture()
        let made = try await fixture.call(.post, "/admin/api_keys", ["name": "pipeline", "custom_data": ["store": "north"]])
        #expect(made.status == 201)
        let (id, secret) = (try #require(made.json["_id"]?.string), try #require(made.json["key"]?.string))
        let user = try #require(made.json["user_id"]?.string)
        let login = try await fixture.call(.post, Self.logIn, ["key": .string(secret)])
        #expect(login.json["user_id"] == .string(user))
        #expect(try await fixture.directory.find(id: user)?.customData == ["store": "north"])
        #expect(try await fixture.call(.get, "/admin/api_keys").json.array?.count == 1)
        #expect(try await fixture.call(.get, "/admin/users/\(user)/api_keys").json == [], "it is none of a user's")
        #expect(try await fixture.call(.delete, "/admin/api_keys/\(id)").status == 204)
        #expect(try await fixture.directory.find(id: user) == nil)
        #expect(fixture.changes.current.contains("\(user) deleted"))
    }

    @Test func `need their provider`() async throws {
        let fixture = try await AuthFixture(providers: ["anon-user"])
        let token = try #require(try await Self.anonymous(fixture)["refresh_token"]?.string)
        for answer in [
            try await fixture.call(.post, Self.own, ["name": "a"], token: token), try await fixture.call(.post, Self.logIn, ["key": "x"]),
        ] { #expect(answer.json["code"] == .int(Int64(ErrorCode.providerDisabled.rawValue))) }
    }
}
