import SluiceNet

/// A client's address, as the login limits count it.
struct ClientNetwork: Hashable, Sendable {
    /// The name of the address's bucket: the IPv4 address, or the /64 of an IPv6 address.
    let name: String
    let isLoopback: Bool

    /// - Parameter text: A numeric address. Any other text is its own bucket.
    init(_ text: String) {
        let address = NetworkAddress(text)
        name = address?.limitGroup.description ?? text
        isLoopback = address?.isLoopback ?? false
    }
}
