import SluiceCore
import SluicePorts
import SluiceValues
import Testing

@testable import SluiceMail

@Suite struct `The text of a mail` {
    @Test(arguments: [
        "a@b.c\r\nBcc: x@example.com", "a@b.c\n", "a b@c.d", "<a@b.c>", "a@b@c", "name", "@b.c", "a@", "a,b@c.d", "a@b.c\u{0}",
        "a\u{202E}@b.c",
        "\"a\"@b.c", String(repeating: "a", count: 250) + "@b.cd",
    ])
    func `no address can begin another header or name a second recipient`(text: String) {
        let error = #expect(throws: SluiceError.self) { try MailAddress(text) }
        #expect(error?.code == .invalidEmail)
    }

    @Test(arguments: ["a\r\nBcc: x@example.com", "a\nb", "a\u{2028}b", "a\u{85}b", String(repeating: "s", count: 257)])
    func `no subject can begin another header`(subject: String) throws {
        let address = try MailAddress("ann@example.com")
        let error = #expect(throws: SluiceError.self) { try Mail(to: address, subject: subject, text: "") }
        #expect(error?.code == .mailFailed)
    }

    @Test func `headers have a form that every server reads`() throws {
        let sender = MailServer.Sender(address: try MailAddress("no-reply@example.com"), name: "Läden, e.V.")
        let mail = try Mail(to: try MailAddress("ann@example.org"), subject: String(repeating: "äöü€", count: 30), text: "Guten Tag\n.\n€")
        let text = String(decoding: MailText.encode(mail, from: sender, seconds: 1_709_210_096, id: "abc"), as: UTF8.self)
        let parts = text.split(separator: "\r\n\r\n", maxSplits: 1)
        #expect(parts[0].utf8.allSatisfy { $0 < 0x80 } && text.split(separator: "\r\n").allSatisfy { $0.utf8.count <= 76 })
        #expect(parts[0].hasPrefix("Date: Thu, 29 Feb 2024 12:34:56 +0000\r\n"))
        #expect(parts[0].contains("\r\nTo: <ann@example.org>\r\n") && parts[0].contains("\r\nMessage-ID: <abc@example.com>\r\n"))
        #expect(parts[0].contains("?= <no-reply@example.com>\r\n"), "a comma in a name would be a second address")
        let body = parts[1].replacing("\r\n", with: "")
        #expect(Base64.decode(body[...]).map { String(decoding: $0, as: UTF8.self) } == "Guten Tag\r\n.\r\n€")
    }

    @Test func `with HTML has both as parts, the text first`() throws {
        let sender = MailServer.Sender(address: try MailAddress("no-reply@example.com"))
        let html = "<p>Grüße</p>\n" + String(repeating: "<br>", count: 500)
        let mail = try Mail(to: try MailAddress("ann@example.org"), subject: "Hello", text: "Grüße\n--=_abc--", html: html)
        let text = String(decoding: MailText.encode(mail, from: sender, seconds: 0, id: "abc"), as: UTF8.self)
        #expect(text.contains("\r\nContent-Type: multipart/alternative; boundary=\"=_abc\"\r\n\r\n--=_abc\r\n") && text.hasSuffix("\r\n"))
        // As RFC 2046 splits it: the line end before a boundary belongs to it.
        let pieces = text.split(separator: "\r\n--=_abc", omittingEmptySubsequences: false)
        #expect(pieces.count == 4 && pieces.last == "--\r\n")
        let parts = pieces.dropFirst().dropLast().map { $0.split(separator: "\r\n\r\n", maxSplits: 1) }
        #expect(
            parts.map { $0[0] }
                == ["plain", "html"].map {
                    "\r\nContent-Type: text/\($0); charset=utf-8\r\nContent-Transfer-Encoding: base64"
                })
        let bodies = parts.map { Base64.decode($0[1].replacing("\r\n", with: "")[...]).map { String(decoding: $0, as: UTF8.self) } }
        #expect(bodies == ["Grüße\r\n--=_abc--", html.replacing("\n", with: "\r\n")])
        let lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        #expect(lines.dropLast().allSatisfy { $0.last == UInt8(ascii: "\r") && $0.count <= 77 })
    }

    @Test func `a plain subject stays readable`() throws {
        let sender = MailServer.Sender(address: try MailAddress("no-reply@example.com"))
        let mail = try Mail(to: try MailAddress("ann@example.org"), subject: "Reset your password", text: "")
        let text = String(decoding: MailText.encode(mail, from: sender, seconds: 0, id: "abc"), as: UTF8.self)
        #expect(text.contains("\r\nSubject: Reset your password\r\n") && text.contains("\r\nFrom: <no-reply@example.com>\r\n"))
        #expect(text.hasPrefix("Date: Thu, 01 Jan 1970 00:00:00 +0000\r\n"))
    }

    @Test(arguments: [
        ("smtp://mail.example.com", "smtp://mail.example.com:587"), ("SMTPS://mail.example.com/", "smtps://mail.example.com:465"),
        ("smtp://127.0.0.1:25", "smtp://127.0.0.1:25"), ("smtp://[::1]:25", "smtp://[::1]:25"),
    ])
    func `a URL without a port has the one of submission`(written: String, used: String) throws {
        #expect(try MailServerURL(written).text == used)
    }

    @Test(arguments: [
        "mail.example.com", "http://mail.example.com", "smtp://", "smtp://user:pw@mail.example.com", "smtp://mail.example.com/a",
        "smtp://mail.example.com:0", "smtp://mail.example.com:99999", "smtp://a b", "smtp://[::1", "smtp://mail\n.example.com",
    ])
    func `any other URL is refused`(written: String) {
        let error = #expect(throws: SluiceError.self) { try MailServerURL(written) }
        #expect(error?.code == .configInvalid)
    }
}
