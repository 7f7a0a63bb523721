import GatewayTestSupport
import MailTestSupport
import SluiceCore
import SluiceGateway
import SluiceValues
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct `The console's page of pending users` {
    private static let page = "/console/pending"

    /// A gateway with a mail server, tokens, and a user who is pending.
    private static func with(
        _ body: @escaping @Sendable (RunningGateway, BrowserOfConsole, TestMailServer) async throws -> Void
    ) async throws {
        try await TestMailServer.with { server in
            try await RunningGateway.deploy { deployment in
                var configuration = try GuardedGateway.configuration(deployment.conninfo)
                configuration.app = try ShopApp.configuration(files: [
                    "auth/providers.json":
                        #"{"local-userpass": {"type": "local-userpass", "disabled": false, "config": {"autoConfirm": false}}}"#,
                    "sluice.json": """
                    {"mail": {"url": "smtp://127.0.0.1:\(server.port)", "from": "shop@example.com", "allow_plaintext": true}}
                    """,
                ])
                try await RunningGateway.run(configuration) { gateway in
                    let answer = try await gateway.request(
                        "POST", "/api/client/v2.0/app/shop/auth/providers/local-userpass/register",
                        #"{"email": "ann@example.com", "password": "secret-1"}"#)
                    try #require(answer.status == 201)
                    _ = try await server.mails(1)
                    try await body(gateway, BrowserOfConsole(gateway: gateway), server)
                }
            }
        }
    }

    private static func id(_ gateway: RunningGateway, _ email: String = "ann@example.com") async throws -> String {
        try #require(try await gateway.texts("SELECT id FROM sluice.pending_user WHERE email = '\(email)'").first)
    }

    private static func cookie(_ browser: BrowserOfConsole, _ token: String) async throws -> String {
        try #require(BrowserOfConsole.value(of: try await browser.logIn(token).fields["set-cookie"]))
    }

    @Test func `lists address, time and expiry, a page at a time, and nothing in them is markup`() async throws {
        try await Self.with { gateway, browser, _ in
            try await gateway.sql(
                """
                INSERT INTO sluice.pending_user (id, email, created_at, expires_at)
                SELECT lpad(i::text, 24, '0'), '<b>' || i || '@example.com', '2026-11-29T10:00:00Z', '2026-12-06T10:00:00Z'
                FROM generate_series(1, 60) i
                """)
            let cookie = try await Self.cookie(browser, GuardedGateway.read)
            let answer = try await browser.ask("GET", Self.page, cookie: cookie)
            let first = try PageOfConsole(answer.text)
            #expect(answer.status == 200 && answer.fields["referrer-policy"] == "same-origin")
            #expect(first.rows.count == 51 && !first.source.contains("<b>"))
            #expect(
                first.row("<b>1@example.com") == [
                    "<b>1@example.com", "000000000000000000000001", "2026-11-29T10:00:00Z", "2026-12-06T10:00:00Z",
                ])
            // The role `read` has no buttons.
            #expect(first.elements("button").isEmpty)
            let next = try #require(first.elements("a").compactMap { $0["href"] }.first { $0.contains("?after=") })
            let second = try PageOfConsole(try await browser.ask("GET", next, cookie: cookie).text)
            #expect(second.rows.count == 12 && second.rows.last?.first == "ann@example.com")
            #expect(!second.elements("a").contains { $0["href"]?.contains("?after=") == true })
            let list = try await gateway.request("GET", "/admin/v1/pending_users?limit=1", admin: true, token: GuardedGateway.read).json
            #expect(list["users"]?.array?.first?["registered"]?.int == 1_795_946_400 && list["next"] == "000000000000000000000001")
        }
    }

    @Test func `confirms, reminds and removes, and the audit log has each`() async throws {
        try await Self.with { gateway, browser, server in
            let (id, cookie) = (try await Self.id(gateway), try await Self.cookie(browser, GuardedGateway.change))
            let page = try PageOfConsole(try await browser.ask("GET", Self.page, cookie: cookie).text)
            #expect(page.elements("form").compactMap { $0["action"] } == ["confirm", "send", "delete"].map { "\(Self.page)/\(id)/\($0)" })
            #expect(page.elements("button").allSatisfy { $0["aria-label"]?.hasSuffix(": ann@example.com") == true })
            let own = ["Origin": gateway.adminURL]
            func post(_ change: String, _ id: String, _ fields: [String: String]) async throws -> BrowserOfConsole.Answer {
                try await browser.ask("POST", "\(Self.page)/\(id)/\(change)", cookie: cookie, fields)
            }

            let sent = try await post("send", id, own)
            #expect(sent.status == 303 && sent.fields["location"] == "\(Self.page)?done=send")
            let told = try PageOfConsole(try await browser.ask("GET", "\(Self.page)?done=send", cookie: cookie).text)
            #expect(told.source.contains("The user gets another mail"))
            #expect(try await server.mails(2).last?.to == ["ann@example.com"])

            let confirmed = try await post("confirm", id, own)
            #expect(confirmed.status == 303)
            #expect(try await gateway.login("ann@example.com", password: "secret-1").status == 200)
            let again = try await post("confirm", id, own)
            let failure = try PageOfConsole(again.text)
            #expect(again.status == 404 && failure.source.contains("does not exist"))

            try await gateway.sql(
                "INSERT INTO sluice.pending_user (id, email, expires_at) VALUES ('bob', 'bob@example.com', now() + interval '1 day')")
            #expect(try await post("delete", "bob", own).status == 303)
            #expect(try await gateway.count("SELECT count(*) FROM sluice.pending_user") == 0)
            let actions = try await gateway.texts("SELECT actor || ' ' || action || ' ' || subject FROM sluice.admin_audit ORDER BY id")
            #expect(
                actions == [
                    "token ops POST \(Self.page)/\(id)/send pending user \(id)", "token ops POST \(Self.page)/\(id)/confirm user \(id)",
                    "token ops POST \(Self.page)/bob/delete pending user bob",
                ])
            #expect(try await gateway.count("SELECT count(*) FROM sluice.admin_audit WHERE before::text LIKE '%scrypt%'") == 0)
        }
    }

    @Test func `takes no form of another site, of a reader, or without a login`() async throws {
        try await Self.with { gateway, browser, server in
            let id = try await Self.id(gateway)
            let own = ["Origin": gateway.adminURL]
            let (writer, reader) = (
                try await Self.cookie(browser, GuardedGateway.change), try await Self.cookie(browser, GuardedGateway.read)
            )
            for change in ["confirm", "send", "delete"] {
                let path = "\(Self.page)/\(id)/\(change)"
                for origin in ["https://evil.example", "null", "http://127.0.0.1:1"] {
                    #expect(try await browser.ask("POST", path, cookie: writer, ["Origin": origin]).status == 403, "\(change) \(origin)")
                }
                #expect(try await browser.ask("POST", path, cookie: writer, ["Sec-Fetch-Site": "cross-site"]).status == 403)
                #expect(try await browser.ask("POST", path, cookie: reader, own).status == 403)
                let stranger = try await browser.ask("POST", path, own)
                #expect(stranger.status == 303 && stranger.fields["location"] == "/console/login")
                #expect(try await browser.ask("GET", path, cookie: writer).status == 404)
            }
            #expect(try await gateway.count("SELECT count(*) FROM sluice.pending_user") == 1)
            #expect(try await gateway.count("SELECT count(*) FROM sluice.admin_audit") == 0 && server.mails.count == 1)
        }
    }
}
