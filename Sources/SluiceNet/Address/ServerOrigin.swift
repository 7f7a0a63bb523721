package import SluiceCore

/// A host with an optional port, as in a `Host` header or a URL (RFC 3986, section 3.2).
///
/// The host is a name of ASCII letters, digits, `.`, `-` and `_`, an IPv4 address, or an IPv6 address in brackets.
package struct HostAndPort: Hashable, Sendable, CustomStringConvertible {
    /// The longest text, in bytes: a DNS name of 255 with a port.
    private static let maximumBytes = 261

    package let description: String

    /// - Returns: `nil` for any other text, such as one with a user, a path or port 0.
    package init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8)
        guard bytes.count <= Self.maximumBytes else { return nil }
        var end = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.count
        if bytes.first == UInt8(ascii: "[") {
            guard let close = bytes.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            let address = bytes[1..<close]
            guard address.contains(UInt8(ascii: ":")), NetworkAddress(String(decoding: address, as: UTF8.self)) != nil else { return nil }
            end = close + 1
        } else {
            guard end > 0, bytes[..<end].allSatisfy(Self.isName) else { return nil }
        }
        guard Self.isPort(bytes[end...]) else { return nil }
        description = String(decoding: bytes, as: UTF8.self)
    }

    private static func isName(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: ".-_".utf8.contains(byte)
        }
    }

    /// `true` for no text, and for a colon with a port from 1 to 65535.
    private static func isPort(_ text: ArraySlice<UInt8>) -> Bool {
        guard let colon = text.first else { return true }
        let digits = text.dropFirst()
        guard colon == UInt8(ascii: ":"), (1...5).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return false
        }
        let port = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        return (1...65_535).contains(port)
    }
}

/// The scheme and authority under which clients reach a server.
package struct ServerOrigin: Hashable, Sendable {
    /// `true` for `https` and `wss`.
    package var isSecure: Bool
    package var authority: HostAndPort

    package init(isSecure: Bool, authority: HostAndPort) {
        self.isSecure = isSecure
        self.authority = authority
    }

    /// Parses `http://host` or `https://host`, with an optional port and a final slash.
    /// - Throws: `configInvalid` with the text at fault.
    package init(url text: String) throws(SluiceError) {
        let parts = text.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        let scheme = parts[0].lowercased()
        guard parts.count >= 3, scheme == "http:" || scheme == "https:", parts[1].isEmpty, parts.count == 3 || parts[3].isEmpty,
            let authority = HostAndPort(parts[2])
        else {
            throw SluiceError(
                .configInvalid, "The public URL '\(text)' is not http:// or https:// with a host and an optional port.",
                fix: "Give --public-url a URL without a path, such as https://sync.example.com.")
        }
        self.init(isSecure: scheme == "https:", authority: authority)
    }

    /// The URL of HTTP requests, without a final slash.
    package var url: String { "\(isSecure ? "https" : "http")://\(authority)" }
    /// The URL of WebSocket connections, without a final slash.
    package var socketURL: String { "\(isSecure ? "wss" : "ws")://\(authority)" }
}
