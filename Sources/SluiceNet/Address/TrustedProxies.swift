/// The reverse proxies whose word on a client's address is taken. Pure.
///
/// A proxy appends the address of its own peer to `X-Forwarded-For` or `Forwarded` (RFC 7239). What stands to the left of that
/// came with the request, so the client's address is the right-most one that is not a trusted proxy's.
package struct TrustedProxies: Hashable, Sendable {
    package static let none = TrustedProxies([])

    package let ranges: [NetworkRange]

    package init(_ ranges: [NetworkRange]) { self.ranges = ranges }

    package func trust(_ address: NetworkAddress) -> Bool { ranges.contains { $0.contains(address) } }

    /// Returns the address that a request comes from.
    ///
    /// An element that is not an address ends the search: the client is then the proxy that appended it. If both headers are
    /// present and name different addresses, one of them was not written by the proxy, and the client is `peer`.
    /// - Parameters:
    ///   - peer: the other end of the connection.
    ///   - forwardedFor: the lines of `X-Forwarded-For`, in their order.
    ///   - forwarded: the lines of `Forwarded`, in their order.
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

    /// - Parameter hops: from the left to the right; nil is one that is no address.
    private func client(_ peer: NetworkAddress, _ hops: [NetworkAddress?]) -> NetworkAddress {
        var client = peer
        for hop in hops.reversed() {
            guard let hop else { break }
            client = hop
            if !trust(hop) { break }
        }
        return client
    }

    /// Returns the address that a request comes from, by its headers.
    func client(peer: NetworkAddress, _ headers: some Sequence<(name: String, value: String)>) -> NetworkAddress {
        // Most servers have no proxy: no header is looked at then.
        guard trust(peer) else { return peer }
        var (forwardedFor, forwarded): ([String], [String]) = ([], [])
        for (name, value) in headers {
            switch name.lowercased() {
            case "x-forwarded-for": forwardedFor.append(value)
            case "forwarded": forwarded.append(value)
            default: break
            }
        }
        return client(peer: peer, forwardedFor: forwardedFor, forwarded: forwarded)
    }
}
