import Foundation
import GatewayTestSupport
import SluiceCore
import SluiceGateway
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct `The login to the console` {
    /// A browser that follows no redirection and keeps no cookie by itself, as URLSession does.
    private struct Browser {
        typealias Answer = (status: Int, fields: [String: String], text: String)

        let gateway: RunningGateway

        func ask(
            _ method: String, _ path: String, form: String = "", cookie: String? = nil, _ fields: [String: String] = [:]
        ) async throws -> Answer {
            let address = try #require(URL(string: gateway.adminURL))
            let port = try #require(address.port)
            var head = "\(method) \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n"
            head += "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: \(form.utf8.count)\r\n"
            if let cookie { head += "Cookie: sluice_console=\(cookie)\r\n" }
            for (name, value) in fields { head += "\(name): \(value)\r\n" }
            let request = Array("\(head)\r\n\(form)".utf8)
            let bytes = try await LocalSocket.onThread {
                let socket = try LocalSocket(port: port, patience: 60)
                try socket.write(request)
                return try socket.readAll()
            }
            let answer = String(decoding: bytes, as: UTF8.self)
            let end = try #require(answer.range(of: "\r\n\r\n"), "\(answer)")
            let lines = answer[..<end.lowerBound].split(separator: "\r\n")
            let status = try #require(lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) })
            let pairs = lines.dropFirst().compactMap { line -> (String, String)? in
                guard let colon = line.firstIndex(of: ":") else { return nil }
                return (line[..<colon].lowercased(), line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces))
            }
            return (status, Dictionary(pairs) { $1 }, String(answer[end.upperBound...]))
        }

        func logIn(_ token: String, _ fields: [String: String] = [:]) async throws -> Answer {
            try await ask("POST", "/console/login", form: "token=\(token)", ["Origin": gateway.adminURL].merging(fields) { $1 })
        }
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

            let bye = try await browser.ask("POST", "/console/logout", cookie: cookie, ["Origin": gateway.adminURL])
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
