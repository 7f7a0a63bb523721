import SluicePorts
import SluiceValues

/// The text of a mail as SMTP transfers it (RFC 5322, RFC 2045 to 2047): header lines, an empty line, and the body in Base64.
///
/// A mail with HTML has two parts, `multipart/alternative` (RFC 2046, section 5.1.4). The text comes first, since mail programs show the
/// last part that they can.
///
/// Base64 carries every text through every server: no line is too long, and none begins with a dot.
enum MailText {
    /// The longest line of Base64, in characters.
    private static let lineCharacters = 76
    /// The bytes of UTF-8 in one encoded word. Its line has less than 76 characters, with the name of a header.
    private static let wordBytes = 39
    /// The bytes of a text that needs no encoded word.
    private static let plainBytes = 60

    /// - Parameters:
    ///   - seconds: The time of the mail, in seconds since 1970.
    ///   - id: A random text that no other mail has.
    static func encode(_ mail: Mail, from sender: MailServer.Sender, seconds: Int64, id: String) -> [UInt8] {
        let name = sender.name.isEmpty ? "" : "\(encoded(sender.name)) "
        let lines = [
            "Date: \(MailDate.text(seconds))", "From: \(name)<\(sender.address.text)>", "To: <\(mail.recipient.text)>",
            "Subject: \(encoded(mail.subject))", "Message-ID: <\(id)@\(sender.address.domain)>",
            // Vacation programs do not answer such a mail (RFC 3834).
            "Auto-Submitted: auto-generated", "MIME-Version: 1.0",
        ]
        return Array((lines + content(of: mail, id: id)).joined(separator: "\r\n").utf8)
    }

    /// Returns the lines from the content's own headers to the end of the mail.
    private static func content(of mail: Mail, id: String) -> [String] {
        let text = part("plain", mail.text)
        guard let html = mail.html else { return text }
        // Base64 has no "_", so no part contains the boundary. `id` keeps those of forwarded mails apart.
        let boundary = "=_\(id)"
        return ["Content-Type: multipart/alternative; boundary=\"\(boundary)\"", "", "--\(boundary)"]
            + closed(text, "--\(boundary)") + closed(part("html", html), "--\(boundary)--\r\n")
    }

    /// Returns a part with the line of the boundary behind it. The line end of the part's last line is the boundary's.
    private static func closed(_ part: [String], _ boundary: String) -> [String] { part.dropLast() + [(part.last ?? "") + boundary] }

    private static func part(_ subtype: String, _ text: String) -> [String] {
        ["Content-Type: text/\(subtype); charset=utf-8", "Content-Transfer-Encoding: base64", "", body(text)]
    }

    private static func body(_ text: String) -> String {
        let crlf = text.replacing("\r\n", with: "\n").replacing("\n", with: "\r\n")
        let digits = Array(Base64.encode(Array(crlf.utf8)).utf8)
        return stride(from: 0, to: digits.count, by: lineCharacters)
            .map { String(decoding: digits[$0..<min($0 + lineCharacters, digits.count)], as: UTF8.self) + "\r\n" }
            .joined()
    }

    /// Returns a text of a header: itself if it is plain ASCII, encoded words otherwise, each on a line of its own.
    private static func encoded(_ text: String) -> String {
        let isPlain = text.utf8.count <= plainBytes && text.utf8.allSatisfy { isHeaderCharacter($0) } && !text.contains("=?")
        return isPlain ? text : words(of: text).map { "=?utf-8?B?\(Base64.encode($0))?=" }.joined(separator: "\r\n ")
    }

    /// `true` for ASCII that has no meaning of its own in a name before an address.
    private static func isHeaderCharacter(_ byte: UInt8) -> Bool {
        (0x20..<0x7F).contains(byte) && !"()<>[]:;@\\,.\"".utf8.contains(byte)
    }

    /// Returns the text in pieces of at most `wordBytes`. A character is never cut.
    private static func words(of text: String) -> [[UInt8]] {
        var words: [[UInt8]] = [[]]
        for scalar in text.unicodeScalars {
            let bytes = Array(String(scalar).utf8)
            if words[words.count - 1].count + bytes.count > wordBytes { words.append([]) }
            words[words.count - 1] += bytes
        }
        return words
    }
}

/// The date of a mail in RFC 5322's form, in UTC.
enum MailDate {
    /// The days from the one of 1970-01-01.
    private static let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// - Parameter seconds: The time in seconds since 1970.
    static func text(_ seconds: Int64) -> String {
        let seconds = max(seconds, 0)
        let parts = Timestamp(seconds: seconds).iso8601.split { "-T:Z".contains($0) }
        guard parts.count == 6, let month = Int(parts[1]) else { return "" }
        let day = days[Int(seconds / 86_400 % 7)]
        return "\(day), \(parts[2]) \(months[month - 1]) \(parts[0]) \(parts[3]):\(parts[4]):\(parts[5]) +0000"
    }
}
