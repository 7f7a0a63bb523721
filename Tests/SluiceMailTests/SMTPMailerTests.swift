import Logging
import MailTestSupport
import SluiceCore
import SluiceMail
import SluicePorts
import TestSupport
import Testing

/// Mails through a real SMTP server.
@Suite(.timeLimit(.minutes(2))) struct `A mailer` {
    private typealias Outcomes = Watched<[SMTPMailer.Outcome]>

    /// The system's environment, in which pauses are short.
    private struct Hurried: Environment {
        private let system = SystemEnvironment()

        func wallMilliseconds() -> Int64 { system.wallMilliseconds() }
        /// A thousand times as fast as time.
        func monotonicNanoseconds() -> UInt64 { system.monotonicNanoseconds() &* 1_000 }
        func random() -> UInt64 { system.random() }
        func sleep(nanoseconds: UInt64) async throws { try await system.sleep(nanoseconds: nanoseconds / 1_000) }
    }

    private static func sender() throws -> MailServer.Sender {
        MailServer.Sender(address: try MailAddress("no-reply@example.com"), name: "Example Shop")
    }

    private static func mail(_ name: String, _ subject: String = "Confirm") throws -> Mail {
        try Mail(to: try MailAddress("\(name)@example.org"), subject: subject, text: "The link:\nhttps://example.com/?token=a&tokenId=b\n")
    }

    /// Runs a mailer for as long as the body runs.
    private static func with(
        _ server: MailServer, deadlines: MailDeadlines = MailDeadlines(), environment: any Environment = SystemEnvironment(),
        _ body: @escaping @Sendable (SMTPMailer, Outcomes) async throws -> Void
    ) async throws {
        let outcomes = Outcomes([])
        let logger = Logger(label: "mail", factory: { _ in SwiftLogNoOpLogHandler() })
        let mailer = SMTPMailer(server, deadlines: deadlines, environment: environment, logger: logger) { outcome in
            outcomes.change { $0.append(outcome) }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await mailer.run() }
            try await body(mailer, outcomes)
            group.cancelAll()
        }
    }

    private static func plain(_ server: TestMailServer) throws -> MailServer {
        MailServer(url: try MailServerURL("smtp://127.0.0.1:\(server.port)"), sender: try sender(), allowsPlaintext: true)
    }

    @Test func `sends a mail as it was written`() async throws {
        try await TestMailServer.with { server in
            try await Self.with(Self.plain(server)) { mailer, outcomes in
                mailer.send(try Self.mail("ann", "Bestätigen Sie Ihre Adresse"))
                let mail = try #require(try await server.mails(1).first)
                #expect(mail.from == "no-reply@example.com" && mail.to == ["ann@example.org"] && !mail.tls)
                #expect(mail.headers["Subject"] == "Bestätigen Sie Ihre Adresse")
                #expect(mail.headers["From"] == "Example Shop <no-reply@example.com>" && mail.headers["To"] == "ann@example.org")
                #expect(mail.text == "The link:\nhttps://example.com/?token=a&tokenId=b\n")
                #expect(await outcomes.until { $0 == [.sent] })
            }
        }
    }

    @Test(arguments: [false, true]) func `logs in over TLS with a verified certificate`(isImplicit: Bool) async throws {
        var options = TestMailServer.Options()
        (options.credentials, options.hasTLS, options.isImplicit) = (("shop", "pass word"), true, isImplicit)
        try await TestMailServer.with(options) { server in
            let url = try MailServerURL("\(isImplicit ? "smtps" : "smtp")://localhost:\(server.port)")
            let right = MailServer(
                url: url, sender: try Self.sender(), credentials: .init(user: "shop", password: "pass word"),
                authorities: server.certificate)
            try await Self.with(right) { mailer, outcomes in
                mailer.send(try Self.mail("ann"))
                let mail = try #require(try await server.mails(1).first)
                #expect(mail.tls && mail.authenticated)
                #expect(await outcomes.until { $0 == [.sent] })
            }
            var wrong = right
            wrong.credentials?.password = "wrong"
            try await Self.with(wrong) { mailer, outcomes in
                mailer.send(try Self.mail("bob"))
                #expect(
                    await outcomes.until { $0 == [.deferred] },
                    "the server answers a wrong password with 535, which the operator can correct")
            }
            var distrusting = right
            distrusting.authorities = nil
            try await Self.with(distrusting) { mailer, outcomes in
                mailer.send(try Self.mail("bob"))
                #expect(await outcomes.until { $0 == [.deferred] }, "nothing vouches for the certificate")
            }
            #expect(server.mails.count == 1)
        }
    }

    @Test func `sends nothing to a server that does not offer TLS`() async throws {
        try await TestMailServer.with { server in
            var strict = try Self.plain(server)
            strict.allowsPlaintext = false
            try await Self.with(strict) { mailer, outcomes in
                mailer.send(try Self.mail("ann"))
                #expect(await outcomes.until { $0 == [.deferred] })
            }
            #expect(server.mails.isEmpty)
        }
    }

    @Test func `sends in plain text to no public address`() async throws {
        let server = MailServer(url: try MailServerURL("smtp://192.0.2.1:25"), sender: try Self.sender(), allowsPlaintext: true)
        var deadlines = MailDeadlines()
        deadlines.attempt = 3_600_000
        deadlines.connect = 3_600_000
        try await Self.with(server, deadlines: deadlines) { mailer, outcomes in
            mailer.send(try Self.mail("ann"))
            #expect(await outcomes.until { $0 == [.deferred] }, "no connection is tried, which would last")
        }
    }

    @Test func `repeats what a server defers, and gives up what it refuses`() async throws {
        var options = TestMailServer.Options()
        options.later = 2
        try await TestMailServer.with(options) { server in
            try await Self.with(Self.plain(server), environment: Hurried()) { mailer, outcomes in
                for name in ["later", "refused", "ann"] { mailer.send(try Self.mail(name)) }
                let mails = try await server.mails(2)
                #expect(mails.map(\.to) == [["ann@example.org"], ["later@example.org"]])
                #expect(Set(mails.compactMap { $0.headers["Message-ID"] }).count == 2)
                #expect(await outcomes.until { $0.count == 5 })
                #expect(outcomes.value.count { $0 == .deferred } == 2 && outcomes.value.count { $0 == .refused } == 1)
            }
        }
    }

    @Test func `repeats the mail that it has while the server refuses connections`() async throws {
        var options = TestMailServer.Options()
        options.closed = 2
        try await TestMailServer.with(options) { server in
            try await Self.with(Self.plain(server), environment: Hurried()) { mailer, outcomes in
                mailer.send(try Self.mail("ann"))
                #expect(try await server.mails(1).map(\.to) == [["ann@example.org"]])
                #expect(await outcomes.until { $0 == [.deferred, .deferred, .sent] })
            }
        }
    }

    @Test func `does not wait longer than its deadline for a server that hangs`() async throws {
        try await TestMailServer.with { server in
            var deadlines = MailDeadlines()
            deadlines.attempt = 500
            try await Self.with(Self.plain(server), deadlines: deadlines) { mailer, outcomes in
                mailer.send(try Self.mail("hang"))
                mailer.send(try Self.mail("ann"))
                #expect(try await server.mails(1).map(\.to) == [["ann@example.org"]])
                #expect(await outcomes.until { $0 == [.deferred, .sent] })
            }
        }
    }

    @Test func `ends at once although a server hangs`() async throws {
        try await TestMailServer.with { server in
            let began = ContinuousClock.now
            try await Self.with(Self.plain(server)) { mailer, _ in
                mailer.send(try Self.mail("ann"))
                _ = try await server.mails(1)
                mailer.send(try Self.mail("hang"))
            }
            #expect(ContinuousClock.now - began < .seconds(Limits.mailAttemptSeconds))
        }
    }
}
