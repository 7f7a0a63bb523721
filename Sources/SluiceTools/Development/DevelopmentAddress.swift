import SluiceGateway
package import SluiceNet

/// The address of the client port of `sluice dev`, as `--host` sets it.
package struct DevelopmentAddress: Hashable, Sendable {
    /// The address that the port is bound to.
    package let host: String
    /// The address for URLs. It differs from `host` if the port is bound to all addresses.
    package let shown: String
    /// The addresses of this machine that pages of this gateway may have, beside `host`.
    package let names: Set<String>
    /// `true` if other machines may reach the port.
    package let isOpen: Bool

    /// Interfaces of virtual machines, containers and tunnels, which a phone does not reach.
    private static let virtual = ["docker", "br-", "veth", "virbr", "vmnet", "tun", "tap", "utun", "bridge", "cni", "flannel"]

    package init(host: String, interfaces: [NetworkInterfaces.Entry]) {
        self.host = host
        isOpen = !GatewayConfiguration.isLoopback(host)
        guard ["0.0.0.0", "::", "[::]"].contains(host) else {
            (shown, names) = (host, [])
            return
        }
        let reachable = interfaces.filter { !GatewayConfiguration.isLoopback($0.address) && !Self.isLinkLocal($0.address) }
        names = Set(reachable.map(\.address))
        let versionFour = reachable.filter { !$0.address.contains(":") }
        let real = versionFour.filter { entry in !Self.virtual.contains { entry.name.hasPrefix($0) } }
        shown = (real.first { Self.isPrivate($0.address) } ?? real.first ?? versionFour.first ?? reachable.first)?.address ?? "127.0.0.1"
    }

    /// Returns a URL with the shown address and a port.
    package func url(port: some StringProtocol) -> String { "http://\(shown.contains(":") ? "[\(shown)]" : shown):\(port)" }

    /// `true` for the ranges of private networks (RFC 1918).
    private static func isPrivate(_ address: String) -> Bool {
        let parts = address.split(separator: ".").compactMap { Int($0) }
        guard parts.count == 4 else { return false }
        return parts[0] == 10 || parts[0] == 192 && parts[1] == 168 || parts[0] == 172 && (16...31).contains(parts[1])
    }

    private static func isLinkLocal(_ address: String) -> Bool {
        address.hasPrefix("169.254.") || address.lowercased().hasPrefix("fe80:")
    }

    /// The warning about a port that other machines may reach; nil if none can.
    package var warning: String? {
        guard isOpen else { return nil }
        return """
            sluice: WARNING: every device that reaches \(shown) can use this gateway (--host \(host)). Development mode admits everybody: \
            without rules, each of them can read, write and delete all data and add classes. Traffic is not encrypted.
            sluice: use it in a network that you trust, and end it afterwards. The console, the admin API and the private PostgreSQL stay on \
            127.0.0.1.

            """
    }
}
