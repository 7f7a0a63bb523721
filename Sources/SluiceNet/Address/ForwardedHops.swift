/// Parser of the headers in which proxies record the requests they saw. Pure; the cost is linear in the header's bytes.
///
/// A hop that is not an address (`unknown`, an obfuscated name, a malformed element) is `nil`.
enum ForwardedHops {
    /// One proxy's element of `Forwarded`.
    struct Element {
        /// The address of the proxy's peer (`for`).
        var address: NetworkAddress?
        /// The scheme that the peer used (`proto`).
        var scheme: String?
        /// The `Host` that the peer sent (`host`).
        var host: String?
    }

    /// Returns the hops of `X-Forwarded-For`: comma-separated addresses, each with or without a port.
    static func simple(_ lines: [some StringProtocol]) -> [NetworkAddress?] {
        lines.flatMap { line in
            line.split(separator: ",", omittingEmptySubsequences: false).map { address(trim(Array($0.utf8))) }
        }
    }

    /// Returns the hops of `Forwarded` (RFC 7239).
    static func standard(_ lines: [some StringProtocol]) -> [NetworkAddress?] { elements(lines).map(\.address) }

    /// Returns the elements of `Forwarded` (RFC 7239). A malformed line is one empty element: otherwise the client could choose the element
    /// boundaries.
    static func elements(_ lines: [some StringProtocol]) -> [Element] {
        lines.flatMap { line -> [Element] in
            var parser = Parser(Array(line.utf8))
            return parser.elements() ?? [Element()]
        }
    }

    /// Parses an address with or without a port. IPv6 with a port needs brackets.
    private static func address(_ text: [UInt8]) -> NetworkAddress? {
        let colon = UInt8(ascii: ":")
        if text.first == UInt8(ascii: "[") {
            guard let end = text.firstIndex(of: UInt8(ascii: "]")), isPort(text[(end + 1)...]) else { return nil }
            return NetworkAddress(String(decoding: text[1..<end], as: UTF8.self))
        }
        guard let first = text.firstIndex(of: colon), text.lastIndex(of: colon) == first else {
            return NetworkAddress(String(decoding: text, as: UTF8.self))
        }
        return isPort(text[first...]) ? NetworkAddress(String(decoding: text[..<first], as: UTF8.self)) : nil
    }

    /// `true` for no text, and for a colon with a port. RFC 7239 allows an obfuscated port, which begins with `_`.
    private static func isPort(_ text: ArraySlice<UInt8>) -> Bool {
        guard let colon = text.first else { return true }
        let port = text.dropFirst()
        guard colon == UInt8(ascii: ":"), !port.isEmpty else { return false }
        return port.allSatisfy { (0x30...0x39).contains($0) } || port.first == UInt8(ascii: "_")
    }

    /// Returns the text without blanks at its ends.
    static func trim(_ text: [UInt8]) -> [UInt8] {
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        return text.drop(while: isBlank).reversed().drop(while: isBlank).reversed()
    }

    private struct Parser {
        let bytes: [UInt8]
        var place = 0

        init(_ bytes: [UInt8]) { self.bytes = bytes }

        /// Parses all elements. Returns `nil` for a malformed line.
        mutating func elements() -> [Element]? {
            var elements: [Element] = []
            while true {
                guard let element = element() else { return nil }
                elements.append(element)
                skipBlanks()
                guard place < bytes.count else { return elements }
                guard take(",") else { return nil }
            }
        }

        /// Parses one element, `for=…;proto=…;host=…`. Returns `nil` for a malformed one.
        private mutating func element() -> Element? {
            var element = Element()
            var names: Set<String> = []
            repeat {
                skipBlanks()
                guard let name = token(), take("="), let value = value() else { return nil }
                let key = String(decoding: name, as: UTF8.self).lowercased()
                // A parameter may occur once. Of two, the client could have written one.
                guard names.insert(key).inserted else { return nil }
                switch key {
                case "for": element.address = ForwardedHops.address(value)
                case "proto": element.scheme = String(decoding: value, as: UTF8.self)
                case "host": element.host = String(decoding: value, as: UTF8.self)
                default: break
                }
                skipBlanks()
            } while take(";")
            return element
        }

        private mutating func value() -> [UInt8]? {
            guard take("\"") else { return token() }
            var value: [UInt8] = []
            while place < bytes.count {
                let byte = bytes[place]
                place += 1
                switch byte {
                case UInt8(ascii: "\""): return value
                case UInt8(ascii: "\\"):
                    guard place < bytes.count else { return nil }
                    value.append(bytes[place])
                    place += 1
                default: value.append(byte)
                }
            }
            return nil
        }

        private mutating func token() -> [UInt8]? {
            let start = place
            while place < bytes.count, Self.isToken(bytes[place]) { place += 1 }
            return place > start ? Array(bytes[start..<place]) : nil
        }

        private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
            guard place < bytes.count, bytes[place] == UInt8(ascii: scalar) else { return false }
            place += 1
            return true
        }

        private mutating func skipBlanks() { while place < bytes.count, bytes[place] == 0x20 || bytes[place] == 0x09 { place += 1 } }

        /// `true` for a byte of a token (RFC 9110, 5.6.2), and for the colon and brackets that senders leave unquoted.
        private static func isToken(_ byte: UInt8) -> Bool {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: "!#$%&'*+-.^_`|~:[]".utf8.contains(byte)
            }
        }
    }
}
