import GatewayTestSupport
import SluiceCore
import SluiceGateway
import Testing

@Suite(.timeLimit(.minutes(5))) struct `The login to the console` {
    @Test func `takes a token, gives a cookie for the console alone, and ends with the logout`() async throws {
        try await GuardedGateway.with { gateway in
            let browser = BrowserOfConsole(gateway: gateway)
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
            let cookie = try #require(BrowserOfConsole.value(of: said))
            for path in ["/console", "/console/why", "/console/audit"] {
                #expect(try await browser.ask("GET", path, cookie: cookie).status == 200, "\(path)")
            }
            #expect(try await browser.ask("GET", "/admin/v1/users", cookie: cookie).status == 401)
            #expect(try await browser.ask("POST", "/admin/v1/quarantine/release", cookie: cookie).status == 401)
            #expect(try await browser.ask("GET", "/console", cookie: cookie + "0").status == 303)

            let bye = try await browser.ask("POST", "/console/logout", cookie: cookie, ["Origin": gateway.adminURL])
            #expect(bye.status == 303 && bye.fields["set-cookie"]?.contains("Max-Age=0") == true)
            #expect(try await browser.ask("GET", "/console", cookie: cookie).status == 303)
        }
    }

    @Test func `marks the cookie Secure behind TLS, and takes no form of another site`() async throws {
        try await GuardedGateway.with { gateway in
            let browser = BrowserOfConsole(gateway: gateway)
            let login = try await browser.logIn(GuardedGateway.change, ["X-Forwarded-Proto": "https"])
            #expect(login.fields["set-cookie"]?.hasSuffix("; Secure") == true, "\(login.fields)")
            let cookie = try #require(BrowserOfConsole.value(of: login.fields["set-cookie"]))
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
