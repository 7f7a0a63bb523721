/// The scheme and authority that a client used, by the headers of trusted proxies.
package struct ForwardedOrigin: Hashable, Sendable {
    package static let none = ForwardedOrigin()

    /// `true` if the client used `https`. `nil` if no trusted header has a scheme.
    package var isSecure: Bool?
    /// The client's `Host`. `nil` if no trusted header has one.
    package var authority: HostAndPort?

    package init(isSecure: Bool? = nil, authority: HostAndPort? = nil) {
        self.isSecure = isSecure
        self.authority = authority
    }

    /// - Parameters:
    ///   - scheme: `http` or `https`, in any case. Other texts count as none.
    ///   - host: A host with an optional port. Other texts count as none.
    init(scheme: (some StringProtocol)?, host: (some StringProtocol)?) {
        isSecure =
            switch scheme?.lowercased() {
            case "https": true
            case "http": false
            default: nil
            }
        authority = host.flatMap { HostAndPort($0) }
    }
}

/// The lines of the headers in which proxies record a request's path, in the order received.
struct ForwardedLines {
    /// `X-Forwarded-For`.
    private(set) var addresses: [String] = []
    /// `X-Forwarded-Proto`.
    private(set) var schemes: [String] = []
    /// `X-Forwarded-Host`.
    private(set) var hosts: [String] = []
    /// `Forwarded`.
    private(set) var standard: [String] = []

    init(_ headers: some Sequence<(name: String, value: String)>) {
        for (name, value) in headers {
            switch name.lowercased() {
            case "x-forwarded-for": addresses.append(value)
            case "x-forwarded-proto": schemes.append(value)
            case "x-forwarded-host": hosts.append(value)
            case "forwarded": standard.append(value)
            default: break
            }
        }
    }
}

extension TrustedProxies {
    /// Returns the scheme and authority that the client used. All parts are `nil` if `peer` is not a trusted proxy.
    ///
    /// - `X-Forwarded-Proto` and `X-Forwarded-Host` count by their right-most element, because everything to its left may be the client's.
    /// - `Forwarded` counts by the element that the outermost trusted proxy wrote.
    /// - If both forms name a part and differ, a proxy did not write one of them, and the part is `nil`.
    /// - If `Forwarded` and `X-Forwarded-For` name different clients, all parts are `nil` for the same reason.
    package func origin(peer: NetworkAddress, _ headers: some Sequence<(name: String, value: String)>) -> ForwardedOrigin {
        guard trust(peer) else { return .none }
        let lines = ForwardedLines(headers)
        let simple = ForwardedOrigin(scheme: Self.last(lines.schemes), host: Self.last(lines.hosts))
        guard !lines.standard.isEmpty else { return simple }
        let elements = ForwardedHops.elements(lines.standard)
        if !lines.addresses.isEmpty,
            client(peer, ForwardedHops.simple(lines.addresses)) != client(peer, elements.map(\.address))
        {
            return .none
        }
        let outer = outermost(elements)
        let standard = ForwardedOrigin(scheme: outer?.scheme, host: outer?.host)
        return ForwardedOrigin(
            isSecure: Self.agreed(simple.isSecure, standard.isSecure), authority: Self.agreed(simple.authority, standard.authority))
    }

    /// Returns the element that the outermost trusted proxy wrote. An element has the address of the writer's own peer, so the element to
    /// the left is that peer's if it is a trusted proxy.
    private func outermost(_ elements: [ForwardedHops.Element]) -> ForwardedHops.Element? {
        guard var index = elements.indices.last else { return nil }
        while index > 0, let address = elements[index].address, trust(address) { index -= 1 }
        return elements[index]
    }

    private static func agreed<Part: Equatable>(_ one: Part?, _ other: Part?) -> Part? {
        guard let one, let other else { return one ?? other }
        return one == other ? one : nil
    }

    private static func last(_ lines: [String]) -> String? {
        guard let element = lines.last?.split(separator: ",", omittingEmptySubsequences: false).last else { return nil }
        return String(decoding: ForwardedHops.trim(Array(element.utf8)), as: UTF8.self)
    }
}
