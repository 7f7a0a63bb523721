import HTTPTypes
import SluiceCore
import SluiceGateway
import SluicePorts
import SluiceValues
import Testing

@Suite struct `E-mail addresses of accounts` {
    private static let register = "/api/client/v2.0/app/shop/auth/providers/local-userpass/register"

    @Test(arguments: ["KIM@Corp.example", "\u{212A}im@corp.example", "kim@CORP.EXAMPLE"])
    func `are one whatever their case and code points`(other: String) async throws {
        let fixture = try await AuthFixture()
        try await fixture.users.register(email: "Kim@corp.example", password: "secret-1", from: "x")
        let taken = try await fixture.call(.post, Self.register, ["email": .string(other), "password": "secret-2"])
        #expect(taken.status == 409)
        #expect(try await fixture.login(other, "secret-1").status == 200)
        #expect(try await fixture.login(other, "secret-2").status == 401)
        let account = try #require(try await fixture.directory.find(email: "kim@corp.example"))
        #expect(account.data["email"] == "kim@corp.example" && account.identities[0, "id"] == "kim@corp.example")
    }

    @Test(arguments: ["a\0@x", "a\u{7}@x", "a b@x", "a\u{200B}@x", "a\u{202E}@x"])
    func `with control characters are refused by name, before anything is looked up`(email: String) async throws {
        let fixture = try await AuthFixture()
        let registered = try await fixture.call(.post, Self.register, ["email": .string(email), "password": "secret-1"])
        let login = try await fixture.login(email, "secret-1")
        for (status, json) in [(registered.status, registered.json), (login.status, login.json)] {
            #expect(status == 400 && json["code"]?.int == Int64(ErrorCode.invalidEmail.rawValue), "\(json.text)")
        }
    }
}

extension JSON {
    /// A member of an element.
    fileprivate subscript(index: Int, _ key: String) -> JSON? { array?[index][key] }
}
