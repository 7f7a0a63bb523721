package import SluiceCore
package import SluicePorts

/// A mail server, and the sender of the mails that it relays.
package struct MailServer: Hashable, Sendable {
    package struct Credentials: Hashable, Sendable {
        package var user: String
        package var password: String

        package init(user: String, password: String) {
            self.user = user
            self.password = password
        }
    }

    /// The sender: an address and the name that mail programs show.
    package struct Sender: Hashable, Sendable {
        package var address: MailAddress
        package var name: String

        package init(address: MailAddress, name: String = "") {
            self.address = address
            self.name = name
        }
    }

    package var url: MailServerURL
    package var sender: Sender
    package var credentials: Credentials?
    /// The path of a PEM file with the authorities that may sign the server's certificate; nil for those of the system.
    package var authorities: String?
    /// `true` to use no TLS with an `smtp` URL. The server must then have a loopback, private or link-local address.
    package var allowsPlaintext: Bool

    package init(
        url: MailServerURL, sender: Sender, credentials: Credentials? = nil, authorities: String? = nil, allowsPlaintext: Bool = false
    ) {
        self.url = url
        self.sender = sender
        self.credentials = credentials
        self.authorities = authorities
        self.allowsPlaintext = allowsPlaintext
    }
}

/// The URL of a mail server: `smtp://host:port` or `smtps://host:port`.
///
/// With `smtp`, the connection changes to TLS by STARTTLS before the log-in. With `smtps`, it begins with TLS.
package struct MailServerURL: Hashable, Sendable {
    /// The URL with its port.
    package let text: String
    package let isTLSFromStart: Bool

    /// The ports of message submission (RFC 8314).
    private static let ports = (smtp: 587, smtps: 465)

    /// - Throws: `configInvalid` for any other URL, such as one with a path or a password.
    package init(_ text: String) throws(SluiceError) {
        let parts = text.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
        let scheme = parts[0].lowercased()
        guard parts.count == 2, scheme == "smtp" || scheme == "smtps",
            let (host, port) = Self.authority(parts[1].hasSuffix("/") ? parts[1].dropLast() : parts[1])
        else {
            throw SluiceError(
                .configInvalid, "'\(String(text.unicodeScalars.prefix(64)))' is not smtp:// or smtps:// with a host and an optional port.",
                fix: "Write a URL such as smtp://mail.example.com:587. User and password have keys of their own.")
        }
        isTLSFromStart = scheme == "smtps"
        self.text = "\(scheme)://\(host):\(port ?? (isTLSFromStart ? Self.ports.smtps : Self.ports.smtp))"
    }

    private static func authority(_ text: Substring) -> (host: Substring, port: Int?)? {
        let isBracketed = text.hasPrefix("[")
        let end = isBracketed ? text.firstIndex(of: "]").map(text.index(after:)) : text.firstIndex(of: ":") ?? text.endIndex
        guard let end else { return nil }
        let (host, rest) = (text[..<end], text[end...])
        let name = isBracketed ? host.dropFirst().dropLast() : host
        let allowed = isBracketed ? "0123456789abcdefABCDEF:." : "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"
        guard !name.isEmpty, name.utf8.count <= 253, name.allSatisfy(allowed.contains) else { return nil }
        if rest.isEmpty { return (host, nil) }
        guard rest.hasPrefix(":"), let port = Int(rest.dropFirst()), (1...65_535).contains(port) else { return nil }
        return (host, port)
    }
}
