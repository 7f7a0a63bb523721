import SluiceCore

/// Decoders of PostgreSQL's text forms of byte values.
enum TextBytes {
    /// Decodes 24 hexadecimal digits.
    @inline(__always)
    static func objectId(_ bytes: UnsafeBufferPointer<UInt8>) -> Cell? {
        guard bytes.count == 24, let high = unsafe word(bytes, 0, 16), let low = unsafe word(bytes, 16, 8) else { return nil }
        return Cell(tag: .objectId, length: UInt32(truncatingIfNeeded: low), bits: high)
    }

    /// Decodes the 8-4-4-4-12 form.
    static func uuid(_ bytes: UnsafeBufferPointer<UInt8>, into buffer: inout RowBuffer) -> Cell? {
        guard bytes.count == 36 else { return nil }
        for dash in [8, 13, 18, 23] where unsafe bytes[dash] != UInt8(ascii: "-") { return nil }
        guard let a = unsafe word(bytes, 0, 8), let b = unsafe word(bytes, 9, 4), let c = unsafe word(bytes, 14, 4),
            let d = unsafe word(bytes, 19, 4), let e = unsafe word(bytes, 24, 12)
        else { return nil }
        let cell = Cell(tag: .uuid, length: 16, bits: UInt64(buffer.arena.count))
        unsafe withUnsafeBytes(of: (a << 32 | b << 16 | c).bigEndian) { unsafe buffer.arena.append(contentsOf: $0) }
        unsafe withUnsafeBytes(of: (d << 48 | e).bigEndian) { unsafe buffer.arena.append(contentsOf: $0) }
        return cell
    }

    /// Decodes `\x` and hexadecimal digits.
    static func binary(_ bytes: UnsafeBufferPointer<UInt8>, into buffer: inout RowBuffer) -> Cell? {
        guard bytes.count >= 2, bytes.count.isMultiple(of: 2), unsafe bytes[0] == UInt8(ascii: "\\"),
            unsafe bytes[1] == UInt8(ascii: "x")
        else { return nil }
        let start = buffer.arena.count
        buffer.arena.reserveCapacity(start + bytes.count / 2 - 1)
        var index = 2
        while index < bytes.count {
            let high = unsafe nibbles[Int(bytes[index])]
            let low = unsafe nibbles[Int(bytes[index + 1])]
            guard high | low < 16 else { return nil }
            buffer.arena.append(high << 4 | low)
            index += 2
        }
        return Cell(tag: .binary, length: UInt32(truncatingIfNeeded: buffer.arena.count - start), bits: UInt64(start))
    }

    /// Returns the text of a `character(n)` column without the blanks that pad it.
    static func withoutPadding(_ bytes: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8> {
        var count = bytes.count
        while count > 0, unsafe bytes[count - 1] == UInt8(ascii: " ") { count -= 1 }
        return unsafe UnsafeBufferPointer(rebasing: bytes[..<count])
    }

    static func withoutPadding(_ text: String) -> String {
        guard text.utf8.last == UInt8(ascii: " ") else { return text }
        return String(decoding: Array(text.utf8.reversed().drop { $0 == UInt8(ascii: " ") }.reversed()), as: UTF8.self)
    }

    /// Returns the value of `count` digits from `start`; nil if one is no digit.
    @inline(__always)
    private static func word(_ bytes: UnsafeBufferPointer<UInt8>, _ start: Int, _ count: Int) -> UInt64? {
        var value: UInt64 = 0
        var bad: UInt8 = 0
        for index in start..<start + count {
            let nibble = unsafe nibbles[Int(bytes[index])]
            bad |= nibble
            value = value << 4 | UInt64(nibble & 15)
        }
        return bad < 16 ? value : nil
    }

    /// The value of each hexadecimal digit; 255 for other bytes.
    private nonisolated(unsafe) static let nibbles: UnsafeMutablePointer<UInt8> = {  // Safe because: filled here once, then only read.
        let table = UnsafeMutablePointer<UInt8>.allocate(capacity: 256)
        unsafe table.initialize(repeating: 255, count: 256)
        for (value, digit) in "0123456789abcdef".utf8.enumerated() { unsafe table[Int(digit)] = UInt8(value) }
        for (value, digit) in "ABCDEF".utf8.enumerated() { unsafe table[Int(digit)] = UInt8(value + 10) }
        return unsafe table
    }()
}
