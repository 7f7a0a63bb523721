import NIOCore

/// The addresses of this machine, by network interface.
package enum NetworkInterfaces {
    package struct Entry: Hashable, Sendable {
        /// The name of the interface, such as `eth0`.
        package var name: String
        package var address: String

        package init(name: String, address: String) {
            self.name = name
            self.address = address
        }
    }

    /// Reads the IPv4 and IPv6 addresses; empty if the system does not tell them.
    package static func all() -> [Entry] {
        ((try? System.enumerateDevices()) ?? []).compactMap { device in
            device.address?.ipAddress.map { Entry(name: device.name, address: $0) }
        }
    }
}
