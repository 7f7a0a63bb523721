package import SluiceCore

/// The address of a mailbox that a mail can be sent to: `local@domain`, in characters that SMTP needs no quotes for.
///
/// A name without `@` may be that of an account, but is no mailbox.
package struct MailAddress: Hashable, Sendable {
    package let text: String

    /// - Throws: `invalidEmail` for a text that is no such address.
    package init(_ text: String) throws(SluiceError) {
        let parts = text.split(separator: "@", omittingEmptySubsequences: false)
        guard text.utf8.count <= Limits.mailAddressBytes, parts.count == 2, parts.allSatisfy({ !$0.isEmpty }),
            text.unicodeScalars.allSatisfy(Self.isPlain)
        else {
            throw SluiceError(
                .invalidEmail, "No mail can be sent to '\(String(text.unicodeScalars.prefix(64)))'.",
                fix: "Use an address such as name@example.com.")
        }
        self.text = text
    }

    /// The domain behind the `@`.
    package var domain: Substring { text.split(separator: "@").last ?? "" }

    /// `false` for what has a meaning in a header or a command of SMTP, such as an angle bracket, a comma or a line end.
    private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        guard scalar.isASCII else { return !scalar.changesOtherText && !scalar.properties.isWhitespace }
        return scalar.value > 0x20 && scalar.value < 0x7F && !"<>()[]\\,;:\"".unicodeScalars.contains(scalar)
    }
}

/// A mail with one recipient, as text and perhaps also as HTML.
package struct Mail: Hashable, Sendable {
    package let recipient: MailAddress
    package let subject: String
    /// Lines with `\n` between them.
    package let text: String
    /// The same as HTML, for mail programs that show it; nil for the text alone.
    package let html: String?

    /// - Throws: `mailFailed` for a subject with a control character, or one over `Limits.mailSubjectCharacters`.
    package init(to recipient: MailAddress, subject: String, text: String, html: String? = nil) throws(SluiceError) {
        guard Mail.isSubject(subject) else {
            throw SluiceError(
                .mailFailed, "The subject of a mail has \(subject.count) characters, or a control character.",
                fix: "Use at most \(Limits.mailSubjectCharacters) characters in one line.")
        }
        self.recipient = recipient
        self.subject = subject
        self.text = text
        self.html = html
    }

    /// `true` for a subject that a mail may have. A line end in it would begin another header.
    package static func isSubject(_ text: String) -> Bool {
        text.count <= Limits.mailSubjectCharacters
            && text.unicodeScalars.allSatisfy { ![.control, .lineSeparator, .paragraphSeparator].contains($0.properties.generalCategory) }
    }
}

/// Sends mails, as the port of accounts.
package protocol Mailer: Sendable {
    /// Accepts a mail, and sends it later. Returns at once. If too many mails wait, this one is dropped and counted.
    func send(_ mail: Mail)
}
