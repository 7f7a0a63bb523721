import Foundation
import GatewayTestSupport
import Logging
import MailTestSupport
import SluiceCore
import SluiceGateway
import SluiceSDK
import SluiceValues
import TestSupport
import Testing

/// A gateway that sends mails through a real SMTP server, and an app that uses it by the SDK.
@Suite(.timeLimit(.minutes(3))) struct `A gateway with a mail server` {
    private static func files(_ server: TestMailServer, config: String, _ more: [String: String]) -> [String: String] {
        let url = "smtp://localhost:\(server.port)"
        return ShopApp.files.merging([
            "auth/providers.json": #"{"local-userpass": {"type": "local-userpass", "disabled": false, "config": {\#(config)}}}"#,
            "secrets.json": #"{"smtp": "pass word"}"#,
            "sluice.json": """
            {"mail": {"url": "\(url)", "user": "shop", "password": "smtp", "from": "shop@example.com", "ca_file": "\(server.certificate)"}}
            """,
        ]) { $1 }.merging(more) { $1 }
    }

    private static func with(
        config: String, more: [String: String] = [:], logger: Logging.Logger? = nil,
        _ body: @escaping @Sendable (RunningGateway, TestMailServer, App) async throws -> Void
    ) async throws {
        var options = TestMailServer.Options()
        (options.credentials, options.hasTLS) = (("shop", "pass word"), true)
        try await TestMailServer.with(options) { server in
            try await RunningGateway.deploy { deployment in
                try await deployment.run(files(server, config: config, more), logger: logger) { gateway in
                    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("mail-app-\(UUID().uuidString)")
                    defer { try? FileManager.default.removeItem(at: folder) }
                    try await body(
                        gateway, server,
                        App(id: gateway.app, configuration: AppConfiguration(baseURL: gateway.url, storageDirectory: folder)))
                }
            }
        }
    }

    /// The URL in a mail, and its token.
    private static func link(_ mail: TestMailServer.Received) throws -> (url: URL, token: String, id: String) {
        let line = try #require(mail.text.split(separator: "\n").first { $0.contains("?token=") }, "\(mail.text)")
        let items = try #require(URLComponents(string: String(line))?.queryItems)
        return (
            try #require(URL(string: String(line))), try #require(items.first { $0.name == "token" }?.value),
            try #require(items.first { $0.name == "tokenId" }?.value)
        )
    }

    @Test(arguments: PageVisit.available) func `registers, confirms, logs in, forgets and sets a new password`(
        visit: PageVisit
    ) async throws {
        try await Self.with(config: #""autoConfirm": false, "confirmEmailSubject": "Welcome!""#) { gateway, server, app in
            try await visit.with { visitor in try await Self.goThrough(gateway, server, app, visitor) }
        }
    }

    private static let ann = "ann@example.com"

    private static func goThrough(
        _ gateway: RunningGateway, _ server: TestMailServer, _ app: App, _ visitor: any PageVisitor
    ) async throws {
        try await app.emailPasswordAuth.registerUser(email: ann, password: "secret-1")
        let early = await #expect(throws: AppError.self) {
            try await app.login(credentials: .emailPassword(email: ann, password: "secret-1"))
        }
        #expect(early?.code == .authError && early?.message.contains("confirmation required") == true)
        try await confirm(try #require(try await server.mails(1).first), gateway, visitor)
        let user = try await app.login(credentials: .emailPassword(email: ann, password: "secret-1"))
        let login = try await gateway.login(ann, password: "secret-1").json

        try await app.emailPasswordAuth.sendResetPasswordEmail(ann)
        try await reset(try #require(try await server.mails(2).last), visitor)
        let old = await #expect(throws: AppError.self) {
            try await app.login(credentials: .emailPassword(email: ann, password: "secret-1"))
        }
        #expect(old?.code == .invalidPassword)
        let ended = try await gateway.request("POST", "/api/client/v2.0/auth/session", token: login["refresh_token"]?.string)
        #expect(ended.status == 401 && ended.json["error_code"] == "InvalidSession")
        #expect(try await app.login(credentials: .emailPassword(email: ann, password: "secret-2")).id == user.id)
        try await gateway.untilMetric(#"sluice_mails_total{result="sent"}"#, is: 2)
    }

    private static func confirm(
        _ mail: TestMailServer.Received, _ gateway: RunningGateway, _ visitor: any PageVisitor
    ) async throws {
        #expect(mail.to == [ann] && mail.tls && mail.authenticated && mail.headers["Subject"] == "Welcome!")
        let link = try link(mail)
        #expect(link.url.absoluteString.hasPrefix("\(gateway.url)/api/client/v2.0/app/shop/pages/confirm?token="))
        let form = try await visitor.open(link.url)
        #expect(form.status == 200 && form.page.text(of: "h1") == "Confirm your e-mail address for shop")
        form.checkAccessibility()
        #expect(try await gateway.count("SELECT count(*) FROM sluice.pending_user") == 1, "to open the page confirms nothing")
        let confirmed = try await visitor.submit("Confirm the address", [:])
        #expect(confirmed.status == 200 && confirmed.page.text(of: "h1") == "Your e-mail address is confirmed")
        confirmed.checkAccessibility()
        let used = try await visitor.open(link.url)
        let again = try await visitor.submit("Confirm the address", [:])
        #expect(used.status == 200 && again.status == 400 && again.page.text(of: "h1") == "This link is not valid")
        again.checkAccessibility()
    }

    private static func reset(_ mail: TestMailServer.Received, _ visitor: any PageVisitor) async throws {
        let form = try await visitor.open(try link(mail).url)
        #expect(form.status == 200 && form.page.inputs.map(\.label) == ["New password", "The same password again"])
        form.checkAccessibility()
        func submit(_ first: String, _ second: String) async throws -> VisitedPage {
            try await visitor.submit("Set the password", ["New password": first, "The same password again": second])
        }
        let differing = try await submit("secret-2", "secret-3")
        #expect(differing.status == 400 && differing.page.text(of: "p").contains("The two passwords differ."))
        differing.checkAccessibility()
        let done = try await submit("secret-2", "secret-2")
        #expect(done.status == 200 && done.page.text(of: "h1") == "Your password is set")
        done.checkAccessibility()
    }

    @Test func `sends HTML beside the text if the app has a template`() async throws {
        let html = #"<h1>{{app}}</h1><p>Grüße an {{email}}</p><a href="{{link}}">Confirm</a>"#
        let config = #""autoConfirm": false"#
        try await Self.with(config: config, more: ["mail/confirm.html": html]) { gateway, server, app in
            let ann = "ann&co'@example.com"
            try await app.emailPasswordAuth.registerUser(email: ann, password: "secret-1")
            let mail = try #require(try await server.mails(1).first)
            #expect(mail.parts == ["multipart/alternative", "text/plain", "text/html"] && mail.defects.isEmpty)
            let link = try Self.link(mail)
            let escaped = link.url.absoluteString.replacing("&", with: "&amp;")
            #expect(
                mail.html == #"<h1>shop</h1><p>Grüße an ann&amp;co&#39;@example.com</p><a href="\#(escaped)">Confirm</a>"#)
            #expect(mail.text.contains(ann))
            try await app.emailPasswordAuth.confirmUser(link.token, tokenId: link.id)
            try await app.emailPasswordAuth.sendResetPasswordEmail(ann)
            let reset = try #require(try await server.mails(2).last)
            #expect(reset.parts == ["text/plain"] && reset.html == nil && reset.defects.isEmpty)
        }
    }

    @Test func `says at its start that links need a public address, and that a function has no service`() async throws {
        let log = LinesOfLog()
        let config = #""autoConfirm": false, "runResetFunction": true, "resetFunctionName": "setAnew""#
        try await Self.with(config: config, logger: Logging.Logger(label: "test") { _ in log }) { gateway, _, app in
            await log.wait(for: "Links in mails lead to the address of the client port", about: gateway.url)
            await log.wait(for: "cannot be called", about: "setAnew")
            try await app.emailPasswordAuth.registerUser(email: "ann@example.com", password: "secret-1")
            let error = await #expect(throws: AppError.self) { try await app.emailPasswordAuth.sendResetPasswordEmail("ann@example.com") }
            #expect(error?.code == .notCallable)
        }
    }

    @Test func `sends links to the app's own pages, whose tokens the SDK uses`() async throws {
        let pages = #""emailConfirmationUrl": "https://shop.example.com/confirm", "resetPasswordUrl": "https://shop.example.com/reset""#
        try await Self.with(config: pages) { gateway, server, app in
            let (ann, auth) = ("ann@example.com", app.emailPasswordAuth)
            try await auth.registerUser(email: ann, password: "secret-1")
            try await auth.resendConfirmationEmail(ann)
            try await auth.resendConfirmationEmail("nobody@example.com")
            let links = try await server.mails(2).map(Self.link)
            #expect(links.allSatisfy { $0.url.absoluteString.hasPrefix("https://shop.example.com/confirm?token=") })
            let pending = try await gateway.request("GET", "/admin/v1/pending_users", admin: true).json
            #expect(pending["users"]?.array?.count == 1 && pending["users"]?.array?.first?["email"] == .string(ann))
            try await auth.confirmUser(links[1].token, tokenId: links[1].id)
            let again = await #expect(throws: AppError.self) { try await auth.confirmUser(links[0].token, tokenId: links[0].id) }
            #expect(again?.httpStatusCode == 400)
            let confirmed = await #expect(throws: AppError.self) { try await auth.resendConfirmationEmail(ann) }
            #expect(confirmed?.code == .userAlreadyConfirmed)
            let custom = await #expect(throws: AppError.self) { try await auth.retryCustomConfirmation(ann) }
            #expect(custom?.code == .notCallable)
            try await auth.sendResetPasswordEmail(ann)
            let reset = try Self.link(try #require(try await server.mails(3).last))
            try await auth.resetPassword(to: "secret-2", token: reset.token, tokenId: reset.id)
            _ = try await app.login(credentials: .emailPassword(email: ann, password: "secret-2"))
        }
    }
}
