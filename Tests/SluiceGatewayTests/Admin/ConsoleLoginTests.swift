import Foundation
import SluiceCore
import SluiceGateway
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite(.timeLimit(.minutes(5))) struct `The login to the console` {
    private struct Browser {
        let gateway: RunningGateway

        func ask(
            _ method: String, _ path: String, form: String? = nil, cookie: String? = nil, _ fields: [String: String] = [:]
        ) async throws -> (status: Int, fields: [String: String], text: String) {
            var request = URLRequest(url: try #require(URL(string: gateway.adminURL + path)))
            request.httpMethod = method
            request.httpShouldHandleCookies = false
            if let form {
                request.httpBody = Data(form.utf8)
                request.setValue("application/x-www-form-urlencoded", forHTTPHeaderField: "Content-Type")
            }
            if let cookie { request.setValue("sluice_console=\(cookie)", forHTTPHeaderField: "Cookie") }
            for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
            let (data, response) = try await URLSession.shared.data(for: request, delegate: NoRedirections())
            let http = try #require(response as? HTTPURLResponse)
            let all = http.allHeaderFields.map { ("\($0.key)".lowercased(), "\($0.value)") }
            return (http.statusCode, Dictionary(all) { $1 }, String(decoding: data, as: UTF8.self))
        }

        func logIn(_ token: String, _ fields: [String: String] = [:]) async throws -> (status: Int, fields: [String: String], text: String)
        {
            try await ask(
                "POST", "/console/login", form: "token=\(token)", ["Origin": gateway.adminURL].merging(fields) { $1 })
        }
    }

    private final class NoRedirections: NSObject, URLSessionTaskDelegate, Sendable {
        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest: URLRequest,
            completionHandler: @escaping (URLRequest?) -> Void
        ) { completionHandler(nil) }
    }

    private static func value(of cookie: String?) -> String? {
        cookie?.prefixMatch(of: /sluice_console=([^;]+);/).map { String($0.1) }
    }

    @Test func `takes a token, gives a cookie for the console alone, and ends with the logout`() async throws {
        try await GuardedGateway.with { gateway in
            let browser = Browser(gateway: gateway)
            for path in ["/console", "/console/why", "/console/explain", "/console/audit"] {
                let away = try await browser.ask("GET", path)
                #expect(away.status == 303 && away.fields["location"] == "/console/login", "\(path)")
            }
            let form = try await browser.ask("GET", "/console/login")
            #expect(form.status == 200 && form.fields["referrer-policy"] == "same-origin")
            #expect(try PageOfConsole(form.text).elements("input").contains { $0["type"] == "password" && $0["name"] == "token" })
            let wrong = try await browser.logIn("x")
            #expect(wrong.status == 401 && wrong.fields["set-cookie"] == nil)
            #expect(try PageOfConsole(wrong.text).source.contains("admin-unauthorized"))

            let login = try await browser.logIn(GuardedGateway.read)
            #expect(login.status == 303 && login.fields["location"] == "/console")
            let said = try #require(login.fields["set-cookie"])
            for attribute in ["HttpOnly", "SameSite=Strict", "Path=/console", "Max-Age=\(Limits.consoleSessionSeconds)"] {
                #expect(said.contains("; \(attribute)"), "\(said)")
            }
            #expect(!said.contains("Secure") && !said.contains(GuardedGateway.read))
            let cookie = try #require(Self.value(of: said))
            for path in ["/console", "/console/why", "/console/audit"] {
                #expect(try await browser.ask("GET", path, cookie: cookie).status == 200, "\(path)")
            }
            #expect(try await browser.ask("GET", "/admin/v1/users", cookie: cookie).status == 401)
            #expect(try await browser.ask("POST", "/admin/v1/quarantine/release", cookie: cookie).status == 401)
            #expect(try await browser.ask("GET", "/console", cookie: cookie + "0").status == 303)

            let bye = try await browser.ask("POST", "/console/logout", form: "", cookie: cookie, ["Origin": gateway.adminURL])
            #expect(bye.status == 303 && bye.fields["set-cookie"]?.contains("Max-Age=0") == true)
            #expect(try await browser.ask("GET", "/console", cookie: cookie).status == 303)
        }
    }

    @Test func `marks the cookie Secure behind TLS, and takes no form of another site`() async throws {
        try await GuardedGateway.with { gateway in
            let browser = Browser(gateway: gateway)
            let login = try await browser.logIn(GuardedGateway.change, ["X-Forwarded-Proto": "https"])
            #expect(login.fields["set-cookie"]?.hasSuffix("; Secure") == true, "\(login.fields)")
            let cookie = try #require(Self.value(of: login.fields["set-cookie"]))
            for path in ["/console/login", "/console/logout"] {
                let foreign = try await browser.ask(
                    "POST", path, form: "token=\(GuardedGateway.change)", cookie: cookie, ["Origin": "https://evil.example"])
                #expect(foreign.status == 403, "\(path)")
            }
            #expect(try await browser.ask("GET", "/console", cookie: cookie).status == 200)
        }
    }

    @Test func `shows changes on a page of its own`() async throws {
        try await RunningGateway.with { gateway in
            let user = try await gateway.createUser("<b>ann@example.com")
            let page = try await gateway.console("/console/audit").page
            #expect(page.text("audit").contains("loopback") && page.text("audit").contains("user \(user)"), "\(page.source)")
            #expect(page.text("audit").contains("<b>ann@example.com") && !page.source.contains("<b>"))
        }
    }
}
