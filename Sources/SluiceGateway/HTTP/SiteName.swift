import NIOCore

/// The host of a request's `Host` or `Origin` header, in lower case.
///
/// With DNS rebinding, a page of another site could send requests to a port that only this machine reaches. The name must therefore be
/// one that no third party can own.
struct SiteName: Hashable {
    let host: String

    /// - Parameter authority: The text `host`, `host:port` or `[address]:port`.
    init(authority: String) {
        var host = authority.lowercased()[...]
        if host.utf8.first == UInt8(ascii: "[") {
            // Only IPv6 addresses have brackets.
            host = host.dropFirst().prefix { $0 != "]" }
        } else if let colon = host.utf8.lastIndex(of: UInt8(ascii: ":")) {
            host = host[..<colon]
        }
        if host.utf8.last == UInt8(ascii: ".") { host.removeLast() }
        self.host = String(host)
    }

    /// - Parameter origin: The text `scheme://authority` of a browser. The result is nil for `null` and for any other form.
    init?(origin: String) {
        guard let mark = origin.utf8.firstRange(of: "://".utf8) else { return nil }
        let authority = origin[mark.upperBound...]
        guard !authority.isEmpty, !authority.utf8.contains(where: { "/@?#".utf8.contains($0) }) else { return nil }
        self.init(authority: String(authority))
    }

    private var isAddress: Bool { (try? SocketAddress(ipAddress: host, port: 0)) != nil }

    /// `true` for an address, `localhost`, a name without a dot such as a container's, and `names`.
    func isOwn(_ names: Set<String>) -> Bool {
        !host.utf8.contains(UInt8(ascii: ".")) || host.hasSuffix(".localhost") || names.contains(host) || isAddress
    }

    /// `true` for this machine's own names and loopback addresses, and for `names`.
    func isLocal(_ names: Set<String>) -> Bool {
        if host == "localhost" || host.hasSuffix(".localhost") || host == "::1" || names.contains(host) { return true }
        return host.hasPrefix("127.") && isAddress
    }
}
