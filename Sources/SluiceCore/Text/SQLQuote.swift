/// Names and texts inside SQL statements, quoted byte by byte.
///
/// Databases read a statement as bytes. A `Character` may be a quote together with a combining mark. Code that compares characters would
/// not escape that quote. The script `dev/check-quoting` finds quoting that does not use these functions.
///
/// A NUL is not escaped. The connections reject statements that contain one, because the C interfaces of both databases end there.
package enum SQLQuote {
    /// A name in double quotes, for PostgreSQL and SQLite. O(length).
    package static func identifier(_ name: String) -> String { enclosed(name, in: UInt8(ascii: "\"")) }

    /// A text constant of PostgreSQL. It has the same value with `standard_conforming_strings` on and off.
    package static func postgresLiteral(_ text: String) -> String {
        let backslash = UInt8(ascii: "\\")
        let quoted = enclosed(text, in: UInt8(ascii: "'"), doubling: backslash)
        return text.utf8.contains(backslash) ? "E" + quoted : quoted
    }

    /// A text constant of SQLite, where a backslash is an ordinary character.
    package static func sqliteLiteral(_ text: String) -> String { enclosed(text, in: UInt8(ascii: "'")) }

    /// A value of a libpq connection string.
    package static func connectionValue(_ value: String) -> String {
        var bytes: [UInt8] = [UInt8(ascii: "'")]
        for byte in value.utf8 {
            if byte == UInt8(ascii: "'") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
            bytes.append(byte)
        }
        bytes.append(UInt8(ascii: "'"))
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func enclosed(_ text: String, in quote: UInt8, doubling other: UInt8? = nil) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count + 2)
        bytes.append(quote)
        for byte in text.utf8 {
            if byte == quote || byte == other { bytes.append(byte) }
            bytes.append(byte)
        }
        bytes.append(quote)
        return String(decoding: bytes, as: UTF8.self)
    }
}
