import SluiceCore

/// The parts of a `ws://`, `wss://`, `http://` or `https://` address.
struct SocketURL: Hashable {
    var isSecure: Bool
    var host: String
    var port: Int
    var path: String

    /// The value of the `Host` header.
    var authority: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
    }

    /// Parses the address of a WebSocket.
    /// - Throws: `connectionFailed` for anything else.
    init(_ text: String) throws(SluiceError) { try self.init(text, scheme: "ws") }

    /// Parses an HTTP address.
    /// - Throws: `connectionFailed` for anything else.
    init(http text: String) throws(SluiceError) { try self.init(text, scheme: "http") }

    /// - Parameter scheme: the one without TLS. With an `s` appended it means TLS.
    private init(_ text: String, scheme: String) throws(SluiceError) {
        let unusable = SluiceError(
            .connectionFailed, "\(text) is no address of a gateway.", fix: "Give it as \(scheme)://host:port or \(scheme)s://host:port.")
        var rest = Substring(text)
        if rest.hasPrefix("\(scheme)://") {
            isSecure = false
            rest = rest.dropFirst(scheme.count + 3)
        } else if rest.hasPrefix("\(scheme)s://") {
            isSecure = true
            rest = rest.dropFirst(scheme.count + 4)
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
