import FoundationEssentials
import SluiceCore
import SluicePorts

/// The addresses that a request may reach.
enum OutboundReach: Hashable, Sendable {
    case publicOnly
    /// Without TLS, only the machine and its network.
    case privateOnly
    case any

    func admits(_ address: NetworkAddress) -> Bool {
        switch self {
        case .publicOnly: address.isPublic
        case .privateOnly: !address.isPublic
        case .any: true
        }
    }
}

/// The host of a request, and the addresses that it may have.
struct OutboundTarget: Hashable, Sendable {
    /// The host and port as the URL has them, for operators.
    let host: String
    let reach: OutboundReach

    /// - Throws: `outboundAddressRefused` for a URL without a host, with a user, or with a scheme or an address that is not allowed.
    init(of request: OutboundRequest) throws(SluiceError) {
        guard let url = URL(string: request.url), let name = url.host(), !name.isEmpty, url.user() == nil, url.password() == nil else {
            throw Self.refusal("A URL of a service has no host, or a user.", value: request.url)
        }
        host = url.port.map { "\(name):\($0)" } ?? name
        switch (url.scheme?.lowercased(), request.allowsPrivateAddresses) {
        case ("https", let allowsPrivate): reach = allowsPrivate ? .any : .publicOnly
        case ("http", true): reach = .privateOnly
        default: throw Self.refusal("The URL of a service must start with https://.", value: host)
        }
        let bare = name.hasPrefix("[") ? String(name.dropFirst().dropLast()) : name
        if let address = NetworkAddress(bare), !reach.admits(address) { throw refusal(of: address) }
    }

    /// The error for an address that the request may not reach.
    func refusal(of address: NetworkAddress?) -> SluiceError {
        let value = "\(host) (\(address?.description ?? "no address"))"
        guard reach == .privateOnly else { return Self.refusal("The address of a service is not public.", value: value) }
        return SluiceError(
            .outboundAddressRefused, "A service outside of the gateway's network must be reached by https.", value: value,
            fix: "Correct the URL.")
    }

    private static func refusal(_ message: String, value: String) -> SluiceError {
        SluiceError(.outboundAddressRefused, message, value: value)
    }
}
