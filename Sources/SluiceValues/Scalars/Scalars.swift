/// A point in time: seconds and nanoseconds since 1970-01-01 UTC.
///
/// Both parts have the same sign, as in realm-core. PostgreSQL stores microseconds, so the server returns nanoseconds cut to a multiple of
/// 1,000, towards zero.
package struct Timestamp: Hashable, Sendable, Comparable {
    package var seconds: Int64
    package var nanoseconds: Int32

    package init(seconds: Int64, nanoseconds: Int32 = 0) {
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    /// Creates a timestamp from unchecked parts. Returns nil if the signs differ or the nanoseconds are a second or more.
    package init?(seconds: Int64, checking nanoseconds: Int64) {
        guard (-999_999_999...999_999_999).contains(nanoseconds), seconds == 0 || nanoseconds == 0 || (seconds < 0) == (nanoseconds < 0)
        else {
            return nil
        }
        self.init(seconds: seconds, nanoseconds: Int32(nanoseconds))
    }

    package init(microseconds: Int64) {
        seconds = microseconds / 1_000_000
        nanoseconds = Int32(microseconds % 1_000_000) * 1_000
    }

    /// Microseconds since 1970, saturating at the ends of `Int64`.
    package var microseconds: Int64 {
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        let (sum, carried) = product.addingReportingOverflow(Int64(nanoseconds) / 1_000)
        return carried ? (seconds < 0 ? .min : .max) : sum
    }

    package static func < (lhs: Timestamp, rhs: Timestamp) -> Bool {
        (lhs.seconds, lhs.nanoseconds) < (rhs.seconds, rhs.nanoseconds)
    }
}

/// The 12 bytes of an ObjectId, big-endian in two words so that comparing the words compares the bytes.
package struct ObjectIdentifierBytes: Hashable, Sendable, Comparable, CustomStringConvertible {
    package var high: UInt64
    package var low: UInt32

    package init(high: UInt64, low: UInt32) {
        self.high = high
        self.low = low
    }

    /// Reads 24 hexadecimal digits of either case, or returns nil.
    package init?(hex: some StringProtocol) {
        guard let bytes = Hex.decode(hex), bytes.count == 12 else { return nil }
        self.init(bytes: bytes)
    }

    /// - Precondition: `bytes` has 12 elements.
    package init(bytes: some Collection<UInt8>) {
        precondition(bytes.count == 12, "an ObjectId has 12 bytes, not \(bytes.count)")
        high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes.dropFirst(8).reduce(0) { $0 << 8 | UInt32($1) }
    }

    package var bytes: [UInt8] {
        withUnsafeBytes(of: high.bigEndian, Array.init) + withUnsafeBytes(of: low.bigEndian, Array.init)
    }

    package var description: String { Hex.encode(bytes) }

    package static func < (lhs: Self, rhs: Self) -> Bool { (lhs.high, lhs.low) < (rhs.high, rhs.low) }
}

/// The 16 bytes of a UUID, big-endian in two words.
package struct UUIDBytes: Hashable, Sendable, Comparable, CustomStringConvertible {
    package var high: UInt64
    package var low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Reads the 8-4-4-4-12 form in either case, or returns nil.
    package init?(_ text: some StringProtocol) {
        let utf8 = Array(text.utf8)
        guard utf8.count == 36 else { return nil }
        for (index, byte) in utf8.enumerated() where [8, 13, 18, 23].contains(index) != (byte == UInt8(ascii: "-")) { return nil }
        let digits = utf8.filter { $0 != UInt8(ascii: "-") }
        guard let bytes = Hex.decode(String(decoding: digits, as: UTF8.self)), bytes.count == 16 else { return nil }
        self.init(bytes: bytes)
    }

    /// - Precondition: `bytes` has 16 elements.
    package init(bytes: some Collection<UInt8>) {
        precondition(bytes.count == 16, "a UUID has 16 bytes, not \(bytes.count)")
        high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes.dropFirst(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    package var bytes: [UInt8] {
        withUnsafeBytes(of: high.bigEndian, Array.init) + withUnsafeBytes(of: low.bigEndian, Array.init)
    }

    package var description: String {
        let hex = Array(Hex.encode(bytes).utf8)
        let parts = [hex[0..<8], hex[8..<12], hex[12..<16], hex[16..<20], hex[20..<32]]
        return parts.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "-")
    }

    package static func < (lhs: Self, rhs: Self) -> Bool { (lhs.high, lhs.low) < (rhs.high, rhs.low) }
}

/// Hexadecimal text.
package enum Hex {
    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns nil if the count is odd or a character is not a hexadecimal digit.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let utf8 = Array(text.utf8)
        guard utf8.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(utf8.count / 2)
        for index in stride(from: 0, to: utf8.count, by: 2) {
            guard let high = nibble(utf8[index]), let low = nibble(utf8[index + 1]) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    /// Returns the value of one digit of either case.
    package static func nibble(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
