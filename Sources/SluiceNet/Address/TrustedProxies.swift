/// The reverse proxies whose headers determine a client's address. Pure.
///
/// A proxy appends the address of its own peer to `X-Forwarded-For` or `Forwarded` (RFC 7239). Everything to the left of it came with the
/// request. The client's address is therefore the right-most one that is not a trusted proxy's.
package struct TrustedProxies: Hashable, Sendable {
    package static let none = TrustedProxies([])

    package let ranges: [NetworkRange]

    package init(_ ranges: [NetworkRange]) { self.ranges = ranges }

    package func trust(_ address: NetworkAddress) -> Bool { ranges.contains { $0.contains(address) } }

    /// Returns the client's address of a request.
    ///
    /// An element without an address ends the search: the client is then the proxy that appended it. If both headers are present and name
    /// different addresses, a proxy did not write one of them, and the client is `peer`.
    /// - Parameters:
    ///   - peer: the other end of the connection.
    ///   - forwardedFor: the lines of `X-Forwarded-For`, in order.
    ///   - forwarded: the lines of `Forwarded`, in order.
    package func client(peer: NetworkAddress, forwardedFor: [some StringProtocol], forwarded: [some StringProtocol]) -> NetworkAddress {
        guard trust(peer) else { return peer }
        let simple = forwardedFor.isEmpty ? nil : client(peer, ForwardedHops.simple(forwardedFor))
        let standard = forwarded.isEmpty ? nil : client(peer, ForwardedHops.standard(forwarded))
        switch (simple, standard) {
        case (let one?, let other?): return one == other ? one : peer
        case (let one?, nil), (nil, let one?): return one
        case (nil, nil): return peer
        }
    }

    /// - Parameter hops: from left to right. `nil` is a hop without an address.
    func client(_ peer: NetworkAddress, _ hops: [NetworkAddress?]) -> NetworkAddress {
        var client = peer
        for hop in hops.reversed() {
            guard let hop else { break }
            client = hop
            if !trust(hop) { break }
        }
        return client
    }

    /// Returns the client's address of a request, from all its headers.
    func client(peer: NetworkAddress, _ headers: some Sequence<(name: String, value: String)>) -> NetworkAddress {
        // Most servers have no proxy and skip the headers.
        guard trust(peer) else { return peer }
        let lines = ForwardedLines(headers)
        return client(peer: peer, forwardedFor: lines.addresses, forwarded: lines.standard)
    }
}
