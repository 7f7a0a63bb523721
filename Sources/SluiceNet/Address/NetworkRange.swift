package import SluiceCore

/// A range of addresses in CIDR notation (RFC 4632), such as `10.0.0.0/8` or `fd00::/8`.
package struct NetworkRange: Hashable, Sendable, CustomStringConvertible {
    /// The first address of the range.
    package let base: NetworkAddress
    /// The number of leading bits that all addresses of the range share.
    package let prefix: Int

    /// Parses a range. A single address is a range of one.
    /// - Throws: `configInvalid` with the text at fault.
    package init(_ text: String) throws(SluiceError) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let address = NetworkAddress(parts[0]) else { throw Self.invalid(text) }
        var prefix = address.family.width
        if parts.count == 2 {
            guard parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }), let length = Int(parts[1]), length <= prefix else {
                throw Self.invalid(text)
            }
            prefix = length
        }
        self.prefix = prefix
        let cleared = Self.network(of: address, prefix)
        base = address.family == .v4 ? NetworkAddress(v4: UInt32(cleared)) : NetworkAddress(v6: cleared)
        // An IPv6 range that is cut to IPv4-mapped addresses would change its family.
        guard base.family == address.family else { throw Self.invalid(text) }
    }

    package func contains(_ address: NetworkAddress) -> Bool {
        address.family == base.family && Self.network(of: address, prefix) == base.bits
    }

    package var description: String { "\(base)/\(prefix)" }

    private static func network(of address: NetworkAddress, _ prefix: Int) -> UInt128 {
        let hostBits = address.family.width - prefix
        return hostBits >= 128 ? 0 : (address.bits >> hostBits) << hostBits
    }

    private static func invalid(_ text: String) -> SluiceError {
        SluiceError(
            .configInvalid, "'\(text)' is not a range of addresses.", fix: "Give an address or a range such as 10.0.0.0/8 or fd00::/8.")
    }
}
