extension NetworkAddress {
    /// `true` if the address is one of the public internet: not of this machine, of a private or a provider's network, of a link, of a
    /// group, of a cloud's metadata, or of documentation (RFC 6890).
    ///
    /// An address that carries an IPv4 address for a translator is judged by it (RFC 6052).
    package var isPublic: Bool {
        if family == .v6, bits >> 32 == Self.translation { return NetworkAddress(v4: UInt32(truncatingIfNeeded: bits)).isPublic }
        // All public IPv6 addresses so far begin with 001 (RFC 4291).
        if family == .v6, bits >> 125 != 1 { return false }
        return !Self.special.contains { $0.contains(self) }
    }

    /// The prefix 64:ff9b::/96.
    private static let translation: UInt128 = 0x64_FF9B << 64

    static let specialRanges = [
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
        "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
        // The metadata service of Azure.
        "168.63.129.16/32",
        // Tunnels, which carry IPv4 addresses, and documentation.
        "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
    ]
    private static let special = specialRanges.compactMap { try? NetworkRange($0) }
}
