import SluiceCore

/// Reads the parts of a changeset. Every length is compared with the rest of the input before memory is allocated.
///
/// An integer is little-endian in groups of 7 bits. A byte with the bit 0x80 is followed by another. The last byte has 6 bits of the number
/// and, in bit 0x40, the sign. A negative number n is stored as -(n + 1).
struct RealmByteReader {
    private let bytes: [UInt8]
    private(set) var offset = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The number of bytes that have not been read.
    var remaining: Int { bytes.count - offset }

    func failure(_ sentence: String, at offset: Int) -> SluiceError {
        SluiceError(.badChangeset, "Byte \(offset) of the changeset: \(sentence).")
    }

    // MARK: Integers

    /// Reads an integer of 64 bits.
    mutating func integer() throws(SluiceError) -> Int64 {
        let start = offset
        // Nearly all integers have one byte.
        if let byte = next, byte < 0x80 {
            offset += 1
            return byte & 0x40 == 0 ? Int64(byte) : -Int64(byte & 0x3F) - 1
        }
        let (magnitude, isNegative) = try magnitude(mostBytes: 10)
        guard let value = Int64(exactly: magnitude) else { throw failure("the integer has more than 64 bits", at: start) }
        return isNegative ? -value - 1 : value
    }

    /// Reads the coefficient of a decimal: an integer of 113 bits without a sign.
    mutating func coefficient() throws(SluiceError) -> UInt128 {
        let start = offset
        let (magnitude, isNegative) = try magnitude(mostBytes: 17)
        guard !isNegative, magnitude >> 113 == 0 else {
            throw failure("the coefficient of the decimal is negative or has more than 113 bits", at: start)
        }
        return magnitude
    }

    private mutating func magnitude(mostBytes: Int) throws(SluiceError) -> (value: UInt128, isNegative: Bool) {
        let start = offset
        var value: UInt128 = 0
        for index in 0..<mostBytes {
            guard let byte = next else { throw failure("the changeset ends within an integer", at: offset) }
            offset += 1
            guard byte < 0x80 else {
                value |= UInt128(byte & 0x7F) << UInt128(7 * index)
                continue
            }
            return (value | UInt128(byte & 0x3F) << UInt128(7 * index), byte & 0x40 != 0)
        }
        throw failure("the integer has more than \(mostBytes) bytes", at: start)
    }

    private var next: UInt8? { offset < bytes.count ? bytes[offset] : nil }

    /// Reads an index or a size: an integer of 32 bits without a sign.
    mutating func index(_ name: String) throws(SluiceError) -> Int {
        let start = offset
        let value = try integer()
        guard let index = UInt32(exactly: value) else {
            throw failure("the \(name) is \(value), which is not between 0 and \(UInt32.max)", at: start)
        }
        return Int(index)
    }

    mutating func bool(_ name: String) throws(SluiceError) -> Bool {
        let start = offset
        switch try integer() {
        case 0: return false
        case 1: return true
        case let other: throw failure("the \(name) is \(other); expected 0 or 1", at: start)
        }
    }

    // MARK: Bytes

    /// Reads as many bytes.
    mutating func raw(_ count: Int, _ name: String) throws(SluiceError) -> ArraySlice<UInt8> {
        guard count <= remaining else {
            throw failure("the \(name) has \(count) bytes, but \(remaining) remain", at: offset)
        }
        defer { offset += count }
        return bytes[offset..<offset + count]
    }

    /// Reads a length and as many bytes.
    mutating func counted(_ name: String) throws(SluiceError) -> ArraySlice<UInt8> {
        let start = offset
        let length = try integer()
        guard let count = Int(exactly: length), count >= 0 else { throw failure("the length of the \(name) is \(length)", at: start) }
        return try raw(count, name)
    }

    /// Reads a length and as many bytes of UTF-8.
    mutating func text(_ name: String) throws(SluiceError) -> String {
        let start = offset
        guard let text = String(validating: try counted(name), as: UTF8.self) else { throw failure("the \(name) is not UTF-8", at: start) }
        return text
    }

    /// Reads a word of 4 or 8 bytes, little-endian.
    mutating func word<Word: FixedWidthInteger & UnsignedInteger>(_ name: String) throws(SluiceError) -> Word {
        try raw(MemoryLayout<Word>.size, name).reversed().reduce(0) { $0 << 8 | Word($1) }
    }
}
