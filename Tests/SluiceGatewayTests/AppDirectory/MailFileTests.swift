import Foundation
import SluiceCore
import SluiceGateway
import SluiceMail
import Testing

/// The mail server, the texts of mails and the settings of `local-userpass` in an app directory.
@Suite struct `Mails in an app directory` {
    private static let mail = #""url": "smtp://mail.example.com", "from": "no-reply@example.com""#

    private static func files(
        mail: String? = mail, providers: String = "", config: String = #""autoConfirm": false"#, texts: [String: String] = [:]
    ) -> [String: String] {
        var files = AppFixture.files.merging(texts) { $1 }
        files["auth/providers.json"] = #"{"local-userpass": {"type": "local-userpass", "disabled": false, "config": {\#(config)}}}"#
        files["secrets.json"] = #"{"smtp": "pass word"}"#
        let sections = [mail.map { #""mail": {\#($0)}"# }, providers.isEmpty ? nil : #""providers": {"local-userpass": {\#(providers)}}"#]
        files["sluice.json"] = "{\n\(sections.compactMap(\.self).joined(separator: ",\n"))\n}"
        return files
    }

    private static func login(_ files: [String: String]) throws -> PasswordLogin {
        try AppDirectory.read(files: files).users.passwordLogin
    }

    @Test func `have a server, a sender and texts`() throws {
        let text = "Welcome to {{app}}, {{ email }}!\n{{link}}\n"
        let server = Self.mail + #", "from_name": "The Shop", "user": "shop", "password": "smtp", "ca_file": "/etc/ca.pem""#
        let app = try AppDirectory.read(files: Self.files(mail: server, texts: ["mail/confirm.txt": text]))
        let mail = try #require(app.mail)
        #expect(mail.url.text == "smtp://mail.example.com:587" && mail.sender.name == "The Shop" && !mail.allowsPlaintext)
        #expect(mail.user == "shop" && mail.passwordSecret == "smtp" && mail.authorities == "/etc/ca.pem")
        #expect(mail.confirmation.text.text([.app: "Shop", .email: "a@b.c", .link: "https://l"]) == "Welcome to Shop, a@b.c!\nhttps://l\n")
        #expect(mail.reset.text.text([.link: "https://l"]).contains("\nhttps://l\n"), "the default")
        #expect(!app.notes.contains { $0.message.contains("mails") })
    }

    @Test func `have HTML beside a text, with escaped values`() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("mail-files-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let html = #"<p>{{app}}</p><a href="{{link}}">{{email}}</a>"#
        for (path, text) in Self.files(texts: ["mail/confirm.html": html]) {
            let file = folder.appendingPathComponent(path)
            try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file)
        }
        let mail = try #require(try AppDirectory.load(at: folder.path).mail)
        #expect(mail.reset.html == nil)
        let values: [MailTemplate.Value: String] = [.app: "<Shop> & 'Co'", .link: #"https://l?a=1&b="2""#, .email: "a@b.c"]
        #expect(
            mail.confirmation.html?.html(values)
                == #"<p>&lt;Shop&gt; &amp; &#39;Co&#39;</p><a href="https://l?a=1&amp;b=&quot;2&quot;">a@b.c</a>"#)
        #expect(mail.confirmation.text.text(values).contains("\nhttps://l?a=1&b=\"2\"\n"), "the default text, as it is")
    }

    struct Fault: Sendable, CustomTestStringConvertible {
        var mail: String
        var place: String
        var message: String
        var fix: String
        var code: ErrorCode = .configInvalid
        var testDescription: String { mail }
    }

    static let faults: [Fault] = [
        Fault(mail: #""url": "mail.example.com", "from": "a@b.c""#, place: "sluice.json:2:10", message: "is not smtp://", fix: "smtp://"),
        Fault(mail: #""url": "smtp://m", "from": "nobody""#, place: "sluice.json:2:29", message: "'nobody'", fix: "name@example.com"),
        Fault(mail: #""url": "smtp://m""#, place: "sluice.json:2:1", message: "'from' is missing", fix: "Add", code: .configMissing),
        Fault(
            mail: mail + #", "usr": "shop""#, place: "sluice.json:2:76", message: "'usr' is not a known key", fix: "'user'",
            code: .configUnknownKey),
        Fault(
            mail: mail + #", "user": "shop""#, place: "sluice.json:2:1", message: "'password' is missing", fix: "Add",
            code: .configMissing),
        Fault(
            mail: mail + #", "password": "smtp""#, place: "sluice.json:2:76", message: "has no 'mail.user'", fix: "user",
            code: .configMissing),
        Fault(
            mail: mail + #", "user": "shop", "password": "smpt""#, place: "sluice.json:2:92", message: "no secret 'smpt'",
            fix: "environment",
            code: .configMissing),
        Fault(
            mail: mail + #", "user": "shop", "password": "smtp", "allow_plaintext": true"#, place: "sluice.json:2:76",
            message: "without TLS", fix: "Remove"),
        Fault(mail: mail + #", "from_name": "a\nb""#, place: "sluice.json:2:76", message: "control character", fix: "one line"),
    ]

    @Test(arguments: faults) func `with a mistake are named with its place and fix`(fault: Fault) {
        let problems = AppFixture.problems(of: Self.files(mail: fault.mail))
        let found = problems.first { $0.place == fault.place && $0.message.contains(fault.message) }
        #expect(found?.code == fault.code && found?.fix.contains(fault.fix) == true, "\(problems)")
    }

    @Test(arguments: [
        ("{{link}}\n\n{{lnk}}", "mail/reset.txt:3:1", "no value 'lnk'", "{{link}}"),
        ("{{link}} {{ }}", "mail/reset.txt:1:1", "no value", "{{app}}"),
        ("{{link}}\n{{app\n}}", "mail/reset.txt:2:1", "no value 'app'", "{{app}}"), ("Hello", "mail/reset.txt:1:1", "no {{link}}", "Add"),
        ("<p>{{link}}</p>\n\n{{lnk}}", "mail/reset.html:3:1", "no value 'lnk'", "{{link}}"),
        ("<p>Hello</p>", "mail/confirm.html:1:1", "no {{link}}", "href"),
    ])
    func `with a mistake in a text are named with its line`(text: String, place: String, message: String, fix: String) {
        let file = String(place.prefix { $0 != ":" })
        let problems = AppFixture.problems(of: Self.files(texts: [file: text]))
        let found = problems.first { $0.place == place && $0.message.contains(message) }
        #expect(found?.fix.contains(fix) == true, "\(problems)")
    }

    @Test func `have texts of a bounded size, with known names`() {
        for file in ["mail/reset.txt", "mail/reset.html"] {
            let long = AppFixture.problems(of: Self.files(texts: [file: String(repeating: "a", count: Limits.mailTemplateBytes + 1)]))
            #expect(long.map(\.place) == [file])
        }
        let misspelt = AppFixture.problems(of: Self.files(texts: ["mail/confirn.txt": ""]))
        #expect(misspelt.first?.fix == "Did you mean 'confirm.txt'?")
        #expect(AppFixture.problems(of: Self.files(texts: ["mail/notes.txt": "{{x}}"])).isEmpty)
    }

    // MARK: local-userpass

    @Test func `are chosen by the provider's settings`() throws {
        let automatic = try Self.login(Self.files(config: #""autoConfirm": true, "runConfirmationFunction": true"#))
        #expect(automatic.confirmation == .automatic && automatic.reset == .mail)
        let functions = try Self.login(
            Self.files(
                config: """
                    "runConfirmationFunction": true, "confirmationFunctionName": "c", "runResetFunction": true, "resetFunctionName": "r"
                    """))
        #expect(functions.confirmation == .function("c") && functions.reset == .function("r"))
        let pages = try Self.login(
            Self.files(
                config: """
                    "emailConfirmationUrl": "shop://confirm", "resetPasswordUrl": "https://shop.example.com/reset?a=b#top",
                    "confirmEmailSubject": "Bestätigen", "resetPasswordSubject": ""
                    """))
        #expect(pages.confirmation == .mail && pages.confirmPage == "shop://confirm")
        #expect(
            pages.resetPage == "https://shop.example.com/reset?a=b#top" && pages.confirmSubject == "Bestätigen" && pages.resetSubject == nil
        )
    }

    @Test func `lead to a page of the app, with the token before a fragment`() {
        #expect(
            AccountLink.url("https://a.example/reset?x=1#top", token: "t", id: "i") == "https://a.example/reset?x=1&token=t&tokenId=i#top")
        #expect(AccountLink.url("shop://confirm", token: "t", id: "i") == "shop://confirm?token=t&tokenId=i")
    }

    @Test(arguments: ["example.com/confirm", "https://", "javascript:alert(1)", "https://a b", "://a"])
    func `do not lead to what is no URL`(url: String) throws {
        let app = try AppDirectory.read(files: Self.files(config: #""emailConfirmationUrl": "\#(url)""#))
        #expect(app.users.passwordLogin.confirmPage == nil)
        #expect(app.notes.contains { $0.message.contains("is not a URL") && $0.kind == .unused })
    }

    @Test func `have subjects of a bounded length in one line`() {
        for subject in [String(repeating: "s", count: 257), #"a\r\nBcc: b@example.com"#] {
            let problems = AppFixture.problems(of: Self.files(config: #""confirmEmailSubject": "\#(subject)""#))
            #expect(problems.first?.message.contains("control character") == true, "\(problems)")
        }
    }

    @Test func `are asked for only if they are missing and the app needs them`() throws {
        func notes(_ config: String, mail: String? = nil) throws -> [String] {
            try AppDirectory.read(files: Self.files(mail: mail, config: config)).notes.filter { $0.file == "auth/providers.json" }.map(
                \.message)
        }
        #expect(try notes(#""autoConfirm": false"#) == ["No mails are sent: users of local-userpass are confirmed when they register."])
        #expect(
            try notes(#""autoConfirm": true, "resetPasswordUrl": "https://a.example""#)
                == ["No mails are sent: users of local-userpass cannot reset a password."])
        #expect(try notes(#""autoConfirm": true"#) == [])
        #expect(try notes(#""autoConfirm": false"#, mail: Self.mail) == [])
    }

    @Test func `stand beside a policy of passwords`() throws {
        let own = #""closed_registration": true, "minimum_password_length": 12, "refused_passwords_file": "/etc/list.txt""#
        let login = try Self.login(Self.files(providers: own))
        #expect(login.isRegistrationClosed && login.minimumLength == 12 && login.refusedPasswords == "/etc/list.txt")
        for (own, message) in [
            (#""minimum_password_length": 5"#, "5 is out of range"), (#""closed": true"#, "'closed' is not a known key"),
        ] {
            let problems = AppFixture.problems(of: Self.files(providers: own))
            #expect(
                problems.first?.place.hasPrefix("sluice.json:3:") == true && problems.first?.message.contains(message) == true,
                "\(problems)")
        }
    }
}
