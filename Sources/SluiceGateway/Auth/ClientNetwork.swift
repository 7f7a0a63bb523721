import NIOCore
import SluiceCore

/// A client's address as limits count it: an IPv4 address by itself, an IPv6 address by its /64, which one subscriber has.
struct ClientNetwork: Hashable, Sendable {
    /// The text that buckets are named by.
    let name: String
    let isLoopback: Bool

    /// - Parameter address: a numeric address; another text counts by itself.
    init(_ address: String) {
        let plain = String(address.prefix { $0 != "%" })
        switch try? SocketAddress(ipAddress: plain, port: 0) {
        case .v4(let v4)?:
            let bytes = withUnsafeBytes(of: v4.address.sin_addr) { Array($0) }
            self.init(ipv4: bytes)
        case .v6(let v6)?:
            let bytes = withUnsafeBytes(of: v6.address.sin6_addr) { Array($0) }
            if bytes.prefix(12) == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF] {
                // An IPv4 client of a socket that takes both.
                self.init(ipv4: Array(bytes.suffix(4)))
            } else {
                name = "\(Hex.encode(bytes.prefix(8)))/64"
                isLoopback = bytes == [UInt8](repeating: 0, count: 15) + [1]
            }
        default:
            name = address
            isLoopback = false
        }
    }

    private init(ipv4 bytes: [UInt8]) {
        name = bytes.map { String($0) }.joined(separator: ".")
        isLoopback = bytes.first == 127
    }
}
