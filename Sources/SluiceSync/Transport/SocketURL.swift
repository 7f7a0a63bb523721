import NIOCore
package import SluiceCore

/// The parts of a `ws://`, `wss://`, `http://` or `https://` address, by RFC 3986.
package struct SocketURL: Hashable, Sendable {
    package var isSecure: Bool
    /// A name in lower case, an IPv4 address, or an IPv6 address without brackets.
    package var host: String
    package var port: Int
    /// The percent-encoded path and query. Starts with `/`.
    package var path: String

    /// The value of the `Host` header.
    package var authority: String {
        // A zone such as `%eth0` has a meaning on this machine only.
        let plain = String(host.prefix { $0 != "%" })
        let name = plain.contains(":") ? "[\(plain)]" : plain
        return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
    }

    /// Parses the address of a WebSocket.
    /// - Throws: `connectionFailed` for anything else.
    package init(_ text: String) throws(SluiceError) { try self.init(text, scheme: "ws") }

    /// Parses an HTTP address.
    /// - Throws: `connectionFailed` for anything else.
    package init(http text: String) throws(SluiceError) { try self.init(text, scheme: "http") }

    /// - Parameter scheme: the one without TLS. With an `s` appended it means TLS.
    private init(_ text: String, scheme: String) throws(SluiceError) {
        // A fragment stays with the client.
        let whole = text.prefix { $0 != "#" }
        let given = whole.prefix { $0 != ":" }
        let rest = whole.dropFirst(given.count)
        guard rest.hasPrefix("://") else { throw SocketURL.unusable(text, scheme, "it has no scheme") }
        guard given.lowercased() == scheme || given.lowercased() == scheme + "s" else {
            throw SocketURL.unusable(text, scheme, "its scheme is \(given)")
        }
        isSecure = given.lowercased() != scheme
        let place = rest.dropFirst(3).prefix { $0 != "/" && $0 != "?" }
        guard !place.contains("@") else {
            // The text may contain a password, so the error does not repeat it.
            throw SocketURL.unusable("An address with a user name", scheme, "the gateway takes no user from it")
        }
        // The colons within brackets do not begin a port.
        let isBracketed = place.hasPrefix("[")
        let stop: Character = isBracketed ? "]" : ":"
        var literal = place.prefix { $0 != stop }
        if isBracketed, literal.count < place.count { literal = place.prefix(literal.count + 1) }
        guard let host = SocketURL.validHost(literal) else {
            let reason = literal.isEmpty ? "it has no host" : "its host is \(literal), which is neither an IP address nor a name in ASCII"
            throw SocketURL.unusable(text, scheme, reason)
        }
        let number = place.dropFirst(literal.count)
        guard let port = SocketURL.validPort(number, standard: isSecure ? 443 : 80) else {
            let digits = number.hasPrefix(":") ? number.dropFirst() : number
            throw SocketURL.unusable(text, scheme, "its port is \(digits), not a number from 1 to 65535")
        }
        self.host = host
        self.port = port
        let path = SocketURL.encoded(rest.dropFirst(3 + place.count))
        self.path = path.hasPrefix("/") ? path : "/" + path
    }

    /// The address as an HTTP address.
    package var httpText: String { "\(isSecure ? "https" : "http")://\(authority)\(path)" }

    /// Returns `true` if both addresses have the same scheme, host and port.
    package func isSameOrigin(as other: SocketURL) -> Bool {
        isSecure == other.isSecure && host == other.host && port == other.port
    }

    /// Resolves the reference in the field `Location` of an answer from this HTTP address (RFC 3986, section 5.2).
    /// - Throws: `connectionFailed` if the result is no HTTP address.
    package func resolving(_ reference: String) throws(SluiceError) -> SocketURL {
        let target = reference.prefix { $0 != "#" }
        let beginning = target.prefix { $0 != ":" && $0 != "/" && $0 != "?" }
        if target.dropFirst(beginning.count).hasPrefix(":") { return try SocketURL(http: String(target)) }
        if target.hasPrefix("//") { return try SocketURL(http: (isSecure ? "https:" : "http:") + target) }
        var resolved = self
        guard let first = target.first else { return resolved }
        let own = path.prefix { $0 != "?" }
        let place = target.prefix { $0 != "?" }
        let query = target.dropFirst(place.count)
        switch first {
        case "?": resolved.path = SocketURL.encoded(own + query)
        case "/": resolved.path = SocketURL.encoded(SocketURL.withoutDots(place) + query)
        default:
            // A relative reference replaces the last segment.
            let folder = own.lastIndex(of: "/").map { own[...$0] } ?? "/"
            resolved.path = SocketURL.encoded(SocketURL.withoutDots(folder + place) + query)
        }
        return resolved
    }

    /// Removes the segments `.` and `..` from an absolute path.
    private static func withoutDots(_ path: Substring) -> Substring {
        var kept: [Substring] = []
        let segments = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        for segment in segments {
            switch segment {
            case ".": break
            case "..": _ = kept.popLast()
            default: kept.append(segment)
            }
        }
        // Either of them at the end means a folder.
        if segments.last == "." || segments.last == ".." { kept.append("") }
        return Substring("/" + kept.joined(separator: "/"))
    }

    private static func unusable(_ text: String, _ scheme: String, _ reason: String) -> SluiceError {
        SluiceError(
            .connectionFailed, "\(text) is not the address of a gateway: \(reason).",
            fix: "Give it as \(scheme)://host:port or \(scheme)s://host:port.")
    }

    /// - Parameter literal: an IPv6 address with its brackets, or a name or IPv4 address.
    private static func validHost(_ literal: Substring) -> String? {
        guard literal.hasPrefix("[") else {
            return !literal.isEmpty && literal.utf8.allSatisfy(isUnreserved) ? literal.lowercased() : nil
        }
        guard literal.hasSuffix("]") else { return nil }
        let inner = literal.dropFirst().dropLast()
        let address = inner.prefix { $0 != "%" }
        guard address.contains(":"), (try? SocketAddress(ipAddress: String(address), port: 0)) != nil else { return nil }
        // RFC 6874 encodes the percent sign before the zone. Addresses from the system's tools have it plain.
        let zone = inner.dropFirst(address.count)
        let name = zone.dropFirst(zone.hasPrefix("%25") ? 3 : 1)
        if zone.isEmpty { return address.lowercased() }
        return !name.isEmpty && name.utf8.allSatisfy(isUnreserved) ? "\(address.lowercased())%\(name)" : nil
    }

    /// - Parameter text: the digits after a colon, or nothing. A colon alone means the standard port, too.
    private static func validPort(_ text: Substring, standard: Int) -> Int? {
        if text.isEmpty || text == ":" { return standard }
        let digits = text.dropFirst()
        guard text.hasPrefix(":"), digits.allSatisfy({ ("0"..."9").contains($0) }), let number = UInt16(digits), number > 0 else {
            return nil
        }
        return Int(number)
    }

    /// Percent-encodes the bytes that a path with a query may not contain. Keeps what is encoded already.
    private static func encoded(_ text: Substring) -> String {
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        for (index, byte) in bytes.enumerated() {
            let isEscape = byte == UInt8(ascii: "%") && index + 2 < bytes.count && isHex(bytes[index + 1]) && isHex(bytes[index + 2])
            if isEscape || isUnreserved(byte) || pathBytes.contains(byte) {
                result.append(byte)
            } else {
                result += [UInt8(ascii: "%"), hexDigits[Int(byte >> 4)], hexDigits[Int(byte & 15)]]
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// The reserved characters that may stand in a path or a query.
    private static let pathBytes = Array("/?:@!$&'()*+,;=".utf8)
    private static let hexDigits = Array("0123456789ABCDEF".utf8)

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
        default: false
        }
    }

    private static func isHex(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"): true
        default: false
        }
    }
}
