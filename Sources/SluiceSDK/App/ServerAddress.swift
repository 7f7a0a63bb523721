import Foundation

/// The address of a server.
enum ServerAddress {
    /// `true` for an address without TLS on another machine.
    static func isOpenToOthers(_ url: String) -> Bool {
        guard let parts = URLComponents(string: url), parts.scheme?.lowercased() == "http", let host = parts.host?.lowercased() else {
            return false
        }
        let name = host.trimmingCharacters(in: CharacterSet(charactersIn: "[]"))
        let isLoopback = name.hasPrefix("127.") && name.utf8.allSatisfy { $0 == UInt8(ascii: ".") || (0x30...0x39).contains($0) }
        return !isLoopback && name != "localhost" && !name.hasSuffix(".localhost") && name != "::1"
    }
}
