extension JSON {
    /// The compact text: no white space, members in their order, non-ASCII characters unescaped.
    ///
    /// A finite double prints as the shortest digits that parse to the same double, also after PostgreSQL's jsonb has stored them. NaN and
    /// the infinities have no JSON form and print as null. Extended JSON wraps them before they reach this printer.
    package var text: String { String(decoding: utf8, as: UTF8.self) }

    /// The compact text as UTF-8.
    package var utf8: [UInt8] {
        var bytes: [UInt8] = []
        write(into: &bytes)
        return bytes
    }

    /// Appends the compact text.
    /// - Parameter extended: `true` if NaN and the infinities print as Extended JSON's `$numberDouble`.
    package func write(into bytes: inout [UInt8], extended: Bool = false) {
        switch self {
        case .null: bytes.append(contentsOf: "null".utf8)
        case .bool(let value): bytes.append(contentsOf: (value ? "true" : "false").utf8)
        case .int(let value): bytes.append(contentsOf: String(value).utf8)
        case .double(let value):
            if extended, !value.isFinite { return ExtendedForm.json(value).write(into: &bytes) }
            bytes.append(contentsOf: JSON.number(value).utf8)
        case .string(let value): JSON.quote(value, into: &bytes)
        case .array(let elements):
            bytes.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                element.write(into: &bytes, extended: extended)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let members):
            bytes.append(UInt8(ascii: "{"))
            for (index, member) in members.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                JSON.quote(member.key, into: &bytes)
                bytes.append(UInt8(ascii: ":"))
                member.value.write(into: &bytes, extended: extended)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }

    private static func number(_ value: Double) -> String {
        guard value.isFinite else { return "null" }
        let text = "\(value)"
        // jsonb rewrites 1e+16 as the digits of an integer. Within 64 bits these would parse as an integer.
        if text.contains("e+"), let integer = Int64(exactly: value) { return "\(integer).0" }
        return text
    }

    private static func quote(_ text: String, into bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            case UInt8(ascii: "\n"): bytes.append(contentsOf: "\\n".utf8)
            case UInt8(ascii: "\r"): bytes.append(contentsOf: "\\r".utf8)
            case UInt8(ascii: "\t"): bytes.append(contentsOf: "\\t".utf8)
            case 0..<0x20:
                bytes.append(contentsOf: "\\u00".utf8)
                bytes.append(contentsOf: Hex.encode([byte]).utf8)
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}
