import Crypto
import FoundationEssentials
import HTTPTypes
import SluiceCore
import SluiceGateway
import SluiceValues
import Testing

/// The pages behind the links of mails.
@Suite struct `The pages of accounts` {
    private static let pages = "/api/client/v2.0/app/shop/pages"
    private static let ann = "ann@example.com"

    private static func fixture() async throws -> AuthFixture {
        var app = AuthFixture.Accounts()
        (app.login.confirmation, app.hasMail) = (.mail, true)
        return try await AuthFixture(app)
    }

    private static func register(_ fixture: AuthFixture) async throws -> (token: String, id: String) {
        _ = try await fixture.call(
            .post, "/api/client/v2.0/app/shop/auth/providers/local-userpass/register", ["email": .string(ann), "password": "secret-1"])
        return try fixture.mailer.link(0)
    }

    private static func sendReset(_ fixture: AuthFixture) async throws -> (token: String, id: String) {
        _ = try await fixture.users.create(email: ann, password: "secret-1")
        _ = try await fixture.call(
            .post, "/api/client/v2.0/app/shop/auth/providers/local-userpass/reset/send", ["email": .string(ann)])
        return try fixture.mailer.link(0)
    }

    @Test func `confirm an address by a form, and not by following the link`() async throws {
        let fixture = try await Self.fixture()
        let link = try await Self.register(fixture)
        for _ in 0..<3 {
            let page = try await fixture.text(.get, "\(Self.pages)/confirm?token=\(link.token)&tokenId=\(link.id)")
            #expect(page.status == 200 && page.text.contains("<title>Confirm your e-mail address for The Shop</title>"))
            #expect(
                page.text.contains("name=\"token\" value=\"\(link.token)\"") && page.text.contains("method=\"post\" action=\"confirm\""))
        }
        #expect(try await fixture.login(Self.ann, "secret-1").status == 401)
        let done = try await fixture.text(.post, "\(Self.pages)/confirm", "token=\(link.token)&tokenId=\(link.id)")
        #expect(done.status == 200 && done.text.contains("<h1>Your e-mail address is confirmed</h1>"))
        #expect(try await fixture.login(Self.ann, "secret-1").status == 200)
        let again = try await fixture.text(.post, "\(Self.pages)/confirm", "token=\(link.token)&tokenId=\(link.id)")
        #expect(again.status == 400 && again.text.contains("<h1>This link is not valid</h1>") && again.text.contains("role=\"alert\""))
    }

    @Test func `set a password once, and say what is wrong with one`() async throws {
        let fixture = try await Self.fixture()
        let link = try await Self.sendReset(fixture)
        let form = try await fixture.text(.get, "\(Self.pages)/reset?token=\(link.token)&tokenId=\(link.id)")
        #expect(
            form.text.contains(
                "<label>New password <input name=\"password\" type=\"password\" autocomplete=\"new-password\" required></label>"))
        func post(_ password: String, _ again: String) async throws -> (status: Int, text: String) {
            let answer = try await fixture.text(
                .post, "\(Self.pages)/reset", "token=\(link.token)&tokenId=\(link.id)&password=\(password)&again=\(again)")
            return (answer.status, answer.text)
        }
        let differing = try await post("secret-2", "secret-3")
        #expect(differing.status == 400 && differing.text.contains("The two passwords differ.") && differing.text.contains("<form"))
        let short = try await post("abc", "abc")
        #expect(
            short.status == 400 && short.text.contains("between 6 and 128 characters") && short.text.contains("value=\"\(link.token)\""))
        #expect(!short.text.contains("abc"), "a password does not come back")
        let done = try await post("two+words%26", "two+words%26")
        #expect(done.status == 200 && done.text.contains("<h1>Your password is set</h1>"))
        #expect(try await fixture.login(Self.ann, "two words&").status == 200)
        #expect(try await post("secret-2", "secret-2").text.contains("This link is not valid"))
    }

    @Test func `run nothing, load nothing, and tell no other site of the link`() async throws {
        let fixture = try await Self.fixture()
        let link = try await Self.register(fixture)
        let page = try await fixture.text(.get, "\(Self.pages)/confirm?token=\(link.token)&tokenId=\(link.id)")
        #expect(page.headers[try #require(HTTPField.Name("Referrer-Policy"))] == "no-referrer")
        #expect(page.headers[.cacheControl] == "no-store" && page.headers[.xContentTypeOptions] == "nosniff")
        #expect(page.headers[.contentType] == "text/html; charset=utf-8")
        let style = try #require(page.text.firstMatch(of: /(?s)<style>(.*)<\/style>/)?.1)
        let hash = Base64.encode(Array(SHA256.hash(data: Data(style.utf8))))
        let policy = try #require(page.headers[.contentSecurityPolicy])
        #expect(policy.hasPrefix("default-src 'none'; style-src 'sha256-\(hash)';") && !policy.contains("unsafe"))
        #expect(!page.text.contains("<script") && !page.text.contains("src=") && !page.text.contains("href="))
        #expect(page.text.contains("<html lang=\"en\">") && page.text.contains("<main>"))
    }

    @Test func `show what a link brings as text`() async throws {
        let fixture = try await Self.fixture()
        let page = try await fixture.text(.get, "\(Self.pages)/confirm?token=%22%3E%3Cscript%3E&tokenId='")
        #expect(page.text.contains("value=\"&quot;&gt;&lt;script&gt;\"") && page.text.contains("value=\"&#39;\""))
    }

    @Test(arguments: ["confirm", "reset"]) func `explain a link that is incomplete or of another app`(name: String) async throws {
        let fixture = try await Self.fixture()
        for query in ["", "?token=a", "?token=&tokenId=b", "?tokenId=%ff%fe&token=%"] {
            let page = try await fixture.text(.get, "\(Self.pages)/\(name)\(query)")
            #expect(page.status == 400 && page.text.contains("<h1>This link is not valid</h1>"), "\(query)")
        }
        #expect(try await fixture.text(.post, "\(Self.pages)/\(name)", String(repeating: "a", count: 9_000)).status == 413)
        let other = try await fixture.text(.get, "/api/client/v2.0/app/other/pages/\(name)?token=a&tokenId=b")
        #expect(other.status == 404 && other.text.contains("This gateway serves another app."))
    }

    @Test func `limit wrong links, and say when to try again`() async throws {
        let fixture = try await Self.fixture()
        for _ in 0..<Limits.apiKeyFailures.atOnce {
            #expect(try await fixture.text(.post, "\(Self.pages)/confirm", "token=a&tokenId=b").status == 400)
        }
        let refused = try await fixture.text(.post, "\(Self.pages)/confirm", "token=a&tokenId=b")
        #expect(refused.status == 429 && refused.headers[.retryAfter] != nil && refused.text.contains("Too many wrong links"))
    }
}
