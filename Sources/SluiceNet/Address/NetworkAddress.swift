package import NIOCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// An IPv4 or IPv6 address without a port. An IPv4-mapped IPv6 address (`::ffff:192.0.2.1`) is the IPv4 address.
package struct NetworkAddress: Hashable, Sendable {
    package enum Family: Hashable, Sendable {
        case v4
        case v6

        /// The size of an address, in bits.
        var width: Int { self == .v4 ? 32 : 128 }
    }

    package let family: Family
    /// The address as a number. Its first byte is the most significant of `family.width` bits.
    package let bits: UInt128

    package init(v4 bits: UInt32) {
        family = .v4
        self.bits = UInt128(bits)
    }

    package init(v6 bits: UInt128) {
        let isMapped = bits >> 32 == 0xFFFF
        family = isMapped ? .v4 : .v6
        self.bits = isMapped ? bits & 0xFFFF_FFFF : bits
    }

    /// Parses the textual form, without a port, brackets or a zone.
    /// - Returns: `nil` for any other text.
    package init?(_ text: some StringProtocol) {
        guard !text.utf8.contains(0) else { return nil }
        let text = String(text)
        // glibc's inet_pton accepts strict dotted decimal without leading zeros, and RFC 4291 without a zone.
        var bytes = [UInt8](repeating: 0, count: 16)
        if text.utf8.contains(UInt8(ascii: ":")) {
            guard inet_pton(AF_INET6, text, &bytes) == 1 else { return nil }
            self.init(v6: bytes.reduce(UInt128(0)) { $0 << 8 | UInt128($1) })
        } else {
            guard inet_pton(AF_INET, text, &bytes) == 1 else { return nil }
            self.init(v4: bytes[..<4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
        }
    }

    /// The address of a socket. `nil` for a Unix socket.
    package init?(_ socket: SocketAddress?) {
        guard let text = socket?.ipAddress else { return nil }
        // A link-local address has a zone, which is meaningful only on this machine.
        self.init(text.prefix { $0 != "%" })
    }

    package var isLoopback: Bool { family == .v4 ? bits >> 24 == 127 : bits == 1 }

    /// The unit that limits count: an IPv4 address, or the /64 network of an IPv6 address, which belongs to one subscriber.
    package var limitGroup: NetworkAddress { family == .v4 ? self : NetworkAddress(v6: (bits >> 64) << 64) }

    /// Returns the address with a port, as a NIO address.
    package func socketAddress(port: Int) -> SocketAddress? { try? SocketAddress(ipAddress: description, port: port) }
}

extension NetworkAddress: CustomStringConvertible {
    package var description: String {
        let bytes = (0..<family.width / 8).reversed().map { UInt8(truncatingIfNeeded: bits >> ($0 * 8)) }
        if family == .v4 { return bytes.map(String.init).joined(separator: ".") }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_ntop(AF_INET6, bytes, &text, socklen_t(text.count)) != nil else { return "" }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
