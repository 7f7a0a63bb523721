import NIOCore

/// The host that a request names in `Host` or `Origin`, in lower case.
///
/// By changing what its own name stands for (DNS rebinding), a page of another site could ask a port that only this machine reaches. So
/// the name has to be one that no stranger can own.
struct SiteName: Hashable {
    let host: String

    /// - Parameter authority: `host`, `host:port` or `[address]:port`.
    init(authority: String) {
        var host = authority.lowercased()[...]
        if host.utf8.first == UInt8(ascii: "[") {
            // Only an address of IPv6 is written so.
            host = host.dropFirst().prefix { $0 != "]" }
        } else if let colon = host.utf8.lastIndex(of: UInt8(ascii: ":")) {
            host = host[..<colon]
        }
        if host.utf8.last == UInt8(ascii: ".") { host.removeLast() }
        self.host = String(host)
    }

    /// - Parameter origin: `scheme://authority`, as browsers send it. Nil for `null` and whatever else is no such text.
    init?(origin: String) {
        guard let mark = origin.utf8.firstRange(of: "://".utf8) else { return nil }
        let authority = origin[mark.upperBound...]
        guard !authority.isEmpty, !authority.utf8.contains(where: { "/@?#".utf8.contains($0) }) else { return nil }
        self.init(authority: String(authority))
    }

    private var isAddress: Bool { (try? SocketAddress(ipAddress: host, port: 0)) != nil }

    /// `true` for an address, `localhost`, a name without a dot (that of a service in a network of containers), and the given names.
    func isOwn(_ names: Set<String>) -> Bool {
        !host.utf8.contains(UInt8(ascii: ".")) || host.hasSuffix(".localhost") || names.contains(host) || isAddress
    }

    /// `true` for this machine's own names and loopback addresses, and the given names.
    func isLocal(_ names: Set<String>) -> Bool {
        if host == "localhost" || host.hasSuffix(".localhost") || host == "::1" || names.contains(host) { return true }
        return host.hasPrefix("127.") && isAddress
    }
}
