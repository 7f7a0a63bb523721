import SluiceNet

/// A client's address as the limits of logins count it.
struct ClientNetwork: Hashable, Sendable {
    /// The text that buckets are named by: an IPv4 address, or the /64 of an IPv6 address.
    let name: String
    let isLoopback: Bool

    /// - Parameter text: a numeric address; another text counts by itself.
    init(_ text: String) {
        let address = NetworkAddress(text)
        name = address?.limitGroup.description ?? text
        isLoopback = address?.isLoopback ?? false
    }
}
