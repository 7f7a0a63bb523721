import SluiceCore

/// The parts of a `ws://` or `wss://` address.
struct SocketURL: Hashable {
    var isSecure: Bool
    var host: String
    var port: Int
    var path: String

    /// The value of the Host header.
    var authority: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
    }

    /// - Throws: `connectionFailed` for anything else.
    init(_ text: String) throws(SluiceError) {
        let unusable = SluiceError(
            .connectionFailed, "\(text) is no address of a gateway.", fix: "Give it as ws://host:port or wss://host:port.")
        var rest = Substring(text)
        if rest.hasPrefix("ws://") {
            isSecure = false
            rest = rest.dropFirst(5)
        } else if rest.hasPrefix("wss://") {
            isSecure = true
            rest = rest.dropFirst(6)
        } else {
            throw unusable
        }
        let slash = rest.firstIndex(of: "/") ?? rest.endIndex
        path = slash == rest.endIndex ? "/" : String(rest[slash...])
        let place = rest[..<slash]
        let bracket = place.lastIndex(of: "]")
        var name = place
        var number = isSecure ? 443 : 80
        if let colon = place.lastIndex(of: ":"), colon > bracket ?? place.startIndex {
            guard let given = UInt16(place[place.index(after: colon)...]) else { throw unusable }
            number = Int(given)
            name = place[..<colon]
        }
        if name.hasPrefix("["), name.hasSuffix("]") { name = name.dropFirst().dropLast() }
        guard !name.isEmpty, !name.contains("@") else { throw unusable }
        host = String(name)
        port = number
    }
}
